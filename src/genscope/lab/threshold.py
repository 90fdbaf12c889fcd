"""Where the success probability crosses a level: an adaptive design, and an estimate with its interval.

Trials are spent in rounds at the sizes that tell most about the threshold. A round is a function of the counts so far
and of nothing else. A success rate that levels off below the level has no threshold, which is reported and never
extrapolated; beyond the sizes that were tried, a threshold is only known to lie on that side.

Source: product.md, Section 5; Chaloner and Verdinelli (1995) for designs that minimise an expected posterior variance.
Departures: the papers read the first success off a fixed grid; `first_reaching` does that.
Guarantee: estimate; intervals cover the truth at their nominal level for logistic, probit and log-log curves with and
without lapses, measured by simulation (tests/lab/test_threshold.py).
"""

import functools
import itertools
import math
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from genscope.lab.success_curve import Counts, Curve, Posterior, posterior

State = Literal["crossed", "above", "below", "plateau", "unresolved"]

RATIO = 1.1  # between neighbouring sizes of a search: few sizes, hence few compiled shapes and shared trials
_SPREAD = 1.6  # between the sizes of a first round around a first guess
_FAR = 1.0  # e-folds; a threshold further from the middle than this counts as this far, and so does having none
_CANDIDATES = 20
_SURE = 0.95  # share of levelling curves among those without a threshold up to here, before a plateau is spoken of
_HOPELESS = 500.0  # log-likelihoods below the best by more than this are cut there, so that all are finite


@dataclass(frozen=True)
class Search:
    """Adaptive search for the size along `axis` at which `outcome` is true with probability `level`.

    It ends when both ends of the interval lie within a factor `1 + width` of the estimate, when the threshold is
    known to lie outside `lowest` to `highest` or not to exist, or after `trials` trials. Trials come in groups of
    `batch` at one size and in rounds of `round`. `start` is a first guess; without one the first round is spread over
    all sizes.
    """

    axis: str = "sample_size"
    outcome: str = "success"
    level: float = 0.8
    confidence: float = 0.95
    lowest: int = 8
    highest: int = 2000
    start: int | None = None
    width: float = 0.10
    trials: int = 400
    round: int = 16
    batch: int = 4

    def __post_init__(self) -> None:
        if not 0 < self.level < 1:
            raise ValueError(f"Search got level={self.level}: success is certain at 1 and never at 0. Choose between.")
        if not 0.5 <= self.confidence < 1:
            raise ValueError(f"Search got confidence={self.confidence}: allowed are 0.5 to below 1. Try 0.95.")
        if not 1 <= self.lowest < self.highest:
            raise ValueError(
                f"Search got lowest={self.lowest} and highest={self.highest}: sizes are positive and the highest is "
                "above the lowest. Widen the range."
            )
        if self.start is not None and not self.lowest <= self.start <= self.highest:
            raise ValueError(
                f"Search got start={self.start}: a guess lies between {self.lowest} and {self.highest}. "
                "Move it, widen the range, or leave it out."
            )
        if not self.width > 0:
            raise ValueError(f"Search got width={self.width}: a width is positive. Ask for 0.1, say.")
        if not 1 <= self.batch <= self.round <= self.trials or self.round % self.batch:
            raise ValueError(
                f"Search got batch={self.batch}, round={self.round} and trials={self.trials}: a round is a number of "
                "whole batches, and at most all trials. Make the round a multiple of the batch."
            )

    @property
    def sizes(self) -> np.ndarray:
        """The sizes it may use: a geometric ladder, rounded to whole numbers."""
        return _ladder(self.lowest, self.highest)


@functools.lru_cache(maxsize=256)
def _ladder(lowest: int, highest: int) -> np.ndarray:
    steps = max(1, round(math.log(highest / lowest) / math.log(RATIO)))
    return np.unique(np.geomspace(lowest, highest, steps + 1).round().astype(int))


@dataclass(frozen=True)
class Threshold:
    """The size at which the success probability crosses the level, as far as it is known.

    `crossed`: `size` with the interval from `low` to `high`. `above` and `below`: outside the sizes that were tried,
    of which the largest is `low` or the smallest `high`. `plateau`: the success rate levels off below the level, so
    that there is no threshold, and none up to `low` in any case. `unresolved`: not enough trials to tell; an end of
    the interval that is known is given.
    """

    size: float | None
    low: float | None
    high: float | None
    trials: int
    state: State
    axis: str = "sample_size"
    levels_off: float = 0.0
    """Probability that the success rate levels off below the level."""
    log_sizes: tuple[float, ...] = field(default=(), repr=False)
    """Log thresholds at which `log_likelihood` is given."""
    log_likelihood: tuple[float, ...] = field(default=(), repr=False)
    """Of each log threshold, given that there is one; 0 at the best."""
    curve: Curve | None = field(default=None, repr=False)

    def probability(self, sizes: Any) -> np.ndarray:
        """The fitted success curve."""
        sizes = np.asarray(sizes, dtype=float)
        return np.full(sizes.shape, np.nan) if self.curve is None else self.curve(np.log(sizes))

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers and words for JSON."""
        ends = {"low": self.low, "high": self.high}
        return {self.axis: self.size, **ends, "trials": self.trials, "state": self.state}


def estimate(search: Search, counts: Counts) -> Threshold:
    """The threshold, as the counts have it: the median of its posterior and a central interval of it."""
    return _estimate(search, _tried(counts))[0]


def next_round(search: Search, counts: Counts) -> dict[int, int] | None:
    """Further trials by size, in whole batches; None when the search is finished."""
    counts = _tried(counts)
    batches = min(search.round, search.trials - sum(n for _, n in counts.values())) // search.batch
    if batches < 1:
        return None
    if not counts:
        return _batches(search, _first_sizes(search, batches))
    found, known = _estimate(search, counts)
    low, high = known.quantile(_ends(search))
    above, below = low >= math.log(search.highest), high <= math.log(search.lowest)
    perhaps_plateau = found.state == "above" and found.levels_off > 0.5  # more trials tell
    if (above and not perhaps_plateau) or below or (found.state == "crossed" and _tight(search, found)):
        return None
    return _batches(search, _informative_sizes(search, known, batches))


def first_reaching(counts: Counts, level: float = 0.8) -> float | None:
    """The papers' reading of a grid: the smallest size whose share of successes is at least `level`, if any."""
    tried = _tried(counts)
    return next((size for size in sorted(tried) if tried[size][0] >= level * tried[size][1]), None)


