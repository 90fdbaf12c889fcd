"""The constructions of Section 5, built and verified: exactness, norms against their formulas, sharpness.

Source: edelman2022, Section 5.
Departures: supports, and the values of general functions, are drawn, where the proposition speaks of all.
Guarantee: that of `constructions.verify`, in float64.
"""

from collections.abc import Callable, Mapping
from typing import Any

import jax.random as jr
import numpy as np
from jaxtyping import Array, Key

from genscope import constructions
from genscope.constructions import Construction, SparseFunction
from genscope.lab import Scatter, Study, within
from genscope.random import stream
from genscope.tasks import SparseParity

BUILDERS: Mapping[str, Callable[..., Construction]] = {
    "threshold": constructions.threshold_sum,
    "bag-threshold": constructions.bag_threshold,
    "symmetric": constructions.symmetric,
    "bag-symmetric": constructions.bag_symmetric,
    "any": constructions.any_function,
    "bag-any": constructions.bag_any_function,
    "random-any": constructions.random_any_function,
}


def trial(
    key: Key[Array, ""], *, construction: str, context_length: int, support_size: int, least_ones: int, dimension: int
) -> dict[str, Any]:
    """Build one construction on a drawn support, verify it, and measure its weights.

    Thresholds ask for `least_ones`, symmetric functions are parities, the others have normal values. A dimension of 0
    means coordinate vectors.
    """
    function = draw_function(stream(key, "function"), construction, context_length, support_size, least_ones)
    drawn = {"dimension": dimension, "key": stream(key, "vectors")} if dimension else {}
    built = BUILDERS[construction](function, **drawn)
    verdict = constructions.verify(built, function, key=stream(key, "inputs"))
    norms = {name: norm for name, norm in constructions.weight_norms(built.model).items() if norm is not None}
    return {
        "max_error": verdict.max_error,
        "promised_error": built.error,
        "exact": verdict.exact,
        "verified": verdict.verified,
        "inputs_checked": verdict.inputs_checked,
        "exhaustive": verdict.exhaustive,
        "gamma": built.gamma,
        "gamma_needed": built.needed,
        "norm_excess": max(norm / built.norms[name] for name, norm in norms.items()),
        **{f"norm_{name}": norm for name, norm in norms.items()},
        **{f"promised_{name}": norm for name, norm in built.norms.items()},
        **{name: built.constants[name] for name in ("beta", "rho") if name in built.constants},
    }


def draw_function(
    key: Key[Array, ""], construction: str, context_length: int, support_size: int, least_ones: int
) -> SparseFunction:
    """The function that a trial represents."""
    sizes = {"context_length": context_length, "support_size": support_size}
    parity = SparseFunction.of(SparseParity.draw(stream(key, "support"), **sizes))
    if construction in ("symmetric", "bag-symmetric"):
        return parity
    if construction in ("threshold", "bag-threshold"):
        return SparseFunction.threshold(parity.support, least_ones, context_length=context_length)
    values = np.asarray(jr.normal(stream(key, "values"), (2**support_size,)), float)
    return SparseFunction(parity.support, values, context_length)


def _points(construction: str, *cases: tuple[int, ...]) -> list[dict[str, Any]]:
    """Points of one construction from (T, s, r, d), r and d being 0 where they mean nothing."""
    axes = ("context_length", "support_size", "least_ones", "dimension")
    return [{"construction": construction} | dict(zip(axes, (*case, 0, 0), strict=False)) for case in cases]


STUDY = Study(
    name="edelman2022-constructions",
    title="Transformers built to represent sparse functions",
    source="edelman2022, Section 5",
    trial=trial,
    trial_cost=0.2,
    points=(
        *_points("threshold", (12, 3, 2), (12, 3, 3), (1000, 3, 3), (1000, 5, 5)),
        *_points("bag-threshold", (12, 3, 3), (1000, 3, 3)),
        *_points("symmetric", (12, 3), (14, 4), (1000, 5)),
        *_points("bag-symmetric", (12, 3), (1000, 5)),
        *_points("any", (12, 3), (14, 4), (1000, 3), (1000, 5)),
        *_points("bag-any", (12, 3), (1000, 5)),
        *_points("random-any", (12, 3, 0, 64), (1000, 3, 0, 128), (1000, 3, 0, 256), (1000, 5, 0, 512)),
    ),
    seeds=3,
    figures=(
        Scatter(
            title="Sharpness of the constructions",
            answer="The constructions attend with a sharpness γ of {least} to {most}",
            caption=(
                "The norm of W_Q, which is the sharpness γ of attention, against the context length, both axes "
                "logarithmic. The proposition allows O(log(Ts)); random vectors of low dimension pay for their inner "
                "products."
            ),
            labels={"context_length": "context length T", "gamma": "sharpness γ", "construction": "construction"},
            x="context_length",
            y="gamma",
            by="construction",
            log_x=True,
            log_y=True,
        ),
    ),
    check=within(
        context_length=(1, 100_000),
        support_size=(1, constructions.LARGEST_SUPPORT),
        least_ones=(0, 12),
        dimension=(0, 4096),
    ),
)
