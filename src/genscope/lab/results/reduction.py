"""The reductions that figures declare, applied to a reading: numbers with intervals and laws, ready to be drawn.

Source: Wilson (1927) for shares, order statistics for medians.
Guarantee: estimate, with 95 % intervals for each number by itself. A trial without the value that a figure needs is
counted in `missing`, never dropped in silence; a censored number keeps the side on which it is known.
"""

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl
from scipy import special  # not `stats`, which takes a second to load

from genscope.estimate import Estimate, wilson
from genscope.lab.plans.figure import (
    Crossing,
    Figure,
    Line,
    Mean,
    Median,
    Plateau,
    Reduction,
    Scatter,
    Smallest,
    Success,
)
from genscope.lab.results.reading import Reading
from genscope.lab.statistics.clusters import counts_of
from genscope.lab.statistics.scaling import Fits, fit_laws
from genscope.lab.statistics.threshold import Threshold, first_reaching, words_of

State = Literal["measured", "above", "below", "none"]
FEW = 4  # trials from which on a mean has an interval


@dataclass(frozen=True)
class Mark:
    """A reduced point: a number with its interval, one side of it, or in words why there is none."""

    x: Any
    y: float | None
    low: float | None
    high: float | None
    trials: int
    state: State = "measured"
    missing: int = 0
    words: str = ""
    threshold: Threshold | None = None
    vacuous: int = 0
    """Trials whose bound says no more than is known without it."""
    draws: tuple[float, ...] = ()
    """The numbers that a mean or median was taken of."""

    @property
    def says_nothing(self) -> bool:
        """Whether all of its trials are vacuous."""
        return 0 < self.trials <= self.vacuous

    @property
    def not_positive(self) -> bool:
        """Whether number or interval reach 0, where a logarithmic axis does not."""
        return any(end is not None and end <= 0 for end in (self.low, self.y, self.high))


@dataclass(frozen=True)
class ReducedSeries:
    """The marks of one line or cloud; with `fits`, the laws of a line of thresholds."""

    name: str
    marks: tuple[Mark, ...]
    fits: Fits | None = None


@dataclass(frozen=True)
class Rates:
    """Success counts along an axis for one panel and one color, and the threshold estimated from them."""

    panel: Any
    name: str
    sizes: tuple[float, ...]
    successes: tuple[int, ...]
    trials: tuple[int, ...]
    threshold: Threshold
    missing: int

    @property
    def shares(self) -> list[tuple[float, float, float]]:
        """The share of successes at each size, with its interval."""
        return [(won / n, *wilson(won, n)) for won, n in zip(self.successes, self.trials, strict=True)]


def shown(figure: Figure, frame: pl.DataFrame) -> pl.DataFrame:
    """The records that a figure shows."""
    for name, wanted in figure.where.items():
        allowed = wanted if isinstance(wanted, tuple) else (wanted,)
        frame = frame.filter(pl.Series([value in allowed for value in column(frame, name)], dtype=pl.Boolean))
    return frame


def lines(figure: Line, reading: Reading) -> list[ReducedSeries]:
    """One series per value of `by`, one mark per value of `x`."""
    found = []
    for name, rows in groups(figure, shown(figure, reading.frame), figure.by):
        marks = tuple(_mark(figure, x, cell, reading) for x, cell in groups(figure, rows, figure.x))
        found.append(ReducedSeries(name_of(name), marks, _fits(figure, marks)))
    return found


def _fits(figure: Line, marks: Sequence[Mark]) -> Fits | None:
    """The laws, where the figure has some, the axis has lengths, and two thresholds at least are known."""
    pairs = [(mark.x, mark.threshold) for mark in marks if mark.threshold is not None]
    if not figure.laws or not all(isinstance(x, int | float) and x > 0 for x, _ in pairs):
        return None
    if sum(threshold.state == "crossed" for _, threshold in pairs) < 2:
        return None
    return fit_laws([x for x, _ in pairs], [threshold for _, threshold in pairs])


def success(figure: Success, reading: Reading) -> list[Rates]:
    """Success counts per panel and color, with their threshold."""
    found = []
    for panel, rows in groups(figure, shown(figure, reading.frame), figure.panel):
        for name, cell in groups(figure, rows, figure.by):
            counts, missing = _counts(figure.crossing, cell)
            if counts:
                hits, trials = zip(*counts.values(), strict=True)
                threshold = reading.crossing(figure.crossing, counts)
                found.append(Rates(panel, name_of(name), tuple(counts), hits, trials, threshold, missing))
    return found