def _tried(counts: Counts) -> Counts:
    for size, (won, n) in counts.items():
        if not (size > 0 and 0 <= won <= n):
            raise ValueError(
                f"A threshold was asked for with {won} successes in {n} trials at size {size}: sizes are positive, "
                "and successes are some of the trials. Count again."
            )
    return {size: (won, n) for size, (won, n) in counts.items() if n}


def _ends(search: Search) -> tuple[float, float]:
    return (1 - search.confidence) / 2, (1 + search.confidence) / 2


def _estimate(search: Search, counts: Counts) -> tuple[Threshold, Posterior]:
    smallest, largest = min(counts, default=search.lowest), max(counts, default=search.highest)
    known = posterior(search.level, min(smallest, search.lowest), max(largest, search.highest), counts)
    below, above = _ends(search)
    low, middle, high = (float(end) for end in known.quantile([below, 0.5, above]))
    bottom, top = math.log(smallest), math.log(largest)
    size, ends = None, (math.exp(low) if low >= bottom else None, math.exp(high) if high <= top else None)
    if not counts:
        state, ends = "unresolved", (None, None)
    elif low >= top:
        state: State = "plateau" if known.levels_off > _SURE * (known.levels_off + known.beyond(top)) else "above"
        ends = (float(largest), None)
    elif high <= bottom:
        state, ends = "below", (None, float(smallest))
    elif None in ends:
        state = "unresolved"
    else:
        state, size = "crossed", math.exp(middle)
    found = Threshold(
        size,
        *ends,
        trials=sum(n for _, n in counts.values()),
        state=state,
        axis=search.axis,
        levels_off=known.levels_off,
        log_sizes=tuple(known.log_sizes.tolist()),
        log_likelihood=tuple(np.maximum(known.log_likelihood, -_HOPELESS).tolist()),
        curve=known.best() if counts else None,
    )
    return found, known


def _tight(search: Search, found: Threshold) -> bool:
    if found.size is None or found.low is None or found.high is None:
        return False
    return max(found.high / found.size, found.size / found.low) <= 1 + search.width


def _batches(search: Search, sizes: list[int]) -> dict[int, int]:
    return {size: search.batch * len(list(same)) for size, same in itertools.groupby(sorted(sizes))}


def _first_sizes(search: Search, number: int) -> list[int]:
    low, high = math.log(search.lowest), math.log(search.highest)
    if search.start is None:
        wanted = low + (high - low) * (np.arange(number) + 0.5) / number
    else:
        wanted = math.log(search.start) + (np.arange(number) - (number - 1) / 2) * math.log(_SPREAD)
    ladder = search.sizes
    return [int(ladder[np.abs(np.log(ladder) - log_size).argmin()]) for log_size in wanted]


def _informative_sizes(search: Search, known: Posterior, number: int) -> list[int]:
    """One size after the other, each where a batch is expected to reduce the variance of the threshold most.

    The variance is that of the log threshold, cut at `_FAR` from the middle, which is also the place of a curve that
    never crosses: looking for a plateau and looking for the crossing are weighed by one number. Expectations are
    linear in the outcome, so that a batch lowers the variance by $c^2 / (v + w / n)$, where $c$ is the covariance of
    the threshold with the success probability $p$ at a size, $v$ the variance of $p$, and $w$ the mean of $p (1 - p)$.
    """
    low, middle, high = known.quantile([0.02, 0.5, 0.98], given_crossing=True)
    ladder = search.sizes
    near = np.flatnonzero((np.log(ladder) >= low - 0.7) & (np.log(ladder) <= high + 1.6))
    if not len(near):
        near = np.abs(np.log(ladder) - middle).argmin(keepdims=True)
    sizes = ladder[np.unique(np.linspace(near[0], near[-1], _CANDIDATES).round().astype(int))]
    weights, thresholds, success = known.ensemble(np.log(sizes))
    target = np.clip(thresholds - middle, -_FAR, _FAR)
    target -= weights @ target
    mean = success @ weights
    centred = success - mean[:, None]
    between = (centred * weights) @ centred.T
    noise = (mean * (1 - mean) - np.diag(between)) / search.batch
    covariance = (centred * weights) @ target
    chosen = []
    for _ in range(number):
        variance = np.diag(between) + noise
        best = int(np.round(covariance**2 / variance, 12).argmax())  # rounded: ties fall alike on all machines
        chosen.append(int(sizes[best]))
        gain = between[best] / variance[best]
        covariance = covariance - gain * covariance[best]
        between = between - np.outer(gain, between[best])
    return chosen
