r"""Restrictions of a function to a subspace: its Fourier components fall into $2^r$ buckets.

Source: lintilhac2026, Appendix H (coordinate restriction); Gopalan et al. 2011 (affine restriction).
Departures: the paper keeps r coordinates and fixes the others, so components that agree on the r coordinates merge; an
affine restriction sends any two components into one bucket with probability $2^{-r}$, whatever they are.
Guarantee: exact up to rounding.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float64

from genscope.fourier import signs
from genscope.fourier.transform import walsh_coefficients
from genscope.probe.oracle import BATCH, Oracle

Kind = Literal["affine", "coordinate"]


@dataclass(frozen=True)
class Restriction:
    r"""The buckets of $u \mapsto f(z \oplus d \oplus A^\top u)$ for one or more shifts d.

    Bucket v of shift d is $\sum_{S: AS = v} \hat f(S) \chi_S(z \oplus d)$. The first shift is 0; the others, if they
    were asked for, are the unit vectors: they tell which bits a lonely component contains.
    """

    matrix: Bool[np.ndarray, "r dim"]
    base: Bool[np.ndarray, " dim"]
    buckets: Float64[np.ndarray, "shifts buckets"]

    def without(self, supports: Bool[np.ndarray, "s dim"], coefficients: Float64[np.ndarray, " s"]) -> "Restriction":
        """The buckets of the function less a sum of components."""
        buckets = self.buckets.copy()
        at = bucket_of(self.matrix, supports)
        values = coefficients * signs(np.logical_xor.reduce(supports & self.base, axis=1), np.float64)
        np.subtract.at(buckets[0], at, values)
        if len(buckets) > 1:  # a unit shift turns the sign of the components that contain its bit
            np.subtract.at(buckets[1:].T, at, values[:, None] * signs(supports, np.float64))
        return Restriction(self.matrix, self.base, buckets)

    def counted(self, threshold: float) -> int:
        """Buckets above the threshold, but for the first, where the constant falls: as many components exist."""
        return int((np.abs(self.buckets[0, 1:]) > threshold).sum())


def draw_matrix(kind: Kind, rows: int, dim: int, rng: np.random.Generator) -> Bool[np.ndarray, "r dim"]:
    """Random rows over the field of two elements, or different unit vectors for the restriction to coordinates.

    As many rows as bits, or more, are the unit vectors: the restriction is then the whole cube, and nothing merges.
    """
    if rows >= dim:
        return np.eye(dim, dtype=bool)
    if kind == "affine":
        return rng.integers(0, 2, (rows, dim), dtype=np.int8).astype(bool)
    return np.arange(dim) == rng.choice(dim, rows, replace=False)[:, None]


def restrict(oracle: Oracle, matrix: Bool[np.ndarray, "r dim"], base: Bool[np.ndarray, " dim"]) -> Restriction:
    """Ask for all 2^r points of the subspace."""
    points = base ^ _span(matrix)
    return Restriction(matrix, base, walsh_coefficients(oracle(points)[None]))


def add_shifts(oracle: Oracle, restriction: Restriction) -> Restriction:
    """The restriction with its unit shifts: 2^r queries for each bit."""
    points = restriction.base ^ _span(restriction.matrix)
    together = max(1, BATCH // len(points))
    parts = [restriction.buckets]
    for start in range(0, oracle.dim, together):
        flips = np.eye(oracle.dim, dtype=bool)[start : start + together]
        values = oracle((points[None] ^ flips[:, None]).reshape(-1, oracle.dim))
        parts.append(walsh_coefficients(values.reshape(len(flips), len(points))))
    return Restriction(restriction.matrix, restriction.base, np.concatenate(parts))


def bucket_of(matrix: Bool[np.ndarray, "r dim"], supports: Bool[np.ndarray, "s dim"]) -> np.ndarray:
    """The number of the bucket AS of each component S."""
    odd = (supports.astype(np.int32) @ matrix.T.astype(np.int32)) & 1
    return odd @ (1 << np.arange(len(matrix)))


def _span(matrix: Bool[np.ndarray, "r dim"]) -> Bool[np.ndarray, "n dim"]:
    """All sums of rows; row j is in sum number u if bit j of u is 1."""
    points = np.zeros((1, matrix.shape[1]), bool)
    for row in matrix:
        points = np.concatenate([points, points ^ row])
    return points