def points(figure: Scatter, frame: pl.DataFrame) -> list[ReducedSeries]:
    """One mark per trial; the interval is two standard errors wide on each side where they were recorded."""
    found = []
    for name, rows in groups(figure, shown(figure, frame), figure.by):
        errors = column(rows, figure.sem) if figure.sem else [None] * rows.height
        marks = []
        for x, y, error in zip(column(rows, figure.x), column(rows, figure.y), errors, strict=True):
            if _missing(x) or _missing(y):
                marks.append(Mark(x, None, None, None, 1, "none", 1, "not a finite number"))
            else:
                reach = None if _missing(error) else special.ndtri(0.975) * error
                low, high = (None, None) if reach is None else (y - reach, y + reach)
                marks.append(Mark(x, float(y), low, high, 1))
        found.append(ReducedSeries(name_of(name), tuple(marks)))
    return found


def groups(figure: Figure, frame: pl.DataFrame, axis: str | None) -> Iterator[tuple[Any, pl.DataFrame]]:
    """Parts of the frame by the values of an axis: in the order of `where` if it lists them, else sorted."""
    if axis is None:
        yield None, frame
        return
    if axis not in frame.columns:
        return
    present = [value for value in frame[axis].unique().to_list() if value is not None]
    wanted = figure.where.get(axis)
    order = [v for v in wanted if v in present] if isinstance(wanted, tuple) else sorted(present)
    for value in order:
        yield value, frame.filter(pl.col(axis) == value)


def name_of(value: Any) -> str:
    """A value of `by` as the name of a series."""
    return "" if value is None else str(value)


def column(frame: pl.DataFrame, name: str) -> list[Any]:
    """The values of a column; none at all if no trial recorded it."""
    return frame[name].to_list() if name in frame.columns else [None] * frame.height


def _missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and not math.isfinite(value))


def _mark(figure: Line, x: Any, cell: pl.DataFrame, reading: Reading) -> Mark:
    mark = _reduce(figure, x, cell, reading)
    if figure.vacuous is None:
        return mark
    return dataclasses.replace(mark, vacuous=column(cell, figure.vacuous).count(True))


def _reduce(figure: Line, x: Any, cell: pl.DataFrame, reading: Reading) -> Mark:
    reduction: Reduction = figure.y
    match reduction:
        case Mean():
            return _mean(reduction, x, cell, log=figure.log_y)
        case Median():
            return _median(reduction, x, cell)
        case Smallest():
            return _smallest(reduction, x, cell)
        case Crossing():
            return _crossing(reduction, x, cell, reading)
        case Plateau():
            return _plateau(reduction, x, cell, reading)


def _values(reduction: Mean | Median, cell: pl.DataFrame) -> tuple[list[Any], list[bool], int]:
    """Values, whether each was censored, and the number of trials that have none."""
    values = column(cell, reduction.value)
    reached = column(cell, reduction.reached) if reduction.reached else [True] * len(values)
    kept = [(v, r is False) for v, r in zip(values, reached, strict=True) if not _missing(v)]
    return [v for v, _ in kept], [c for _, c in kept], len(values) - len(kept)


def _mean(reduction: Mean, x: Any, cell: pl.DataFrame, *, log: bool) -> Mark:
    values, censored, missing = _values(reduction, cell)
    n = len(values)
    if n == 0:
        return Mark(x, None, None, None, 0, "none", missing, "no trial has a finite number")
    truth = all(isinstance(value, bool) for value in values)
    if truth:
        mean, (low, high) = sum(values) / n, wilson(sum(values), n)
    elif log and min(values) > 0:
        centre, least, most = _student(np.log(values))
        mean, low, high = math.exp(centre), *(None if end is None else math.exp(end) for end in (least, most))
    else:
        mean, low, high = _student(np.array(values, dtype=float))
    draws = () if truth else tuple(map(float, values))
    if any(censored):  # their true values are larger, hence so is the mean
        said = f"{sum(censored)} of {n} stopped at their budget"
        return Mark(x, mean, low, None, n, "above", missing, said, draws=draws)
    return Mark(x, mean, low, high, n, "measured", missing, draws=draws)


