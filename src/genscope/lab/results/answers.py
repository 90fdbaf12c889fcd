"""Headings that state what a figure found: the fields of `Figure.answer`, filled from its reduced numbers.

`{first A}` and `{last A}` are the numbers of series A at its least and largest x, `{from A}` and `{to A}` these x;
`{ratio A/B}` compares two series at the largest x that both have, which is `{at A/B}`; `{least A}` and `{most A}` are
extremes over all marks and `{median A}` their middle, `{fold A}` is the least that x is of y, and `{law A}` tells which
scaling law fits best. Where a figure has one series, or all are meant, A is left out.

Guarantee: exact up to rounding; where a number is not measured, or both ends of a series are the same, there is no
answer, and the title stands for it.
"""

import re
import statistics
from collections.abc import Callable, Mapping, Sequence

from genscope.lab.results.reduction import Mark, ReducedSeries
from genscope.lab.statistics.scaling import CLEAR

_FIELD = re.compile(r"\{(\w+)(?: ([^{}]*))?\}")


class _Unknown(Exception):
    """A number that was not measured."""


def answer(words: str, series: Sequence[ReducedSeries], told: Callable[[float], str]) -> str:
    """The words with their fields filled, numbers written by `told`; empty where one is not known."""
    try:
        _check_ends(words, series)
        return _FIELD.sub(lambda found: _fill(found[1], found[2] or "", series, told), words)
    except _Unknown:
        return ""


def _check_ends(words: str, series: Sequence[ReducedSeries]) -> None:
    """A sentence from one end of a series to the other needs two ends."""
    fields = [(found[1], found[2] or "") for found in _FIELD.finditer(words)]
    starts, ends = ({about for field, about in fields if field in pair} for pair in (("first", "from"), ("last", "to")))
    for about in starts & ends:
        if len({mark.x for mark in _measured(_named(series, about))}) < 2:
            raise _Unknown


def _fill(field: str, about: str, series: Sequence[ReducedSeries], told: Callable[[float], str]) -> str:
    if field == "law":
        return _law(_named(series, about))
    return told(_number(field, about, series))


def _number(field: str, about: str, series: Sequence[ReducedSeries]) -> float:
    if field in ("ratio", "at"):
        above, _, below = about.partition("/")
        x, ratio = _ratio(_named(series, above), _named(series, below))
        return x if field == "at" else ratio
    if field in _OVER_ALL:
        chosen = series if not about else [_named(series, about)]
        marks = [mark for each in chosen for mark in _measured(each)]
        if not marks:
            raise _Unknown
        return _OVER_ALL[field](marks)
    marks = _measured(_named(series, about))
    if not marks or field not in ("first", "last", "from", "to"):
        raise _Unknown
    mark = marks[0] if field in ("first", "from") else marks[-1]
    return float(mark.x) if field in ("from", "to") else _y(mark)


def _least_ratio(marks: Sequence[Mark]) -> float:
    if not all(_y(mark) > 0 for mark in marks):
        raise _Unknown
    return min(mark.x / _y(mark) for mark in marks)


_OVER_ALL: Mapping[str, Callable[[Sequence[Mark]], float]] = {
    "least": lambda marks: min(map(_y, marks)),
    "most": lambda marks: max(map(_y, marks)),
    "median": lambda marks: statistics.median(map(_y, marks)),
    "fold": _least_ratio,
}


def _named(series: Sequence[ReducedSeries], name: str) -> ReducedSeries:
    found = [each for each in series if each.name == name or not name]
    if len(found) != 1:
        raise _Unknown
    return found[0]


def _measured(series: ReducedSeries) -> list[Mark]:
    known = [mark for mark in series.marks if mark.y is not None and mark.state == "measured"]
    if not all(isinstance(mark.x, int | float) for mark in known):
        return known
    return sorted(known, key=lambda mark: mark.x)


def _y(mark: Mark) -> float:
    return mark.y if mark.y is not None else float("nan")


def _ratio(one: ReducedSeries, other: ReducedSeries) -> tuple[float, float]:
    """The largest x at which both are measured, and how many times as large the first is there."""
    numbers = {mark.x: _y(mark) for mark in _measured(other)}
    shared = [mark for mark in _measured(one) if numbers.get(mark.x)]
    if not shared:
        raise _Unknown
    return float(shared[-1].x), _y(shared[-1]) / numbers[shared[-1].x]


def _law(series: ReducedSeries) -> str:
    if series.fits is None or series.fits.best is None:
        raise _Unknown
    best = series.fits.best
    leads = [series.fits.lead(best, rival) for rival in series.fits.laws if rival != best]
    clear = all(lead is not None and lead >= CLEAR for lead in leads)
    return f"the {best} law fits best" if clear else "no law is clearly ahead"
