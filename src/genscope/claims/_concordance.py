r"""Rank correlation within strata, with a permutation test, and what values that are missing could make of it.

Source: Kendall 1938; Goodman and Kruskal 1954 (pairs tied in x left out).
Guarantee: if within each stratum the values do not depend on x, a p-value is at most its level with that probability,
for any law of the values (Monte Carlo permutations, with the observed order among them). The range over missing values
is certain, and wider than necessary.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from genscope.claims._base import Decision

PERMUTATIONS = 9_999


@dataclass(frozen=True)
class Stratum:
    """Values at x, and the x of runs whose value is missing; everything but x is the same in a stratum."""

    x: np.ndarray
    values: np.ndarray
    missing: np.ndarray

    def order(self) -> np.ndarray:
        """Sign of the difference in x of every two values."""
        return np.sign(self.x[:, None] - self.x[None]).astype(np.int8)

    def pairs(self) -> int:
        """Pairs of values that differ in x."""
        return int(np.abs(self.order()).sum()) // 2

    def missing_pairs(self) -> int:
        """Pairs that differ in x, of which at least one value is missing."""
        every = Stratum(np.concatenate([self.x, self.missing]), np.empty(0), np.empty(0))
        return every.pairs() - self.pairs()


@dataclass(frozen=True)
class Concordance:
    """Concordant less discordant pairs as a share of all pairs, between -1 and 1."""

    value: float | None  # None without pairs
    greater: float  # p-value against no correlation, for a positive one
    less: float  # likewise, for a negative one
    lowest: float | None  # if every pair with a missing value were discordant
    highest: float | None  # if every such pair were concordant

    def decision(self, level: float) -> Decision:
        """Whether the correlation is positive, if no missing values could turn its sign."""
        if self.value is None or self.lowest is None or self.highest is None:
            return "undecided"
        if self.greater <= level and self.lowest > 0:
            return "holds"
        return "fails" if self.less <= level and self.highest < 0 else "undecided"


def concordance(strata: Sequence[Stratum], *, seed: int = 0) -> Concordance:
    """The correlation over all strata: pairs are formed, and values permuted, inside a stratum only."""
    generator = np.random.default_rng(seed)
    sums = np.zeros(PERMUTATIONS + 1)
    for stratum in strata:
        sums += _sums(stratum, generator)
    pairs = sum(stratum.pairs() for stratum in strata)
    missing = sum(stratum.missing_pairs() for stratum in strata)
    if not pairs:
        return Concordance(None, 1.0, 1.0, None, None)
    observed = sums[0]
    return Concordance(
        float(observed / pairs),
        float(np.mean(sums >= observed)),
        float(np.mean(sums <= observed)),
        float((observed - missing) / (pairs + missing)),
        float((observed + missing) / (pairs + missing)),
    )


def _sums(stratum: Stratum, generator: np.random.Generator) -> np.ndarray:
    """Concordant less discordant pairs: as observed, then with permuted values."""
    size = len(stratum.values)
    orders = np.tile(np.arange(size), (PERMUTATIONS + 1, 1))
    orders[1:] = generator.permuted(orders[1:], axis=1)
    signs = np.sign(stratum.values[:, None] - stratum.values[None]).astype(np.int8)
    by_x = stratum.order()
    found = np.zeros(PERMUTATIONS + 1)
    for i in range(size):  # row by row, so that memory stays small
        found += (signs[orders[:, i, None], orders] * by_x[None, i]).sum(axis=1)
    return found / 2
