"""`genscope sharpness`: how curved the loss of a model is at its data, with error bars.

Source: lintilhac2026, Section 2.2.
Guarantee: that of `genscope.measure.sharpness`.
"""

import contextlib
import math
import time
from typing import Annotated, Any, Literal

import typer

from genscope.cli._losses import HELP as LOSS_HELP
from genscope.cli._options import SEED, SEEDS, AsJson, DataFile, ModelName, check_options
from genscope.refusal import Refusal

By = Literal["total", "group"]
Method = Literal["split", "xtrace", "hutchpp", "hutchinson", "exact", "gauss-newton", "fisher", "xnystrace"]


def sharpness(
    model: ModelName,
    data: DataFile,
    by: Annotated[By, typer.Option("--by", help="Also the trace of each array of weights.")] = "total",
    method: Annotated[Method, typer.Option("--method", help="How the trace is computed.")] = "xtrace",
    probes: Annotated[
        int, typer.Option("--probes", metavar="N", help="Random probe vectors, and pairs of noise draws.")
    ] = 32,
    loss: Annotated[str, typer.Option("--loss", metavar="NAME", help=LOSS_HELP.format(""))] = "squared",
    sigma: Annotated[
        float,
        typer.Option("--sigma", metavar="X", help="Standard deviation of the weight noise of the smoothed sharpness."),
    ] = 0.01,
    seed: Annotated[int, typer.Option("--seed", metavar="K", help="Seed of random vectors and noise.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Measure the trace and the norm of the Hessian of a model's mean loss, and the sharpness of its smoothed loss.

    Methods with random probes give a standard error; exact takes one Hessian-vector product per parameter,
    gauss-newton leaves out the part of the Hessian that vanishes with the loss, and fisher estimates the same from
    labels drawn by the model.

    Example: genscope sharpness model.safetensors --data data.npz --by group
    """
    check_options(
        "sharpness",
        ("--seed", seed, 0 <= seed < SEEDS, SEED),
        ("--probes", probes, probes >= 2, "must be at least 2 for a standard error"),
        ("--sigma", sigma, 0 < sigma < math.inf, "must be a positive number"),
    )
    from genscope.cli._losses import find_loss
    from genscope.cli._model_data import is_double, load_data, load_model
    from genscope.cli._output import print_json

    arrays = load_data(data)
    from genscope.cli._jax import prepare_jax

    prepare_jax()
    from genscope.precision import float64

    function = find_loss(loss, slope=True)
    loaded = load_model(model)
    start = time.perf_counter()
    with float64() if is_double(loaded) else contextlib.nullcontext():
        facts = _measured(loaded, arrays, by, method, probes, function, sigma, seed)
    facts = {"model": model, "data": str(data)} | facts | {"seconds": time.perf_counter() - start}
    print_json(facts) if as_json else _print_trace(facts)


def _measured(
    model: Any, arrays: Any, by: By, method: Method, probes: int, function: Any, sigma: float, seed: int
) -> dict[str, Any]:
    import jax.random as jr

    from genscope import measure
    from genscope.cli._model_data import as_batch
    from genscope.random import stream

    batch = as_batch(model, arrays, function)
    mean_loss = measure.mean_loss(model, batch, function)
    if not math.isfinite(mean_loss):
        raise Refusal(
            f"the mean {function.name} loss of the model is {mean_loss}: curvature is only defined where the loss "
            "is finite. Check for weights that are not finite, and for inputs the model was not made for."
        )
    sizes = measure.group_sizes(model)
    key = jr.key(seed)
    _say(f"trace of the Hessian of {sum(sizes.values()):,} parameters at {len(batch.y):,} examples, by {method}")
    trace = measure.hessian_trace(
        model, batch, function, method=method.replace("-", "_"), probes=probes, key=stream(key, "trace")
    )
    _say("operator norm of the Hessian, by Lanczos")
    norm = measure.operator_norm(model, batch, function, key=stream(key, "norm"))
    _say(f"smoothed loss, from {probes} pairs of noise")
    smoothed = measure.smoothed_sharpness(
        model, batch, function, sigma=sigma, pairs=probes, key=stream(key, "smoothed")
    )
    facts = {
        "parameters": sum(sizes.values()),
        "examples": len(batch.y),
        "loss": function.name,
        "mean_loss": mean_loss,
        "method": method,
        "probes": probes,
        "products": trace.products,
        "trace": _plain(trace),
        "operator_norm": {
            "value": norm.norm,
            "residual": norm.residual,
            "lowest": norm.lowest,
            "highest": norm.highest,
        },
        "smoothed_sharpness": _plain(smoothed) | {"sigma": sigma},
    }
    if by == "group":
        facts["groups"] = {name: _plain(found) | {"parameters": sizes[name]} for name, found in trace.groups.items()}
    return facts


def _plain(estimate: Any) -> dict[str, float]:
    return {"mean": estimate.mean, "sem": estimate.sem}


def _say(what: str) -> None:
    from genscope.cli._output import console

    console(stderr=True).print(what)


def _print_trace(facts: dict[str, Any]) -> None:
    from genscope.cli._output import echo, print_table

    echo(
        f"{facts['model']}: {facts['parameters']:,} parameters, mean {facts['loss']} loss {facts['mean_loss']:.4g} on "
        f"{facts['examples']:,} examples"
    )
    norm, smoothed = facts["operator_norm"], facts["smoothed_sharpness"]
    matrices = {"gauss-newton": "Gauss–Newton matrix", "xnystrace": "Gauss–Newton matrix", "fisher": "Fisher matrix"}
    matrix = matrices.get(facts["method"], "Hessian")
    rows = [
        [f"trace of the {matrix}", _with_error(facts["trace"]), _cost(facts)],
        [
            "operator norm of the Hessian",
            f"{norm['value']:.4g}",
            f"an eigenvalue within {norm['residual']:.2g} of it; Ritz values {norm['lowest']:.4g} to "
            f"{norm['highest']:.4g}",
        ],
        [
            "smoothed sharpness",
            _with_error(smoothed),
            f"noise {smoothed['sigma']:g} on every weight, {facts['probes']} pairs",
        ],
    ]
    print_table("Sharpness", ["quantity", "value ± standard error", "how"], rows)
    if groups := facts.get("groups"):
        print_table(
            "Trace by array of weights",
            ["array", "value ± standard error", "parameters"],
            [[name, _with_error(found), f"{found['parameters']:,}"] for name, found in groups.items()],
        )
    echo(f"{facts['seconds']:.1f} s")


def _cost(facts: dict[str, Any]) -> str:
    number = f"{facts['probes']} draws of labels" if facts["method"] == "fisher" else f"{facts['products']} products"
    return f"{facts['method']}, {number}"


def _with_error(found: dict[str, float]) -> str:
    from genscope.estimate import Estimate

    exact = f"{found['mean']:.6g} (exact)"
    return str(Estimate(found["mean"], found["sem"])) if found["sem"] else exact
