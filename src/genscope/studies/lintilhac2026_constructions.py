"""The Fourier construction, built and measured: its error on whole cubes, its norms and trace against autodiff.

Source: lintilhac2026, Appendix B; Theorems 10, 13 and 14.
Departures: supports and coefficients of the cubes are drawn, as in the paper's experiments; the six cases of the traces
are ours, chosen to be small, large, disjoint and overlapping.
Guarantee: float64; every input of a cube is evaluated, and every Hessian-vector product of an exact trace.
"""

import math
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from genscope.constructions import FourierConstruction, fourier_components
from genscope.constructions.fourier_verification import outputs
from genscope.fourier import points
from genscope.fourier.walsh import WalshFunction, parity, random_function, tiling
from genscope.lab import Plan, Point, Scatter, Study, grid, within
from genscope.measure.sharpness import hessian_trace
from genscope.precision import float64
from genscope.random import stream
from genscope.refusal import Refusal
from genscope.tasks import Batch

EXACT = 1e-14  # attention on positions without a component, so that rounding is all that is left
BLOCKS = {  # by the paper's letters
    "A": "score",
    "K": "key",
    "V": "value",
    "E": "expand",
    "b": "threshold",
    "F": "contract",
    "W2": "select",
    "w": "readout",
}
CASES = {
    "G1": WalshFunction(6, ((0, 1), (2, 3)), (0.6, 0.8), "phi"),
    "G2": WalshFunction(8, ((0, 1, 2), (2, 3, 4), (5, 6, 7)), (0.48, 0.64, 0.6), "phi"),
    "G3": WalshFunction(10, ((0,), (9,)), (0.6, 0.8), "phi"),
    "G4": WalshFunction(10, ((0, 1, 2, 3, 4), (5, 6, 7, 8, 9)), (0.6, 0.8), "phi"),
    "G5": parity(12),
    "G6": tiling(12, 2),
}
METHODS = {"gradients": "gauss_newton", "Hessian": "exact"}


def cube_trial(key: Key[Array, ""], *, context_length: int, degree: int, sparsity: int) -> dict[str, Any]:
    """Build a random function, exactly, as published and with attention half as sharp; measure it on all inputs."""
    sizes = {"dim": context_length, "degree": degree, "sparsity": sparsity}
    function = random_function(stream(key, "function"), **sizes, basis="phi")
    values, inputs = function.truth_table(), points(context_length)
    exact, published = fourier_components(function, inactive=EXACT), fourier_components(function)
    with float64():
        blurred = eqx.tree_at(lambda model: model.key, exact.model, exact.model.key / 2)
    errors = [np.abs(outputs(m, inputs) - values).max() for m in (exact.model, published.model, blurred)]
    return {
        "max_error": float(errors[0]),
        "published_error": float(errors[1]),
        "promised_error": published.error,
        "blurred_error": float(errors[2]),
        "inputs_checked": len(inputs),
    }


def trace_trial(key: Key[Array, ""], *, case: str, variant: str, method: str) -> dict[str, Any]:
    """Norms and curvature of one case by closed form and by automatic differentiation; nothing is random.

    The gaps are the largest of any block: of a squared norm relative to itself, of a trace relative to the whole.
    """
    built = {name: fourier_components(CASES[case], variant=name) for name in ("full", "minimal")}
    found = built[variant]
    traces, norms = _traces(found, method), found.norm_squared
    measured = {block: float(np.sum(np.asarray(getattr(found.model, name)) ** 2)) for block, name in BLOCKS.items()}
    closed = {block: 2 * found.gradient_squared[block] for block in BLOCKS}
    return {
        "norm_squared": norms["total"],
        "norm_gap": max(abs(measured[block] / norms[block] - 1) for block in BLOCKS),
        "trace_full": built["full"].trace,
        "trace_minimal": built["minimal"].trace,
        "trace": found.trace,
        "trace_measured": sum(traces.values()),
        "block_gap": max(abs(traces[block] - closed[block]) for block in BLOCKS) / found.trace,
        "trace_gap": abs(sum(traces.values()) / found.trace - 1),
        "unpublished": 2 * found.gradient_squared["F_pos"] / found.trace,
    }


