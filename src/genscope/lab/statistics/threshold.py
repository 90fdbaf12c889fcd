"""Search and Threshold: which crossings of a success rate are looked for, and what is known of them.

A level is a probability, or a share of the plateau: "0.8 of plateau" is reached where the success rate is 0.8 times the
rate that it tends to with the size. Failures that no sample size cures move the first and not the second.

Guarantee: exact; `genscope.lab.statistics.estimation` computes what stands here.
"""

import functools
import math
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from genscope.display import Card, Displayed, shown
from genscope.lab.statistics.success_curve import Counts, Curve
from genscope.refusal import Refusal

State = Literal["crossed", "above", "below", "plateau", "unresolved"]

Level = float | str  # 0.8, or "0.8 of plateau"
OF_PLATEAU = " of plateau"

RATIO = 1.1  # between neighbouring sizes of a search: few sizes, hence few compiled shapes and shared trials


def share_of(level: Level) -> tuple[float, bool]:
    """The number of a level, and whether it is a share of the plateau.

    >>> share_of(0.5), share_of("0.8 of plateau")
    ((0.5, False), (0.8, True))
    """
    number, of_plateau, rest = str(level).partition(OF_PLATEAU)
    try:
        share = float(number)
    except ValueError:
        share = math.nan
    if not 0 < share < 1 or rest or isinstance(level, str) != bool(of_plateau):
        raise Refusal(
            f"Search got level={level!r}: a level must be a share of successes, strictly between 0 and 1. Choose, for "
            f"example, 0.8 or '0.8{OF_PLATEAU}'."
        )
    return share, bool(of_plateau)


def words_of(level: Level) -> str:
    """A level in words.

    >>> words_of(0.5), words_of("0.8 of plateau")
    ('50 %', '80 % of the plateau')
    """
    share, of_plateau = share_of(level)
    return f"{100 * share:g} %{' of the plateau' if of_plateau else ''}"


@dataclass(frozen=True)
class Search:
    """Adaptive search for the size along `axis` at which `outcome` is true with probability `level`.

    Of several levels the first is the one that is spoken of; rounds are shared between those that are not resolved.
    A level is resolved when both ends of the interval lie within a factor `1 + width` of the estimate, or when the
    threshold is known to lie outside `lowest` to `highest` or not to exist. The search ends then, or after `trials`
    trials. Trials come in groups of `batch` at one size and in rounds of `round`. `start` is a first guess; without one
    the first round is spread over all sizes.
    """

    axis: str = "sample_size"
    outcome: str = "success"
    level: Level | tuple[Level, ...] = 0.8
    confidence: float = 0.95
    lowest: int = 8
    highest: int = 2000
    start: int | None = None
    width: float = 0.10
    trials: int = 400
    round: int = 16
    batch: int = 4

    def __post_init__(self) -> None:
        if isinstance(self.level, list):  # from JSON
            object.__setattr__(self, "level", tuple(self.level))
        for level in self.levels:
            share_of(level)
        if not self.levels or len({*self.levels}) < len(self.levels):
            raise Refusal(
                f"Search got level={self.level}: give one level or several different ones. Name each of them once."
            )
        if not 0.5 <= self.confidence < 1:
            raise Refusal(f"Search got confidence={self.confidence}: it must be at least 0.5 and below 1. Try 0.95.")
        if not 1 <= self.lowest < self.highest:
            raise Refusal(
                f"Search got lowest={self.lowest} and highest={self.highest}: sizes must be positive, and highest "
                "above lowest. Widen the range."
            )
        if self.start is not None and not self.lowest <= self.start <= self.highest:
            raise Refusal(
                f"Search got start={self.start}: the initial guess must lie between {self.lowest} and {self.highest}. "
                "Move it, widen the range, or leave it out."
            )
        if not self.width > 0:
            raise Refusal(f"Search got width={self.width}: the width must be positive. Try 0.1.")
        if not 1 <= self.batch <= self.round <= self.trials or self.round % self.batch:
            raise Refusal(
                f"Search got batch={self.batch}, round={self.round} and trials={self.trials}: a round must consist of "
                "whole batches, and of no more than all trials. Make the round a multiple of the batch."
            )

    @property
    def levels(self) -> tuple[Level, ...]:
        """All of them."""
        return self.level if isinstance(self.level, tuple) else (self.level,)

    @property
    def sizes(self) -> np.ndarray:
        """The sizes it may use: a geometric ladder, rounded to whole numbers."""
        return _ladder(self.lowest, self.highest)


