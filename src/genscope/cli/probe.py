"""`genscope probe`: degree, spectral sparsity, relevant bits and Fourier components of a function, by asking it.

Source: lintilhac2026, Appendix H.
Guarantee: that of `genscope.probe`, which the command prints in words.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from genscope.cli._options import SEED, SEEDS, AsJson, check_options
from genscope.cli._probe_target import TargetPrompts, chosen_logits, of_name, of_user, with_progress
from genscope.cli._user_code import is_reference, users_code
from genscope.refusal import Refusal

_SHOWN = 30  # components in the table for people

Inputs = Literal["integers", "booleans", "signs"]
Values = Literal["bits", "signs"]


def probe(
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help="Boolean expression; module:name or file.py:name of a function or model; a model file.",
        ),
    ],
    bits: Annotated[int, typer.Option("--bits", metavar="T", help="Number of bits.")],
    confidence: Annotated[
        float, typer.Option("--confidence", metavar="P", help="Confidence of answers that are not exact.")
    ] = 0.99,
    queries: Annotated[
        int | None, typer.Option("--queries", metavar="N", help="Maximum number of queries. Default: 2,097,152.")
    ] = None,
    tolerance: Annotated[
        float,
        typer.Option(
            "--tolerance", metavar="E", help="Share of the function's energy (its variance) that may be left out."
        ),
    ] = 0.0,
    inputs: Annotated[
        Inputs, typer.Option("--inputs", help="What your function gets for the bits 0 and 1; signs are 1 and -1.")
    ] = "integers",
    values: Annotated[
        Values, typer.Option("--values", help="Values of an expression: bits 0 and 1, or signs 1 and -1.")
    ] = "bits",
    template: Annotated[
        str | None,
        typer.Option(
            "--template",
            metavar="FILE",
            help="Prompts in place of bits: JSON with two prompts, lists zero and one of token ids or pieces of text, "
            "which differ in T places; or file.py:name of a function of a batch of bits.",
        ),
    ] = None,
    answer: Annotated[
        str | None,
        typer.Option("--answer", metavar="A,B", help="Logit A minus logit B, at the last token if there are several."),
    ] = None,
    sample: Annotated[
        Path | None,
        typer.Option(
            "--sample",
            metavar="FILE",
            help="Bits x from a distribution of your own (.npz or .safetensors): report how much the components leave "
            "out on it.",
        ),
    ] = None,
    published: Annotated[
        float | None,
        typer.Option(
            "--published",
            metavar="E",
            help="Also run the testers of LS26, Appendix H, with the proximity parameter E.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", metavar="K", help="Seed of the queries.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Find out which function of T bits a black box computes, with a stated confidence.

    Your function takes a batch [n, T] or one input [T] and returns a number for each. With a template, it takes a
    batch of prompts.

    Example: genscope probe my_code:classify --bits 40
    """
    from genscope.probe.report import LARGEST_BITS

    check_options(
        "probe",
        ("--bits", bits, 1 <= bits <= LARGEST_BITS, f"must be from 1 to {LARGEST_BITS:,}"),
        ("--queries", 1 if queries is None else queries, queries is None or queries >= 1, "must be at least 1"),
        ("--confidence", confidence, 0 < confidence < 1, "must be between 0 and 1"),
        ("--tolerance", tolerance, 0 <= tolerance < 1, "must be a share of the energy, at least 0 and below 1"),
        ("--published", published or 0, published is None or 1e-9 <= published < 1, "must be from 1e-9 to below 1"),
        ("--seed", seed, 0 <= seed < SEEDS, SEED),
    )
    own = is_reference(target)
    if not own and not Path(target).is_file() and (template or answer):
        raise Refusal(
            f"probe got --template or --answer for {target}: these options are for a model or function of your own, "
            "named module:name or file.py:name. Name one, or leave them out."
        )
    if template and inputs != "integers":
        raise Refusal(
            f"probe got --inputs {inputs} with --template: a template turns the integers 0 and 1 into prompts. "
            "Leave --inputs out."
        )
    prompts = TargetPrompts(template, chosen_logits(answer), bits)
    function = of_user(target, prompts) if own else of_name(target, prompts)
    signed = values == "signs"
    if signed and (own or Path(target).is_file()):
        raise Refusal(
            f"probe got --values signs for {target}: the option only applies to expressions. Leave it out, and let "
            "your function return signs itself."
        )
    from genscope import probe as probes
    from genscope.cli._output import print_json

    with users_code(target):
        found = probes.probe(
            with_progress(function) if own else function,
            bits,
            confidence=confidence,
            queries=queries,
            tolerance=tolerance,
            inputs=inputs,
            seed=seed,
        )
        seen = None if sample is None else _at_sample(sample, function, found, bits, inputs, signed=signed)
        options = {"confidence": confidence, "queries": queries, "inputs": inputs, "seed": seed}
        theirs = None if published is None else _published(function, bits, published, **options)
    facts = _facts(found, signed=signed) | {"law": prompts.law, "sample": seen, "published": theirs}
    print_json(facts) if as_json else _print_findings(target, bits, facts)