def _student(values: np.ndarray) -> tuple[float, float | None, float | None]:
    """The mean, and its interval where the values are enough to have one."""
    mean = float(values.mean())
    if len(values) < FEW:
        return mean, None, None
    reach = float(special.stdtrit(len(values) - 1, 0.975)) * Estimate.of(values).sem
    return mean, mean - reach, mean + reach


def _median(reduction: Median, x: Any, cell: pl.DataFrame) -> Mark:
    values, censored, missing = _values(reduction, cell)
    n = len(values)
    if n == 0:
        return Mark(x, None, None, None, 0, "none", missing, "no trial has a finite number")
    ordered = sorted(math.inf if c else v for v, c in zip(values, censored, strict=True))
    # The k-th smallest and k-th largest value enclose the median unless k or more fall on one side by chance.
    k = next((k for k in range(n // 2, 0, -1) if 2 * special.bdtr(k - 1, n, 0.5) <= 0.05), 0)
    low, high = (ordered[k - 1], ordered[n - k]) if k else (None, None)
    middle = (ordered[(n - 1) // 2] + ordered[n // 2]) / 2
    if math.isinf(middle):
        at_least = float(np.median(values))
        said = f"{sum(censored)} of {n} stopped at their budget"
        return Mark(x, at_least, at_least, None, n, "above", missing, said, draws=tuple(map(float, values)))
    low, high = (None if end is None or math.isinf(end) else end for end in (low, high))
    return Mark(x, middle, low, high, n, "measured", missing, draws=tuple(map(float, values)))


def _counts(reduction: Smallest | Crossing | Plateau, cell: pl.DataFrame) -> tuple[dict[float, tuple[Any, Any]], int]:
    """Successes and trials by size, ascending, and the number of trials without an outcome."""
    pairs = list(zip(column(cell, reduction.axis), column(cell, reduction.outcome), strict=True))
    kept = [(size, outcome) for size, outcome in pairs if not _missing(outcome)]
    sizes = sorted({size for size, _ in kept})
    outcomes = {size: [won for each, won in kept if each == size] for size in sizes}
    if any(isinstance(won, float) for _, won in kept):  # shares of runs that have something in common
        return counts_of(outcomes), len(pairs) - len(kept)
    return {size: (sum(map(bool, won)), len(won)) for size, won in outcomes.items()}, len(pairs) - len(kept)


def _smallest(reduction: Smallest, x: Any, cell: pl.DataFrame) -> Mark:
    counts, missing = _counts(reduction, cell)
    if not counts:
        return Mark(x, None, None, None, 0, "none", missing, "no trial has an outcome")
    trials = sum(n for _, n in counts.values())
    size = first_reaching(counts, reduction.level)
    before = max((other for other in counts if size is None or other < size), default=None)
    if size is None:
        return Mark(x, before, before, None, trials, "above", missing, "not reached by any size that was tried")
    return Mark(x, size, before, size, trials, "below" if before is None else "measured", missing)


def _crossing(reduction: Crossing, x: Any, cell: pl.DataFrame, reading: Reading) -> Mark:
    counts, missing = _counts(reduction, cell)
    if not counts:
        return Mark(x, None, None, None, 0, "none", missing, "no trial has an outcome")
    found = reading.crossing(reduction, counts)
    low, high, few = found.low, found.high, found.state == "unresolved"
    rest: dict[str, Any] = {"trials": found.trials, "missing": missing, "threshold": found}
    if found.size is not None:
        return Mark(x, found.size, low, high, **rest)
    if found.state == "plateau":
        said = f"success levels off below {words_of(reduction.level)}, so there is no threshold"
        return Mark(x, None, low, high, state="none", words=said, **rest)
    if low is not None:
        said = "too few trials to bound it from above" if few else "above all sizes that were tried"
        return Mark(x, low, low, None, state="above", words=said, **rest)
    if high is not None:
        said = "too few trials to bound it from below" if few else "below all sizes that were tried"
        return Mark(x, high, None, high, state="below", words=said, **rest)
    return Mark(x, None, None, None, state="none", words="too few trials to tell", **rest)


def _plateau(reduction: Plateau, x: Any, cell: pl.DataFrame, reading: Reading) -> Mark:
    counts, missing = _counts(reduction, cell)
    if not counts:
        return Mark(x, None, None, None, 0, "none", missing, "no trial has an outcome")
    found = reading.crossing(reduction, counts)
    return Mark(x, *(found.plateau or (None, None, None)), found.trials, missing=missing)
