"""`genscope construct fourier`: a Transformer for a sum of Fourier components, verified, with its norms and trace.

Source: lintilhac2026, Appendix B, Theorems 10, 13 and 14; Appendix D (2) for a sample.
Guarantee: that of `constructions.verify_fourier`; a model that does not verify is not written. Norms are exact, the
trace where there are few enough different inputs, with a standard error otherwise.
"""

import re
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from genscope.cli._built import Out, conclude
from genscope.cli._options import SEED, SEEDS, AsJson, check_options
from genscope.refusal import Refusal

LONGEST = 512  # bits: a second or two of verification per hundred
_CONSTANT = 0.1  # C of the bounds by a sample, the paper's


Variant = Literal["full", "minimal", "tuned"]
Units = Literal["even", "all"]


Signed = Literal["two-heads", "one-token"]


def fourier(
    components: Annotated[
        str,
        typer.Option(
            "--components",
            metavar="LIST",
            help="Bits and coefficient of each, as '0,1:0.6;2,3:0.8'; ':0.5' is a constant.",
        ),
    ],
    context_length: Annotated[int, typer.Option("--context-length", metavar="T", help="Number of bits.")],
    variant: Annotated[
        Variant, typer.Option("--variant", help="The paper's weights with all or few parameters, or rescaled ones.")
    ] = "full",
    inactive: Annotated[
        float | None,
        typer.Option(
            "--inactive", metavar="T", help="Attention on positions without a component. Default: 1e-6, tuned 1e-3."
        ),
    ] = None,
    signed: Annotated[Signed, typer.Option("--signed", help="Where negative coefficients go.")] = "two-heads",
    units: Annotated[
        Units, typer.Option("--units", help="Units of the perceptron, for even numbers of ones or for all (Theorem 9).")
    ] = "even",
    sample: Annotated[
        Path | None,
        typer.Option(
            "--sample",
            metavar="FILE",
            help="Bits x (.npz or .safetensors): leave out units that they do not use, and verify on them alone.",
        ),
    ] = None,
    out: Out = None,
    seed: Annotated[int, typer.Option("--seed", metavar="K", help="Seed of random inputs.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Build a Transformer for a sum of parities, with its squared norm and the trace of its Hessian.

    A component is 1 where its bits have an even number of ones, else 0. Up to 16 bits every input is checked. With a
    sample, the network is one that fits its inputs, and norm, trace and bound are shown before and after.

    Example: genscope construct fourier --components "0,1:0.6;2,3:0.8" --context-length 6
    """
    check_options(
        "construct fourier",
        ("--context-length", context_length, 1 <= context_length <= LONGEST, f"must be between 1 and {LONGEST}"),
        ("--seed", seed, 0 <= seed < SEEDS, SEED),
    )
    terms, constant = parse_components(components, context_length)
    from genscope.cli._jax import prepare_jax

    prepare_jax()
    import jax.random as jr

    from genscope.constructions import fourier_components, thin, verify_fourier, verify_thinned
    from genscope.fourier.walsh import WalshFunction
    from genscope.random import stream

    function = WalshFunction(context_length, tuple(terms), tuple(terms.values()), "phi", constant)
    key = jr.key(seed)
    built = fourier_components(
        function,
        variant=variant,
        inactive=inactive,
        signed="two_heads" if signed == "two-heads" else "one_token",
        units=units,
        key=stream(key, "trace"),
    )
    thinned = None
    if sample is None:
        verdict = verify_fourier(built, key=stream(key, "inputs"))
    else:
        thinned = thin(built, _bits(sample, context_length))
        built, verdict = thinned.thinned, verify_thinned(thinned)
    facts = _facts(built, verdict, function, variant)
    facts["sample"] = None if thinned is None else _before_and_after(thinned, str(sample), stream(key, "trace"))
    conclude(
        facts,
        built.model,
        verified=verdict.verified,
        out=out,
        as_json=as_json,
        show=_print_construction,
        advice=lambda: (
            f"these weights do not compute the function: largest error {verdict.max_error:.2g}, promised "
            f"{built.error:.2g}. Coefficients of very different sizes round each other off: drop the smallest."
        ),
    )


MODES = {"fourier": fourier}


def parse_components(text: str, context_length: int) -> tuple[dict[tuple[int, ...], float], float]:
    """Supports with their coefficients, and the constant.

    >>> parse_components("0,1:0.6; 3:-2; :0.5", 4)
    ({(0, 1): 0.6, (3,): -2.0}, 0.5)
    """
    terms: dict[tuple[int, ...], float] = {}
    place = 0
    for part in text.split(";"):
        where = f"construct fourier got --components with {part!r} at character {place}"
        place += len(part) + 1
        bits, colon, number = part.partition(":")
        names = [name.strip() for name in bits.split(",")] if bits.strip() else []
        if not colon or not all(re.fullmatch("[0-9]{1,9}", name) for name in names):
            raise Refusal(
                f"{where}: a component is a list of bits and a coefficient, as in 0,1:0.6, and components are "
                "separated by semicolons. Rewrite it in that form."
            )
        support = tuple(sorted(map(int, names)))
        if len(set(support)) < len(support) or any(bit >= context_length for bit in support):
            raise Refusal(
                f"{where}: its bits must be distinct numbers from 0 to {context_length - 1}. Correct them, or "
                "increase --context-length."
            )
        if not re.fullmatch(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?\s*", number, re.ASCII):
            raise Refusal(f"{where}: {number!r} is not a number. Write a coefficient such as 0.6 or -2e-3.")
        coefficient = float(number)
        if not 1e-30 <= abs(coefficient) <= 1e30:
            raise Refusal(
                f"{where}: coefficients must lie between 1e-30 and 1e30 in absolute value. Leave out zeros, and "
                "rescale the others."
            )
        if support in terms:
            raise Refusal(f"{where}: the same set of bits occurs twice. Add up the two coefficients.")
        terms[support] = coefficient
    return terms, terms.pop((), 0.0)


def _bits(path: Path, context_length: int) -> Any:
    """The inputs of a sample."""
    import numpy as np

    from genscope.cli._arrays import read_arrays

    x = read_arrays(path).get("x")
    if x is None or x.ndim != 2 or x.shape[1] != context_length or not len(x) or not np.isin(x, (0, 1)).all():
        what = "no array x" if x is None else f"x of shape {x.shape}"
        raise Refusal(
            f"{path} holds {what} for --context-length {context_length}: a sample must be an array x of rows of T "
            "bits, 0 or 1. Write it with numpy.savez('sample.npz', x=x)."
        )
    return np.asarray(x) == 1


def _before_and_after(thinned: Any, path: str, key: Any) -> dict[str, Any]:
    from genscope.constructions import thinned_bounds

    whole, thin = thinned.whole, thinned.thinned
    before, after = thinned.units
    return {
        "file": path,
        "inputs": len(thinned.sample),
        "used": list(thinned.used),
        "units": {"before": before, "after": after},
        "norm_squared": {"before": whole.norm_squared["total"], "after": thin.norm_squared["total"]},
        "trace": {"before": whole.trace, "after": thin.trace},
        "bounds": thinned_bounds(thinned, constant=_CONSTANT, key=key) | {"constant": _CONSTANT, "sets": thinned.sets},
    }


def _facts(built: Any, verdict: Any, function: Any, variant: str) -> dict[str, Any]:
    plan, pairs = built.plan, zip(function.supports, function.coefficients, strict=True)
    return {
        "construction": "fourier",
        "variant": variant,
        "units": plan.units,
        "context_length": function.dim,
        "components": [{"support": list(support), "coefficient": coefficient} for support, coefficient in pairs],
        "constant": function.constant,
        "norm_squared": built.norm_squared,
        "trace": built.trace,
        "trace_sem": built.trace_sem,
        "gradient_squared": built.gradient_squared,
        "exact": verdict.exact,
        "verified": verdict.verified,
        "max_error": verdict.max_error,
        "promised_error": built.error,
        "inputs_checked": verdict.inputs_checked,
        "exhaustive": verdict.exhaustive,
        "parameters": built.parameters,
        "source": built.source,
        "constants": {"sharpness": plan.sharpness, "degree": plan.degree, **built.scales._asdict()},
    }


def _print_construction(facts: dict[str, Any]) -> None:
    from genscope.cli._output import echo, print_table

    checked = f"all {facts['inputs_checked']}" if facts["exhaustive"] else f"{facts['inputs_checked']} hard and random"
    if facts["sample"] is not None:
        checked = f"the {facts['inputs_checked']} given"
    echo(
        f"{len(facts['components'])} components on {facts['context_length']} bits, weights {facts['variant']}: "
        f"{facts['parameters']} parameters"
    )
    echo(facts["source"])
    echo(
        f"{'verified' if facts['verified'] else 'NOT VERIFIED'}: largest error {facts['max_error']:.2g} on {checked} "
        f"inputs, promised {facts['promised_error']:.2g}"
    )
    error = f" ± {facts['trace_sem']:.2g}" if facts["trace_sem"] else ""
    echo(f"trace of the Hessian of the squared loss {facts['trace']:.6g}{error}\n")
    if facts["sample"] is not None:
        _print_sample(facts["sample"])
    norms, gradients = facts["norm_squared"], facts["gradient_squared"]
    rows = [[name, f"{norms[name]:.6g}", f"{gradients[name]:.6g}"] for name in norms]
    print_table("Squares by block", ["block", "norm", "mean gradient"], rows)
    echo(f"of F, {gradients['F_b']:.6g} in the row of the bit and {gradients['F_pos']:.6g} in those of positions")


def _print_sample(facts: dict[str, Any]) -> None:
    from genscope.cli._output import echo, print_table

    rows = [
        [words, f"{facts[name]['before']:.6g}", f"{facts[name]['after']:.6g}"]
        for name, words in {"units": "units", "norm_squared": "squared norm", "trace": "trace at the sample"}.items()
    ]
    bounds = facts["bounds"]
    rows.append(["bound, σ and λ of the whole", f"{bounds['whole']:.4g}", f"{bounds['kept']:.4g}"])
    rows.append([f"bound, a union over {bounds['sets']} choices", f"{bounds['whole']:.4g}", f"{bounds['own']:.4g}"])
    print_table(f"What the {facts['inputs']} inputs of {facts['file']} need", ["", "whole", "thinned"], rows)
    used = ", ".join(map(str, facts["used"]))
    echo(
        f"Components have {used} ones there, and nothing is promised elsewhere. Bounds with C = "
        f"{bounds['constant']:g}, for networks that the weights dominate; what the loss does beyond second order is "
        "left out.\n"
    )
