"""`genscope construct`: explicit Transformer weights for a Boolean expression, verified, with norms beside the theorem.

Source: edelman2022, Section 5.
Guarantee: that of `constructions.verify`; a model that does not verify is not written.
"""

import math
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from genscope.cli import _construct_fourier, _construct_tokens
from genscope.cli._built import Out, conclude
from genscope.cli._modes import with_modes
from genscope.cli._options import SEED, SEEDS, AsJson, check_options

if TYPE_CHECKING:
    from genscope.constructions import Construction, SparseFunction, Verification

LONGEST = 1_000_000  # bits: some hundred MB of weights


Encoding = Literal["positional", "bag", "random", "random-bag"]


def construct(
    expression: Annotated[str, typer.Argument(metavar="EXPR", help="Boolean expression, such as 'x3 & ~x17'.")],
    context_length: Annotated[int, typer.Option("--context-length", metavar="T", help="Number of bits.")],
    encoding: Annotated[Encoding, typer.Option("--encoding", help="How bits become tokens.")] = "positional",
    dimension: Annotated[
        int | None, typer.Option("--dimension", metavar="D", help="Dimension of random vectors. Default: 8 s log(2T).")
    ] = None,
    within: Annotated[
        float | None,
        typer.Option("--within", metavar="E", help="A threshold by attention alone that errs by at most E."),
    ] = None,
    out: Out = None,
    find_gamma: Annotated[
        bool, typer.Option("--smallest-gamma", help="Also find the smallest sharpness that works.")
    ] = False,
    seed: Annotated[int, typer.Option("--seed", metavar="K", help="Seed of random vectors and random inputs.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Build Transformer weights that compute a Boolean expression, and verify them.

    Up to 20 bits, every input is checked; beyond that, every pattern of the relevant bits, with adversarial and
    random values of the others.

    Example: genscope construct "x3 & ~x17 | maj(x1,x2,x40)" --context-length 64 --out model.safetensors
    """
    check_options(
        "construct",
        ("--context-length", context_length, 1 <= context_length <= LONGEST, f"must be between 1 and {LONGEST}"),
        ("--seed", seed, 0 <= seed < SEEDS, SEED),
    )
    from genscope.cli._jax import prepare_jax

    prepare_jax()
    import functools

    import jax.random as jr

    from genscope import constructions
    from genscope.random import stream

    function = constructions.SparseFunction.parse(expression, context_length=context_length)
    key = jr.key(seed)
    build = functools.partial(
        constructions.construct, encoding=encoding, dimension=dimension, within=within, key=stream(key, "vectors")
    )
    built = build(function)
    verdict = constructions.verify(built, function, key=stream(key, "inputs"))
    facts = _facts(built, verdict, function) | {"expression": expression, "encoding": encoding}
    if find_gamma:
        facts["smallest_gamma"] = constructions.smallest_gamma(build, function, key=stream(key, "inputs"))
    conclude(
        facts,
        built.model,
        verified=verdict.verified,
        out=out,
        as_json=as_json,
        show=lambda facts: _print_construction(facts, built),
        advice=lambda: _what_would_do(facts, built),
    )


def _facts(built: "Construction", verdict: "Verification", function: "SparseFunction") -> dict[str, Any]:
    from genscope.constructions import cover_arguments, weight_norms
    from genscope.constructions.head_norms import command

    asked = cover_arguments(built, function.context_length)
    return {
        "expression": None,
        "context_length": function.context_length,
        "support": list(function.support),
        "encoding": None,
        "exact": verdict.exact,
        "max_error": verdict.max_error,
        "inputs_checked": verdict.inputs_checked,
        "exhaustive": verdict.exhaustive,
        "gamma": built.gamma,
        "norms": weight_norms(built.model),
        "dimension": built.model.encoding.dim,
        "source": built.source,
        "promised_error": built.error if math.isfinite(built.error) else None,
        "constants": {name: value if math.isfinite(value) else None for name, value in built.constants.items()},
        "promised_norms": {name: built.norms.get(name) for name in weight_norms(built.model)},
        "head": asked,
        "bound": command(asked),
    }


def _print_construction(facts: dict[str, Any], built: "Construction") -> None:
    from genscope.cli._output import echo, print_table

    rows = [
        [
            name,
            f"{norm:.6g}" if norm is not None else "–",
            f"{facts['promised_norms'][name]:.6g}" if norm is not None else "–",
            f"O({built.orders[name]})" if norm is not None and name in built.orders else "–",
        ]
        for name, norm in facts["norms"].items()
    ]
    support = ", ".join(f"x{position}" for position in facts["support"]) or "no bit: it is constant"
    checked = f"all {facts['inputs_checked']}" if facts["exhaustive"] else f"{facts['inputs_checked']} hard and random"
    echo(f"{facts['expression']} depends on {support}")
    echo(f"{facts['source']}; token dimension {facts['dimension']}")
    promised = facts["promised_error"]
    verdict = f"within {promised:.2g}, as promised" if promised else "exact"
    kept = facts["exact"] or (promised and facts["max_error"] <= promised * (1 + 1e-9))
    echo(f"{verdict if kept else 'NOT EXACT'}: largest error {facts['max_error']:.2g} on {checked} inputs")
    if "coherence" in facts["constants"]:
        constants = facts["constants"]
        at_most = constants["beta_at_most"]
        echo(
            f"coherence {constants['coherence']:.3g}: an irrelevant position scores at most {constants['beta']:.3g} of "
            f"a relevant one (by the coherence alone {'nothing follows' if at_most is None else f'{at_most:.3g}'})"
        )
    smallest = f", smallest that works {facts['smallest_gamma']:.4g}" if "smallest_gamma" in facts else ""
    needed = f"the proof needs {built.needed:.6g}" if math.isfinite(built.needed) else "no gamma suffices for the proof"
    echo(f"gamma {facts['gamma']:.6g} ({needed}{smallest})\n")
    print_table("Frobenius norms", ["weight", "norm", "at most", "theorem"], rows)
    print_table(
        "Arguments of the covering bound for its head, at half the margin of the output",
        ["argument", "value"],
        [[name.replace("_", " "), f"{value:.6g}"] for name, value in facts["head"].items()],
    )
    echo(facts["bound"])


def _what_would_do(facts: dict[str, Any], built: "Construction") -> str:
    from genscope.constructions import sufficient_dimension

    message = f"these weights do not compute {facts['expression']}: largest error {facts['max_error']:.2g}."
    if "beta" in built.constants:
        enough = sufficient_dimension(support_size=len(facts["support"]), context_length=facts["context_length"])
        message += (
            f" In dimension {facts['dimension']} an irrelevant position scores {built.constants['beta']:.2g} of a "
            f"relevant one, and the proof needs less than 1. A dimension of {enough} would do, or another --seed."
        )
    return message


MODES = _construct_tokens.MODES | _construct_fourier.MODES
app = with_modes("expression", construct, MODES)
