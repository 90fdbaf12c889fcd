r"""Covering and packing of finitely many points, from the matrix of their distances.

An $\epsilon$-cover of a set is a subset such that every point is within $\epsilon$ of a member; the covering number
$N(\epsilon)$ is the size of the smallest one, and cannot rise with $\epsilon$. A packing is a subset whose points are
pairwise farther than $\epsilon$ apart; $M(2\epsilon)\le N(\epsilon)\le M(\epsilon)$ for the largest.

Source: edelman2022, Definition 2.1 for point sets (lecture notes, Section 2.1.1).
Departures: distances within $10^{-12}$ of $\epsilon$ count as equal to it, since $\sqrt{0.3^2+0.4^2}$ is not 0.5 in
floating point. The worked example of the lecture notes mixes two point sets (docs/errata.md).
Guarantee: exact by branch and bound up to 64 points; `greedy_cover` is a cover at most $1+\log n$ times too large.
"""

import functools

import numpy as np
from jaxtyping import Float

from genscope.refusal import Refusal

MOST_POINTS = 64
_SLACK = 1e-12


def smallest_cover(distances: Float[np.ndarray, "n n"], epsilon: float) -> tuple[int, ...]:
    """Indices of a smallest cover; its length is the covering number.

    >>> points = np.array([[0.5, 0.7], [0.2, 0.3], [0.6, 0.65]])
    >>> apart = np.linalg.norm(points[:, None] - points, axis=-1)
    >>> [len(smallest_cover(apart, epsilon)) for epsilon in (0.05, 0.2, 0.5)]
    [3, 2, 1]
    """
    balls = _balls("smallest_cover", distances, epsilon)
    _limit("smallest_cover", len(balls))
    best = greedy_cover(distances, epsilon)

    def extend(chosen: tuple[int, ...], uncovered: int) -> None:
        nonlocal best
        if not uncovered:
            best = chosen
            return
        widest = max((ball & uncovered).bit_count() for ball in balls)
        if len(chosen) - (-uncovered.bit_count() // widest) >= len(best):
            return
        # Some member must cover the point that fewest can cover: branch on which.
        point = min(_members(uncovered), key=lambda i: balls[i].bit_count())
        for centre in sorted(_members(balls[point]), key=lambda i: -(balls[i] & uncovered).bit_count()):
            extend((*chosen, centre), uncovered & ~balls[centre])

    extend((), (1 << len(balls)) - 1)
    return tuple(sorted(best))


def greedy_cover(distances: Float[np.ndarray, "n n"], epsilon: float) -> tuple[int, ...]:
    """Indices of a cover, each time by the point that covers most of what is left."""
    balls = _balls("greedy_cover", distances, epsilon)
    uncovered, chosen = (1 << len(balls)) - 1, []
    while uncovered:
        centre = max(range(len(balls)), key=lambda i: (balls[i] & uncovered).bit_count())
        chosen.append(centre)
        uncovered &= ~balls[centre]
    return tuple(sorted(chosen))


def largest_packing(distances: Float[np.ndarray, "n n"], epsilon: float) -> tuple[int, ...]:
    """Indices of a largest packing; its length is the packing number."""
    balls = _balls("largest_packing", distances, epsilon)
    _limit("largest_packing", len(balls))

    @functools.cache
    def largest(allowed: int) -> tuple[int, ...]:
        if not allowed:
            return ()
        # The point with fewest neighbors, or one of these neighbors, is in some largest packing.
        point = min(_members(allowed), key=lambda i: (balls[i] & allowed).bit_count())
        near = balls[point] & allowed
        if near.bit_count() <= 2:  # itself and at most one more: taking it loses nothing
            return (point, *largest(allowed & ~near))
        return max(((i, *largest(allowed & ~balls[i])) for i in _members(near)), key=len)

    return tuple(sorted(largest((1 << len(balls)) - 1)))


def _members(mask: int) -> list[int]:
    return [i for i in range(mask.bit_length()) if mask >> i & 1]


def _balls(caller: str, distances: Float[np.ndarray, "n n"], epsilon: float) -> list[int]:
    """Per point, the set of points within epsilon, as the bits of an integer."""
    matrix = np.asarray(distances, dtype=float)
    square = matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1] and len(matrix) > 0
    if not (
        square
        and np.isfinite(matrix).all()
        and (matrix >= 0).all()
        and (matrix == matrix.T).all()
        and not matrix.diagonal().any()
    ):
        raise Refusal(
            f"{caller} got distances of shape {matrix.shape}: they must form a symmetric matrix of pairwise "
            "distances, finite, nonnegative, and zero on the diagonal. Compute it from the points, for instance "
            "with np.linalg.norm(x[:, None] - x, axis=-1)."
        )
    if not epsilon >= 0:
        raise Refusal(f"{caller} got epsilon={epsilon!r}: it must be a number that is 0 or more. Change it.")
    near = matrix <= epsilon + _SLACK
    return [int("".join("1" if one else "0" for one in row[::-1]), 2) for row in near]


def _limit(caller: str, points: int) -> None:
    if points > MOST_POINTS:
        raise Refusal(
            f"{caller} got {points} points: the exact search takes at most {MOST_POINTS}. Use greedy_cover, or fewer "
            "points."
        )
