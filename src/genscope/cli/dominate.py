"""`genscope dominate`: a trained model against the flat construction of the function it computes.

Source: lintilhac2026, Theorem 2.
Guarantee: that of `genscope.domination`; what the bound assumes is printed with it.
"""

import contextlib
import dataclasses
import math
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from genscope.cli._options import SEEDS, AsJson, ModelName
from genscope.refusal import Refusal

_SHOWN = 20  # components in the table for people
_ANSWERS = {True: "Dominated", False: "Not dominated", None: "Open whether it is dominated"}


def dominate(
    model: ModelName,
    data: Annotated[
        Path, typer.Option("--data", metavar="FILE", help="Arrays x (bits 0 and 1) and y: .safetensors or .npz.")
    ],
    bits: Annotated[int, typer.Option("--bits", metavar="T", help="Number of bits.")],
    tolerance: Annotated[
        float, typer.Option("--tolerance", metavar="E", help="Share of the model's variance that may be left out.")
    ] = 0.05,
    constant: Annotated[
        float | None,
        typer.Option(
            "--constant", metavar="C", help="Constant C of the loss. Default: fitted to the losses on the data."
        ),
    ] = None,
    confidence: Annotated[float, typer.Option("--confidence", metavar="P", help="Confidence of the bound.")] = 0.95,
    probes: Annotated[
        int, typer.Option("--probes", metavar="N", help="Random probe vectors, and pairs of noise draws.")
    ] = 32,
    seed: Annotated[int, typer.Option("--seed", metavar="K", help="Random seed.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Compare a trained model with the flat network of the function it computes, and print the bound that follows.

    The model is probed, the network of its Fourier components is built and verified, and both are measured at the
    data: squared norm, trace of the Hessian, and sharpness under noise. If the construction dominates the model, its
    bound holds for the model, under the assumptions that are printed. Vacuous means no better than a constant.

    Example: genscope dominate trained.safetensors --data train.npz --bits 20
    """
    if not (0 <= seed < SEEDS and probes >= 2 and 0 < confidence < 1 and 0 <= tolerance < 1):
        raise Refusal(
            f"dominate got --seed {seed}, --probes {probes}, --confidence {confidence:g} and --tolerance "
            f"{tolerance:g}: the seed must be between 0 and {SEEDS - 1}, the probes at least 2, the confidence "
            "between 0 and 1, and the tolerance at least 0 and below 1. Correct the one that is out of range."
        )
    if constant is not None and not 0 < constant < math.inf:
        raise Refusal(
            f"dominate got --constant {constant:g}: C must be positive; for losses clipped at 1 it is 0.5. Correct "
            "it, or leave it out to have it fitted."
        )
    from genscope.cli._model_data import as_batch, is_double, load_data, load_model
    from genscope.cli._output import console, print_json

    arrays = load_data(data)
    if isinstance(arrays.x, dict):
        raise Refusal(
            f"{data} has the inputs {', '.join(arrays.x)}: dominate takes functions of bits, stored in one array x. "
            "Write the bits to x."
        )
    if arrays.x.shape[1:] != (bits,) or not ((arrays.x == 0) | (arrays.x == 1)).all() or len(arrays.x) < 2:
        raise Refusal(
            f"{data} has {len(arrays.x)} inputs x of shape {arrays.x.shape[1:]} from {arrays.x.min()} to "
            f"{arrays.x.max()}, with --bits {bits}: x must have at least two rows of T bits, each 0 or 1. Correct x "
            "or --bits."
        )
    if float(arrays.y.std()) == 0:
        raise Refusal(
            f"every label in {data} is {arrays.y.flat[0]}: a constant fits them. Give data with at least two "
            "different labels."
        )
    from genscope.cli._jax import prepare_jax

    prepare_jax()
    import jax.random as jr

    from genscope.domination import dominate as compare
    from genscope.precision import float64
    from genscope.train import squared

    start = time.perf_counter()
    loaded = load_model(model)
    console(stderr=True).print(f"probing {model}, then measuring it and its construction on {len(arrays.x)} examples")
    with float64() if is_double(loaded) else contextlib.nullcontext():
        found = compare(
            loaded,
            as_batch(loaded, arrays, squared),
            bits,
            key=jr.key(seed),
            tolerance=tolerance,
            constant=constant,
            confidence=confidence,
            probes=probes,
            seed=seed,
        )
    facts = {"model": model, "data": str(data)} | _facts(found) | {"seconds": time.perf_counter() - start}
    print_json(facts) if as_json else _print_comparison(facts)


def _facts(found: Any) -> dict[str, Any]:
    function, built = found.function, found.built
    pairs = sorted(
        zip(function.function.supports, function.function.coefficients, strict=True), key=lambda pair: -abs(pair[1])
    )
    return {
        "function": {
            "degree": function.degree,
            "sparsity": function.sparsity,
            "components": [{"support": list(set_), "coefficient": coefficient} for set_, coefficient in pairs],
            "constant": function.function.constant,
            "left_out": function.left_out,
            "queries": function.queries,
            "guarantee": function.guarantee,
        },
        "constructed": _plain(found.constructed) | {"verified": found.verified, "promised_error": built.error},
        "trained": _plain(found.trained),
        "ratios": {
            "norm_squared": found.ratios.norm_ratio,
            "perturbed_sharpness": found.ratios.sharpness_ratio,
            "trace": found.trained.trace.mean / found.constructed.trace.mean,
        },
        "dominated": found.dominated,
        "bound": {
            "value": found.bound.value,
            "terms": dict(found.bound.terms),
            "trivial": found.bound.trivial,
            "sigma": found.sigma,
            "constant": found.constant,
            "kind": found.bound.kind,
            "source": found.bound.source,
        },
        "vacuous": found.bound.vacuous,
        "assumptions": list(found.assumptions),
    }


def _plain(measured: Any) -> dict[str, Any]:
    facts = dataclasses.asdict(measured)
    for name in ("trace", "perturbed_sharpness"):
        estimate = getattr(measured, name)
        facts[name] = {"mean": estimate.mean, "sem": estimate.sem}
    return facts


def _print_comparison(facts: dict[str, Any]) -> None:
    from genscope.cli._output import echo, print_table

    function, built, trained, bound = (facts[name] for name in ("function", "constructed", "trained", "bound"))
    echo(
        f"{facts['model']} computes {function['sparsity']} Fourier components of degree at most {function['degree']}; "
        f"{function['left_out']:.2g} of its variance is left out."
    )
    shown = function["components"][:_SHOWN]
    print_table(
        "Function",
        ["component", "coefficient"],
        [[" ".join(f"x{bit}" for bit in each["support"]), f"{each['coefficient']:.4g}"] for each in shown],
    )
    if len(function["components"]) > _SHOWN:
        echo(f"and {len(function['components']) - _SHOWN} smaller ones")
    rows = [
        ["parameters", str(trained["parameters"]), str(built["parameters"])],
        ["squared norm", f"{trained['norm_squared']:.6g}", f"{built['norm_squared']:.6g}"],
        ["trace of the Hessian", _with_error(trained["trace"]), _with_error(built["trace"])],
        [
            f"sharpness under noise {bound['sigma']:.3g}",
            _with_error(trained["perturbed_sharpness"]),
            _with_error(built["perturbed_sharpness"]),
        ],
        ["mean loss on the data", f"{trained['mean_loss']:.4g}", f"{built['mean_loss']:.4g}"],
    ]
    print_table("Trained model and construction", ["quantity", "trained", "constructed"], rows)
    ratios = facts["ratios"]
    echo(
        f"{_ANSWERS[facts['dominated']]}: trained over constructed is {ratios['norm_squared']:.3g} in squared norm and "
        f"{ratios['perturbed_sharpness']:.3g} in sharpness under noise."
    )
    echo(f"Bound on the squared risk {bound['value']:.4g} (C = {bound['constant']:.3g}), if:")
    for assumption in facts["assumptions"]:
        echo(f"- {assumption}.")
    said = "Vacuous" if facts["vacuous"] else "Informative"
    echo(f"{said}: the best constant prediction has risk {bound['trivial']:.4g}, not clipped.")
    echo(f"{facts['seconds']:.1f} s")


def _with_error(found: dict[str, float]) -> str:
    from genscope.estimate import Estimate

    return str(Estimate(found["mean"], found["sem"])) if found["sem"] else f"{found['mean']:.4g}"
