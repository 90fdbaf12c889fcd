r"""Covering a ball of parameters, as a comparator: linear in parameters, without context length or sample size.

Source: none in the papers; a maximal packing of a ball of radius $R$ in $\mathbb R^p$ covers it, consists of members of
the ball and, by volumes, has at most $(1+2R/\delta)^p$ elements.
Guarantee: proved, with all constants.
"""

import math
from collections.abc import Callable
from typing import Annotated

from genscope.bounds._base import Bound
from genscope.bounds._logarithms import log
from genscope.bounds._parameters import Epsilon, checked, count, norm
from genscope.bounds.attention import (
    VALUE_SPECTRAL,
    ContextNorm,
    Dimension,
    Lipschitz,
    SoftmaxConstant,
    TokenNorm,
    Width,
)
from genscope.bounds.packing import ball_size
from genscope.refusal import Refusal

_SOURCE = "volumes of balls"


@checked
def volumetric(
    *,
    parameters: Annotated[float, count("number of parameters p")],
    radius: Annotated[float, norm("radius R of the ball of parameters, in the Frobenius norm")],
    epsilon: Epsilon,
) -> Bound:
    r"""Log covering number of a ball of parameters, in its own norm.

    $p\log(1+2R/\epsilon)$ for p parameters in a ball of radius R, at accuracy $\epsilon$.
    """
    return Bound(
        "volumetric", {"cover": ball_size(parameters, log(radius) - log(epsilon))}, explicit=True, source=_SOURCE
    )


@checked
def volumetric_head(
    *,
    value_radius: Annotated[float, norm("Frobenius norm of W_V")],
    value_spectral: Annotated[float, VALUE_SPECTRAL],
    query_key_radius: Annotated[float | None, norm("Frobenius norm of W_QK, covered as one d x d matrix")] = None,
    query_radius: Annotated[float | None, norm("Frobenius norm of W_Q, covered apart from W_K")] = None,
    key_radius: Annotated[float | None, norm("Frobenius norm of W_K, covered apart from W_Q")] = None,
    input_norm: TokenNorm,
    context_norm: ContextNorm,
    lipschitz: Lipschitz = 1.0,
    epsilon: Epsilon,
    width: Width,
    dimension: Dimension,
    softmax_constant: SoftmaxConstant = None,
) -> Bound:
    r"""Log covering number of one attention head by counting parameters: of W_V and W_QK, or of W_V, W_Q and W_K.

    $\|f-\hat f\|\le L_\sigma B_X\|W_V-\hat W_V\|+cL_\sigma B_VB_X^2B_z\|W_{QK}-\hat W_{QK}\|$, and for covers within
    the balls $\|W_QW_K^\top-\hat W_Q\hat W_K^\top\|\le R_K\|W_Q-\hat W_Q\|+R_Q\|W_K-\hat W_K\|$. Each matrix gets a
    share of $\epsilon$ in proportion to its number of parameters, which is best for small $\epsilon$. Where all norms
    are given, the smaller of the two.
    """
    if (query_radius is None) != (key_radius is None) or (query_key_radius is None and query_radius is None):
        raise Refusal(
            f"volumetric_head got {query_key_radius=}, {query_radius=}, {key_radius=}: the scores are covered through "
            "W_QK, or through W_Q and W_K. Give query_key_radius alone, or both query_radius and key_radius."
        )
    values = log(lipschitz) + log(input_norm)
    scores = values + log(softmax_constant or 1.0) + log(value_spectral) + log(input_norm) + log(context_norm)
    # Per matrix: its number of parameters, and the logarithm of its radius times what the output loses by its error.
    value = {"value": (dimension * width, values + log(value_radius))}
    found = []
    if query_key_radius is not None:
        found.append(_shared(value | {"query-key": (dimension**2, scores + log(query_key_radius))}, epsilon))
    if query_radius is not None and key_radius is not None:
        each = (dimension * width, scores + log(query_radius) + log(key_radius))
        found.append(_shared(value | {"query": each, "key": each}, epsilon))
    terms = min(found, key=lambda one: sum(one.values()))
    return Bound("volumetric-head", terms, explicit=True, source=_SOURCE)


def _shared(matrices: dict[str, tuple[float, float]], epsilon: float) -> dict[str, float]:
    total = sum(size for size, _ in matrices.values())
    return {
        name: ball_size(size, reach - log(epsilon) + log(total) - log(size)) for name, (size, reach) in matrices.items()
    }


def crossover(
    first: Callable[[float], Bound], second: Callable[[float], Bound], *, low: float, high: float
) -> float | None:
    """The accuracy between `low` and `high` at which two covering numbers swap places, by bisection; None if not.

    Covers by norms grow like 1/ε², covers by parameters like log 1/ε: the former are smaller at coarse accuracies.
    """
    if not 0 < low < high < math.inf:
        raise Refusal(
            f"crossover got low={low!r}, high={high!r}: the accuracies must satisfy 0 < low < high. Correct the range."
        )

    def ahead(log_epsilon: float) -> bool:
        epsilon = math.exp(log_epsilon)
        return first(epsilon).value < second(epsilon).value

    left, right = math.log(low), math.log(high)
    at_left = ahead(left)
    if at_left == ahead(right):
        return None
    while right - left > 1e-12:
        middle = (left + right) / 2
        left, right = (middle, right) if ahead(middle) == at_left else (left, middle)
    return math.exp(right)