def _at_sample(
    path: Path, function: Callable[..., Any], found: Any, bits: int, inputs: Inputs, *, signed: bool
) -> dict[str, Any]:
    """How far the components are from the function at the user's own inputs."""
    import numpy as np

    from genscope.cli._arrays import read_arrays
    from genscope.fourier import Expression
    from genscope.probe import Oracle

    x = read_arrays(path).get("x")
    if x is None or x.shape[1:] != (bits,) or len(x) < 2 or not np.isin(x, (0, 1)).all():
        what = "no array x" if x is None else f"x of shape {x.shape}"
        raise Refusal(
            f"{path} holds {what} for --bits {bits}: a sample must be an array x of at least two rows of T bits, 0 "
            "or 1. Write it with numpy.savez('sample.npz', x=x)."
        )
    rows = np.asarray(x) == 1
    kind = "booleans" if isinstance(function, Expression) else inputs
    values = Oracle(function, bits, limit=len(rows) + 8, inputs=kind)(rows)
    errors = values - found.function(rows)
    square, variance = float(np.mean(errors**2)), float(np.var(values))
    return {
        "file": str(path),
        "inputs": len(rows),
        "left_out": square / variance if variance else None,
        "largest_error": (2 if signed else 1) * float(np.abs(errors).max()),  # signs are 1 - 2 bits
    }


def _published(
    function: Callable[..., Any],
    bits: int,
    proximity: float,
    *,
    confidence: float,
    queries: int | None,
    inputs: Inputs,
    seed: int,
) -> dict[str, Any]:
    """What Appendix H's testers say, with each reading of its degree test; each may ask as much as ours."""
    import numpy as np

    from genscope import probe as probes
    from genscope.fourier import Expression
    from genscope.probe.oracle import LIMIT

    def asked(number: int) -> dict[str, Any]:
        kind = "booleans" if isinstance(function, Expression) else inputs
        oracle = probes.Oracle(function, bits, limit=queries or LIMIT, inputs=kind)
        rng = np.random.default_rng([seed, number])
        return {"oracle": oracle, "rng": rng, "proximity": proximity, "confidence": confidence}

    found = {
        "degree": probes.published_degree(**asked(1)),
        "degree_by_directions": probes.published_degree(**asked(2), sides="directions"),
        "sparsity": probes.published_sparsity(**asked(3)),
    }
    facts: dict[str, Any] = {"proximity": proximity}
    for name, each in found.items():
        facts |= {name: each.value, f"{name}_levels_rejected": each.at_least, f"{name}_queries": each.queries}
    return facts


def _facts(found: Any, *, signed: bool) -> dict[str, Any]:
    scale, shift = (-2.0, 1.0) if signed else (1.0, 0.0)
    function = found.function
    components = [
        {"support": list(support), "coefficient": scale * coefficient}
        for support, coefficient in zip(function.supports, function.coefficients, strict=True)
    ]
    constant = shift + scale * function.constant
    components += [{"support": [], "coefficient": constant}] if constant else []
    return {
        "degree": found.degree,
        "sparsity": found.sparsity,
        "relevant": list(found.relevant),
        "components": sorted(components, key=lambda c: (-abs(c["coefficient"]), c["support"])),
        "queries": found.queries,
        "seconds": found.seconds,
        "confidence": found.confidence,
        "exact": found.exact,
        "degree_at_least": found.degree_at_least,
        "sparsity_at_least": found.sparsity_at_least,
        "left_out": found.left_out,
        "guarantee": found.guarantee,
    }


def _print_findings(target: str, bits: int, facts: dict[str, Any]) -> None:
    from genscope.cli._output import counted, echo, print_table

    def known(name: str) -> str:
        return f"at least {facts[f'{name}_at_least']}" if facts[name] is None else str(facts[name])

    relevant = ", ".join(f"x{i}" for i in facts["relevant"][:_SHOWN]) or "none"
    more = f" and {len(facts['relevant']) - _SHOWN} more" if len(facts["relevant"]) > _SHOWN else ""
    echo(f"{target} on {bits} bits")
    echo(f"degree {known('degree')}, sparsity {known('sparsity')} (the constant is not counted)")
    echo(f"relevant bits: {relevant}{more}")
    echo(facts["guarantee"])
    echo(f"Input distribution: {facts['law']}.")
    if (seen := facts["sample"]) is not None:
        share = seen["left_out"]
        missed = (
            "the function is constant" if share is None else f"the components leave out {share:.3g} of the variance"
        )
        echo(
            f"At the {seen['inputs']} inputs of {seen['file']}, which have a law of their own, {missed}; the largest "
            f"error is {seen['largest_error']:.3g}."
        )
    echo(f"{counted(facts['queries'], 'query', 'queries')}, {facts['seconds']:.2g} s\n")
    if (theirs := facts["published"]) is not None:
        _print_published(theirs)
    shown = facts["components"][:_SHOWN]
    if not shown:
        echo("No Fourier components: it is 0 everywhere." if facts["exact"] else "No Fourier components found.")
        return
    of = f", the largest {_SHOWN} of {len(facts['components'])}" if len(facts["components"]) > _SHOWN else ""
    print_table(
        f"Fourier components{of}",
        ["coefficient", "of the parity of"],
        [
            [f"{each['coefficient']:.9g}", ", ".join(f"x{i}" for i in each["support"]) or "nothing (the constant)"]
            for each in shown
        ],
    )


def _print_published(theirs: dict[str, Any]) -> None:
    from genscope.cli._output import echo, print_table

    names = {
        "degree": "degree, cubes along coordinates",
        "degree_by_directions": "degree, cubes along random directions",
        "sparsity": "sparsity, restricted to 12 coordinates",
    }
    rows = [
        [
            words,
            str(theirs[name]) if theirs[name] is not None else f"not below {theirs[f'{name}_levels_rejected']}",
            str(theirs[f"{name}_queries"]),
        ]
        for name, words in names.items()
    ]
    print_table(
        f"Testers of LS26, Appendix H, proximity {theirs['proximity']:g}", ["tester", "first level", "queries"], rows
    )
    echo("They promise nothing: coordinates miss sets, directions see every component alike, whatever its degree.\n")
