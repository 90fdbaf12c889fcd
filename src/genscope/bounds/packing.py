r"""Packing numbers of balls: how many points of mutual distance at least $\epsilon$ they hold; logarithms, in nats.

Source: mousavi2025, Lemma 41.
Departures: the second branch of the lemma is false for the Euclidean ball, where Maurey's argument does not apply; it
is kept as `packing_printed`, next to its counterexample, and nothing uses it. `packing_l1` is what the argument proves.
Guarantee: `packing` and `packing_l1` are proved, with all constants.
"""

import math
from typing import Annotated

from genscope.bounds._base import Bound
from genscope.bounds._logarithms import exp, log, log_multisets, softplus
from genscope.bounds._parameters import checked, count, positive

Dimension = Annotated[float, count("dimension d")]
Separation = Annotated[float, positive("least distance between two points")]


@checked
def packing(*, dimension: Dimension, epsilon: Separation) -> Bound:
    r"""Log packing number of the unit Euclidean ball at separation epsilon (mousavi2025, Lemma 41).

    $\log P\le d\log(1+2/\epsilon)$: balls of radius $\epsilon/2$ around the points are disjoint and lie in a ball of
    radius $1+\epsilon/2$.
    """
    size = ball_size(dimension, -log(epsilon))
    return Bound("packing", {"volume": size}, explicit=True, source="mousavi2025, Lemma 41, first branch")


@checked
def packing_l1(*, dimension: Dimension, epsilon: Separation) -> Bound:
    r"""Log packing number of the l1 ball at Euclidean separation epsilon (mousavi2025, Lemma 41).

    The smaller of the bound by volumes and Maurey's.

    A point of the ball is a mean of vertices $\pm e_i$; of $k$ random ones the mean is at squared distance at most
    $1/k$ from it, in expectation, so multisets of $k$ vertices cover. At $k=\lfloor4/\epsilon^2\rfloor+1$ that distance
    is below $\epsilon/2$ and no two points share a multiset: $\log P\le\log\binom{2d+k-1}k$.
    """
    vertices = exp(math.log(4) - 2 * log(epsilon))
    drawn = vertices if math.isinf(vertices) else math.floor(vertices) + 1.0
    sizes = {
        "volume": ball_size(dimension, -log(epsilon)),
        "Maurey": log_multisets(log(2 * dimension - 1), drawn),
    }
    best = min(sizes, key=sizes.__getitem__)
    return Bound("packing-l1", {best: sizes[best]}, explicit=True, source="mousavi2025, Lemma 41, as Maurey proves it")


@checked
def packing_printed(*, dimension: Dimension, epsilon: Separation) -> Bound:
    r"""NOT VALID: the second branch as printed for the Euclidean ball, $\epsilon^{-2}(1+\log(1+2d\epsilon^2))$.

    The 240 roots of $E_8$, scaled to unit length, have mutual distances of at least 1:

    >>> packing_printed(dimension=8, epsilon=1).value < math.log(240) < packing(dimension=8, epsilon=1).value
    True
    """
    size = exp(-2 * log(epsilon)) * (1 + softplus(math.log(2) + log(dimension) + 2 * log(epsilon)))
    source = "mousavi2025, Lemma 41, second branch (erratum: false for the Euclidean ball)"
    return Bound("packing-printed", {"Maurey": size}, explicit=False, source=source)


def ball_size(size: float, log_ratio: float) -> float:
    """Nats p log(1 + 2 R / ε) of a ball of radius R in p dimensions, where the logarithm of R / ε is given."""
    nats = softplus(math.log(2) + log_ratio)
    return size * nats if size < 1e300 else exp(log(size) + log(nats))  # whole numbers may exceed every float
