"""Comparisons of samples to threshold: ratios and exponents with intervals, from few runs, some of them censored.

Guarantee: at their level if logarithms of runs are normal, and, where spreads are pooled, of one spread: with one run
of an architecture there is no other way, and a claim's rule says where it is used. A run that did not reach its
threshold counts with its budget, a lower limit; a decision that this could turn is not taken.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
import scipy  # whose parts load on first use: a listing of studies needs none of them

from genscope.claims._base import Decision, above


@dataclass(frozen=True)
class SampleCounts:
    """Logarithms of the samples of the runs of one architecture at one point, and whether some are lower limits."""

    logs: np.ndarray
    censored: bool

    @classmethod
    def of(cls, frame: pl.DataFrame, **where: object) -> "SampleCounts":
        """The runs of a frame with the given values."""
        for column, value in where.items():
            frame = frame.filter(pl.col(column) == value) if column in frame.columns else frame.clear()
        if not len(frame):
            return cls(np.empty(0), False)
        return cls(np.log(frame["samples"].to_numpy().astype(float)), not bool(frame["reached"].all()))

    @property
    def mean(self) -> float | None:
        """The geometric mean of the samples."""
        return math.exp(self.logs.mean()) if len(self.logs) else None


Interval = tuple[float | None, float | None, float | None]  # estimate, lower and upper limit


def pooled_spread(arms: Sequence[SampleCounts]) -> tuple[float, int]:
    """One standard deviation for all arms, and its degrees of freedom."""
    freedom = sum(max(len(arm.logs) - 1, 0) for arm in arms)
    squares = sum(float(((arm.logs - arm.logs.mean()) ** 2).sum()) for arm in arms if len(arm.logs))
    return (math.sqrt(squares / freedom), freedom) if freedom else (math.nan, 0)


def contrast(arms: Sequence[tuple[int, SampleCounts]], spread: tuple[float, int], confidence: float) -> Interval:
    """The exponential of a signed sum of means of logarithms: a ratio, or a ratio of ratios."""
    deviation, freedom = spread
    if any(not len(arm.logs) for _, arm in arms):
        return None, None, None
    middle = sum(sign * float(arm.logs.mean()) for sign, arm in arms)
    if not freedom:
        return math.exp(middle), None, None
    reach = float(scipy.special.stdtrit(freedom, (1 + confidence) / 2)) * deviation
    reach *= math.sqrt(sum(1 / len(arm.logs) for _, arm in arms))
    return math.exp(middle), math.exp(middle - reach), math.exp(middle + reach)


def decide(interval: Interval, limit: float, arms: Sequence[tuple[int, SampleCounts]]) -> Decision:
    """Whether a contrast is above a limit; a lower limit in it may only have made it smaller, or nothing is decided."""
    decision = above(interval[1], interval[2], limit)
    raised = any(arm.censored for sign, arm in arms if sign < 0)
    lowered = any(arm.censored for sign, arm in arms if sign > 0)
    if (decision == "holds" and raised) or (decision == "fails" and lowered):
        return "undecided"
    return decision


@dataclass(frozen=True)
class Slope:
    """An exponent by least squares on logarithms, its standard error and degrees of freedom."""

    value: float
    error: float
    freedom: int


def exponent(arms: Mapping[int, SampleCounts]) -> Slope | None:
    """The exponent of samples against the size that is the key; what a power does not fit widens its error."""
    x = np.concatenate([np.full(len(arm.logs), math.log(size)) for size, arm in arms.items()] or [np.empty(0)])
    if len(np.unique(x)) < 2 or len(x) < 3:
        return None
    y = np.concatenate([arm.logs for arm in arms.values()])
    centred = x - x.mean()
    slope = float(centred @ y / (centred @ centred))
    residual = y - y.mean() - slope * centred
    freedom = len(x) - 2
    return Slope(slope, math.sqrt(float(residual @ residual) / freedom / float(centred @ centred)), freedom)


def difference(left: Slope | None, right: Slope | None, confidence: float) -> Interval:
    """Difference of two exponents with Welch's interval."""
    if left is None or right is None:
        return None, None, None
    middle, square = left.value - right.value, left.error**2 + right.error**2
    if square == 0:
        return middle, middle, middle
    freedom = square**2 / (left.error**4 / left.freedom + right.error**4 / right.freedom)
    reach = float(scipy.special.stdtrit(freedom, (1 + confidence) / 2)) * math.sqrt(square)
    return middle, middle - reach, middle + reach
