r"""Covering numbers from combinatorial dimensions: VC, pseudo and fat-shattering.

Source: Section 2.2 of the lecture notes on edelman2022; Anthony and Bartlett (1999), Theorems 3.7, 12.2 and 12.8.
Departures: the exponent of the fat-shattering bound is printed wrongly in the lecture notes (docs/errata.md).
Guarantee: proved in the sources, with all constants; logarithms in nats.
"""

import math
from typing import Annotated

from genscope.bounds._base import Bound
from genscope.bounds._logarithms import exp, log, log_multisets, softplus
from genscope.bounds._parameters import Epsilon, Number, checked, count, positive
from genscope.refusal import Refusal

SampleSize = Annotated[float, count("number of points m, at least the dimension")]


def _check(caller: str, dimension: float, points: float) -> None:
    if points < dimension:
        raise Refusal(
            f"{caller} got dimension {dimension} with points={points}: the bound needs at least as many points as "
            "dimensions. Give more points."
        )


@checked
def vc_cover(*, vc_dimension: Annotated[float, count("VC dimension v")], points: SampleSize) -> Bound:
    r"""Log covering number of functions into {0, 1}, by VC dimension (Anthony and Bartlett 1999, Theorem 3.7).

    At any accuracy below 1: $\log\sum_{i\le v}\binom mi\le v\log(em/v)$. The number of labelings
    (Sauer, Shelah), which for covers within the class is the covering number.
    """
    _check("vc_cover", vc_dimension, points)
    size = min(_subsets(points, vc_dimension), exp(log(vc_dimension) + log(1 + log(points) - log(vc_dimension))))
    return Bound("vc-cover", {"cover": size}, explicit=True, source="anthony1999, Theorem 3.7")


def _subsets(points: float, most: float) -> float:
    r"""$\log\sum_{i\le v}\binom mi$, summed downwards from $i=v$ while it is short; else infinite."""
    if points == most:
        return exp(log(points) + log(math.log(2)))
    if points > 1e300:
        return math.inf
    total = ratio = 1.0
    for i in range(100_000):
        ratio *= (most - i) / (points - most + 1 + i)  # binom(m, v - i - 1) / binom(m, v)
        total += ratio
        if ratio < 1e-17 * total:
            return log_multisets(log(points - most), most) + math.log(total)
    return math.inf


@checked
def pseudo_cover(
    *,
    pseudo_dimension: Annotated[float, count("pseudo-dimension p")],
    range: Annotated[float, positive("B, where values lie in [0, B]")] = 1.0,
    epsilon: Epsilon,
    points: SampleSize,
) -> Bound:
    r"""Log covering number of functions into [0, B], by pseudo-dimension (Anthony and Bartlett 1999, Theorem 12.2).

    $p\log(emB/(\epsilon p))$, and 0 for $\epsilon\ge B$.
    """
    _check("pseudo_cover", pseudo_dimension, points)
    levels = log(range) - log(epsilon)
    inner = 1 + log(points) + levels - log(pseudo_dimension)
    size = exp(log(pseudo_dimension) + log(inner)) if levels > 0 else 0.0
    return Bound("pseudo-cover", {"cover": size}, explicit=True, source="anthony1999, Theorem 12.2")


@checked
def fat_cover(
    *,
    fat_dimension: Annotated[float, count("fat-shattering dimension v at scale ε/4")],
    epsilon: Annotated[float, Number("accuracy of the cover", high=1, closed=(False, True))],
    points: SampleSize,
) -> Bound:
    r"""Log covering number of functions into [0, 1], by fat-shattering dimension (Anthony and Bartlett, Theorem 12.8).

    $\log2+\lceil v\log_2(2em/(v\epsilon))\rceil\log(m(\frac2\epsilon+1)^2)$.
    """
    _check("fat_cover", fat_dimension, points)
    inner = (math.log(2) + 1 + log(points) - log(fat_dimension) - log(epsilon)) / math.log(2)
    exponent = exp(log(fat_dimension) + log(inner))
    exponent = exponent if math.isinf(exponent) else float(math.ceil(exponent))
    size = exponent * (log(points) + 2 * softplus(math.log(2) - log(epsilon)))
    return Bound("fat-cover", {"cover": math.log(2) + size}, explicit=True, source="anthony1999, Theorem 12.8")