@functools.lru_cache(maxsize=256)
def _ladder(lowest: int, highest: int) -> np.ndarray:
    steps = max(1, round(math.log(highest / lowest) / math.log(RATIO)))
    return np.unique(np.geomspace(lowest, highest, steps + 1).round().astype(int))


class Interval(NamedTuple):
    """An estimate and the ends of its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Threshold(Displayed):
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
    level: Level = 0.8
    plateau: Interval | None = None
    """The success rate that the curve tends to with the size; None without a trial."""
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

    def limits(self, confidence: float) -> tuple[float | None, float | None]:
        """The ends of an interval at another confidence; None where the success rate may level off or nothing is known.

        From the likelihood at all sizes in question: unlike `low` and `high`, they may lie beyond the sizes tried.
        """
        if not self.log_sizes or not self.trials:
            return None, None
        mass = (1 - self.levels_off) * np.exp(self.log_likelihood) / np.exp(self.log_likelihood).sum()
        step = self.log_sizes[1] - self.log_sizes[0]
        edges = np.append(np.array(self.log_sizes) - step / 2, self.log_sizes[-1] + step / 2)
        reached = np.concatenate([[0.0], np.cumsum(mass)])
        ends = [(1 - confidence) / 2, (1 + confidence) / 2]
        low, high = (None if end >= reached[-1] else math.exp(np.interp(end, reached, edges)) for end in ends)
        return low, high

    @property
    def deviation(self) -> float:
        """Standard deviation of the log threshold, given that there is one."""
        mass = np.exp(self.log_likelihood)
        mean = mass @ self.log_sizes / mass.sum()
        return math.sqrt(mass @ (np.array(self.log_sizes) - mean) ** 2 / mass.sum())

    def card(self) -> Card:
        """What is shown: the threshold in words, and what it rests on."""
        rate = self.plateau
        rows = [
            ("level", words_of(self.level)),
            ("interval", f"{shown(self.low)} to {shown(self.high)}"),
            ("trials", self.trials),
            ("plateau", "–" if rate is None else f"{shown(rate.value)} [{shown(rate.low)}, {shown(rate.high)}]"),
        ]
        said = {
            "crossed": f"{self.axis}: {shown(self.size)} [{shown(self.low)}, {shown(self.high)}]",
            "above": f"{self.axis}: more than {shown(self.low)}",
            "below": f"{self.axis}: at most {shown(self.high)}",
            "plateau": f"{self.axis}: no threshold, the success rate levels off below the level",
            "unresolved": f"{self.axis}: not resolved with {self.trials} trials",
        }
        return Card(said[self.state], rows)

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers and words for JSON."""
        return {
            self.axis: self.size,
            **{"low": self.low, "high": self.high, "trials": self.trials, "state": self.state, "level": self.level},
            "plateau": None if self.plateau is None else self.plateau._asdict(),
        }


def first_reaching(counts: Counts, level: float = 0.8) -> float | None:
    """The papers' reading of a grid: the smallest size whose share of successes is at least `level`, if any."""
    tried = tried_only(counts)
    return next((size for size in sorted(tried) if tried[size][0] >= level * tried[size][1]), None)


def tried_only(counts: Counts) -> Counts:
    """The sizes with trials; counts that cannot be are refused."""
    for size, (won, n) in counts.items():
        if not (size > 0 and 0 <= won <= n):
            raise Refusal(
                f"A threshold got {won} successes in {n} trials at size {size}: sizes must be positive, with no more "
                "successes than trials. Check the counts."
            )
    return {size: (won, n) for size, (won, n) in counts.items() if n}