def _traces(built: FourierConstruction, method: str) -> dict[str, float]:
    """Traces of the blocks by automatic differentiation, over the whole cube."""
    with float64():
        batch = Batch(jnp.asarray(points(built.function.dim)), jnp.asarray(built.function.truth_table()))
        groups = hessian_trace(built.model, batch, method=METHODS[method]).groups
    return {block: groups[name].mean for block, name in BLOCKS.items()}


def check_shape(point: Point) -> None:
    """There are as many sets of a size as components, and as many bits."""
    within(context_length=(1, 16), degree=(1, 16), sparsity=(1, 16))(point)
    bits, degree, sparsity = (int(point[axis]) for axis in ("context_length", "degree", "sparsity"))
    if sparsity > min(bits, math.comb(bits, degree)):
        raise Refusal(
            "sparsity must be at most the number of bits, and at most the number of subsets of that degree. Lower it."
        )


def check_case(point: Point) -> None:
    """A trace has one of the six cases, a parameterization and a method."""
    known = {"case": tuple(CASES), "variant": ("full", "minimal"), "method": tuple(METHODS)}
    for axis, values in known.items():
        if axis in point and point[axis] not in values:
            raise Refusal(f"{axis} must be one of {', '.join(values)}. Choose one of them.")


_SHAPES = ((6, 2, 2), (8, 3, 4), (10, 2, 5), (10, 5, 3), (12, 3, 6), (12, 12, 1), (14, 4, 8), (14, 7, 2))  # T, k, s
_CUBES: tuple[Point, ...] = tuple(
    dict(zip(("context_length", "degree", "sparsity"), shape, strict=True)) for shape in _SHAPES
)

CUBES = Study(
    name="lintilhac2026-constructions",
    title="Transformers built to compute sums of parities",
    source="lintilhac2026, Appendix B",
    trial=cube_trial,
    trial_cost=0.8,
    points=_CUBES,
    seeds=3,
    budgets={"quick": Plan(_CUBES)},
    figures=(
        Scatter(
            title="Error of the built network on the whole cube",
            answer="On the whole cube the built network errs by at most {most}",
            folded=True,
            caption=(
                "Largest error over all inputs when positions without a component get a share 1e-14 of the second "
                "attention, against the number of bits: rounding is all that is left. The published weights give such "
                "positions a logit of 0, and compute another function."
            ),
            labels={"context_length": "bits T", "max_error": "largest error", "degree": "degree k"},
            x="context_length",
            y="max_error",
            by="degree",
            log_y=True,
        ),
    ),
    check=check_shape,
)

TRACES = Study(
    name="lintilhac2026-traces",
    title="Norm and sharpness of the built Transformers, by formula and by differentiation",
    source="lintilhac2026, Theorems 10, 13 and 14",
    trial=trace_trial,
    trial_cost=6.0,
    points=(
        *grid(case=list(CASES), variant=["full", "minimal"], method=["gradients"]),
        *grid(case=["G1", "G2", "G3", "G4"], variant=["full"], method=["Hessian"]),
        *grid(case=["G1", "G2"], variant=["minimal"], method=["Hessian"]),
    ),
    budgets={
        "quick": Plan(
            (
                *grid(case=["G1", "G2", "G3"], variant=["full"], method=["Hessian"]),
                *grid(case=["G4", "G5", "G6"], variant=["full"], method=["gradients"]),
            )
        ),
        "paper": Plan(
            (
                *grid(case=list(CASES), variant=["full", "minimal"], method=["gradients"]),
                *grid(case=list(CASES), variant=["full"], method=["Hessian"]),
                *grid(case=["G1", "G2", "G3"], variant=["minimal"], method=["Hessian"]),
            )
        ),
    },
    figures=(
        Scatter(
            title="Trace of the Hessian by formula and by differentiation",
            folded=True,
            caption=(
                "Each point is one function and parameterization: the trace of the Hessian of the mean squared loss "
                "over the whole cube by automatic differentiation, against the closed form."
            ),
            source="lintilhac2026, Theorems 13 and 14",
            labels={"trace": "closed form", "trace_measured": "automatic differentiation", "variant": "parameters"},
            x="trace",
            y="trace_measured",
            by="variant",
            diagonal=True,
            log_x=True,
            log_y=True,
        ),
    ),
    check=check_case,
)
