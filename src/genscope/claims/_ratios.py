"""Comparisons of samples to threshold: ratios and exponents with intervals, from few runs, some of them censored.

Guarantee: at their level if logarithms of runs are normal; ratios and trends have the spread of each arm from its own
runs. A run that did not reach its threshold counts with its budget, a lower limit; a decision that this could turn is
not taken.
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
UNKNOWN: Interval = (None, None, None)


def own_contrast(over: SampleCounts, under: SampleCounts, confidence: float) -> Interval:
    """A ratio of geometric means with Welch's interval: each arm has its own spread."""
    found = _weighted([(1.0, over.logs), (-1.0, under.logs)], confidence)
    middle, low, high = (None if value is None else math.exp(value) for value in found)
    return middle, low, high


def trend(values: Mapping[int, np.ndarray], confidence: float) -> Interval:
    """The slope of the means of values against their keys, each with its own spread (Welch, Satterthwaite)."""
    if len(values) < 2:
        return UNKNOWN
    centre = sum(values) / len(values)
    square = sum((at - centre) ** 2 for at in values)
    return _weighted([((at - centre) / square, part) for at, part in values.items()], confidence)


def _weighted(arms: Sequence[tuple[float, np.ndarray]], confidence: float) -> Interval:
    """A weighted sum of means; an arm of fewer than two values leaves its limits open."""
    sizes = [len(values) for _, values in arms]
    if not min(sizes):
        return UNKNOWN
    middle = sum(weight * float(values.mean()) for weight, values in arms)
    if min(sizes) < 2:
        return middle, None, None
    squares = [weight**2 * float(values.var(ddof=1)) / len(values) for weight, values in arms]
    if not sum(squares):
        return middle, middle, middle
    freedom = sum(squares) ** 2 / sum(part**2 / (size - 1) for part, size in zip(squares, sizes, strict=True))
    reach = float(scipy.special.stdtrit(freedom, (1 + confidence) / 2)) * math.sqrt(sum(squares))
    return middle, middle - reach, middle + reach


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

    def interval(self, confidence: float) -> Interval:
        """Student's."""
        reach = float(scipy.special.stdtrit(self.freedom, (1 + confidence) / 2)) * self.error
        return self.value, self.value - reach, self.value + reach


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
