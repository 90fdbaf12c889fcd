r"""What irrelevant positions give where they should give 0, if vectors are orthonormal nearly: measured and bounded.

Let $A$ hold the r vectors that matter, those of the s relevant positions and the special ones, and let $\delta$ be the
largest $|\langle a,v\rangle|$ of one of them and any other vector of the encoding (`coherence_at`). Weights use the
dual rows $D=(AA^\top)^{-1}A$, which read the vectors of $A$ exactly. $G=AA^\top$ has ones on its diagonal and entries
to $\delta$ beside it, so for $(r-1)\delta<1$ its inverse has columns of $\ell_1$ norm at most $1/(1-(r-1)\delta)$, and
for every other vector $v$ and coefficients $c$
$$|\langle D^\top c,v\rangle|\le\|c\|_1\frac\delta{1-(r-1)\delta},\qquad\|D\|_2\le\frac1{\sqrt{1-(r-1)\delta}} .$$
So $\beta$, by which an irrelevant position scores as much as a relevant one, is at most that for the sum of the vectors
attended to, and $\rho$, what it adds to a read-out, for that read-out: both are measured, and bounded by $\delta$
(`coherence_limits`).

Source: edelman2022, Section 5 (approximately orthonormal embeddings).
Departures: the bound and its proof are ours.
Guarantee: exact measurements up to rounding; the bounds are theorems, and attained.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from genscope.constructions._base import Matrix, lift
from genscope.models.encoding import AbstractEncoding


class Crosstalk(NamedTuple):
    """What irrelevant positions give where they should give 0, as measured; and the coherence that explains it."""

    beta: float
    rho: float
    coherence: float

    def constants(self, *, vectors: int, attended: int, read: int) -> dict[str, float]:
        """All three, and what the first two are at most for this coherence (`coherence_limits`)."""
        beta, rho, _ = coherence_limits(vectors=vectors, attended=attended, read=read, coherence=self.coherence)
        return {**self._asdict(), "beta_at_most": beta, "rho_at_most": rho}


def coherence_at(encoding: AbstractEncoding, support: Sequence[int]) -> float:
    """The largest product of a special or relevant vector with any other vector."""
    rows = _rows(encoding, support)
    vectors = np.asarray(encoding.vectors, float)
    products = np.abs(vectors @ vectors[rows].T)
    products[rows, np.arange(len(rows))] = 0
    return float(products.max(initial=0.0))


def coherence_limits(*, vectors: int, attended: int, read: int, coherence: float) -> tuple[float, float, float]:
    r"""What $\beta$, $\rho$ and $\|D\|_2$ are at most, for so many vectors in A, of which so many enter a sum.

    `attended` are the vectors of the scores, `read` those of the longest read-out. Infinite if $(r-1)\delta\ge1$.

    >>> coherence_limits(vectors=6, attended=3, read=3, coherence=1 / 11)[0]  # s = 3: at 1/(3s + 2), one half
    0.5
    """
    left = 1 - (vectors - 1) * coherence
    if left <= 0:
        return math.inf, math.inf, math.inf
    return attended * coherence / left, read * coherence / left, 1 / math.sqrt(left)


def crosstalk(encoding: AbstractEncoding, support: Sequence[int], kappa: np.ndarray, read: Matrix) -> Crosstalk:
    """Measure beta for the scores and rho for the read-outs, both given by coefficients on the vectors of A."""
    readers, _ = lift(encoding, support, np.column_stack([kappa, read]))
    others = np.delete(np.asarray(encoding.vectors, float)[encoding.specials :], list(support), axis=0) @ readers
    if not len(others):
        return Crosstalk(0.0, 0.0, coherence_at(encoding, support))
    beta = max(0.0, float(others[:, 0].max()))
    return Crosstalk(beta, float(np.abs(others[:, 1:]).max()), coherence_at(encoding, support))


def _rows(encoding: AbstractEncoding, support: Sequence[int]) -> np.ndarray:
    return np.asarray([*range(encoding.specials), *(encoding.specials + position for position in support)])
