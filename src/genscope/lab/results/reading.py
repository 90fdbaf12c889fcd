"""Reading a selection: its stored trials in a frame, its thresholds, and the laws that they follow.

Everyone who shows or judges results reads here, and thresholds are estimated nowhere else.

Guarantee: exact; what is read depends on the selection, not on what else is stored.
"""

import dataclasses
import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from genscope.lab.plans.design import rounds
from genscope.lab.plans.figure import Crossing, Plateau
from genscope.lab.plans.selection import Selection
from genscope.lab.plans.study import Point, Trial, canonical
from genscope.lab.results.mixtures import failures, mixtures
from genscope.lab.statistics import estimation
from genscope.lab.statistics.scaling import Fits, fit_laws
from genscope.lab.statistics.success_curve import Counts
from genscope.lab.statistics.threshold import Level, Search, Threshold
from genscope.lab.storage.store import Store


@dataclass(frozen=True)
class Reading:
    """What the store holds of a selection."""

    frame: pl.DataFrame
    """One row per stored trial of the selection, as `Store.frame` gives it."""
    thresholds: tuple[tuple[Point, Threshold], ...]
    """For each level of the search, the first one first, where the success rate of each point crosses it."""
    missing: int
    """Trials of the selection that are not stored (of a search: in the round that is not finished)."""
    search: Search | None = None
    """Whose thresholds they are."""
    origins: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The facts behind the frame's column `provenance`."""
    failed: Mapping[str, Trial] = field(default_factory=dict)
    """The stored trials that raised an exception, by identity; a frame has axes of several types in one."""

    @functools.cached_property
    def remarks(self) -> tuple[str, ...]:
        """What a reader of any number made from these trials has to know: trials that failed, and mixtures."""
        return (*failures(self.frame), *mixtures(self.frame, self.origins))

    def at(self, level: Level) -> tuple[tuple[Point, Threshold], ...]:
        """The thresholds at one level."""
        return tuple((point, found) for point, found in self.thresholds if found.level == level)

    @functools.cached_property
    def laws(self) -> dict[tuple[str, Level], Fits]:
        """The laws over the context length (or the one numeric axis that varies), by the other axes and the level."""
        axis = _law_axis([point for point, _ in self.thresholds])
        if axis is None:
            return {}
        groups: dict[tuple[str, Level], list[tuple[Any, Threshold]]] = {}
        for point, found in self.thresholds:
            others = ", ".join(str(value) for name, value in point.items() if name != axis)
            groups.setdefault((others, found.level), []).append((point[axis], found))
        return {name: fit_laws(*zip(*group, strict=True)) for name, group in groups.items()}

    def crossing(self, asked: Crossing | Plateau, counts: Counts) -> Threshold:
        """The threshold of some of its trials, as its search has it if that goes along the same axis."""
        level = asked.level if isinstance(asked, Crossing) else 0.8
        search = self.search
        if search is None or search.axis != asked.axis:
            lowest = max(1, math.floor(min(counts)))
            search = Search(asked.axis, lowest=lowest, highest=max(lowest + 1, math.ceil(max(counts))))
        return _estimate(dataclasses.replace(search, level=level), tuple(sorted(counts.items())))


@functools.lru_cache(maxsize=4096)  # a claim, a line and the success curves behind it ask for the same thresholds
def _estimate(search: Search, counts: tuple[tuple[float, tuple[float, float]], ...]) -> Threshold:
    return estimation.estimate(search, dict(counts))


def read(store: Store, selection: Selection) -> Reading:
    """The stored part of a selection."""
    return _read(_Stored(store, selection.study, selection.revision), selection)


def largest(store: Store, selections: Sequence[Selection]) -> tuple[Selection, Reading]:
    """The largest selection of a study that is all stored; if none is, the one of which most is stored."""
    stored = _Stored(store, selections[0].study, selections[0].revision)
    found: list[tuple[Selection, Reading]] = []
    for selection in sorted(reversed(selections), key=lambda each: -each.most):  # of equals, the latest
        found.append((selection, _read(stored, selection)))
        if not found[-1][1].missing:
            break
    return max(reversed(found), key=lambda pair: (not pair[1].missing, pair[1].frame.height))


class _Stored:
    """What the store holds of a study."""

    def __init__(self, store: Store, study: str, revision: int):
        self.frame, self.origins = store.frame(study, revision), store.provenances(study, revision)
        self.failed = {trial.id: trial for trial in store.failed(study, revision)}


def _read(all_stored: _Stored, selection: Selection) -> Reading:
    frame, search = all_stored.frame, selection.search or selection.grid
    if selection.request is None:
        return Reading(frame, (), 0, search, all_stored.origins, all_stored.failed)
    outcome = search.outcome if search and search.outcome in frame.columns else "status"
    known = frame.select("id", "status", pl.col(outcome).alias("outcome")).rows()
    found = {name: {outcome: value} if status == "ok" else None for name, status, value in known}
    stored: list[Trial] = []
    missing = 0
    for point in selection.points:
        for trials in rounds(selection, point, lambda _: found):
            here = [trial for trial in trials if trial.id in found]
            stored += here
            missing += len(trials) - len(here)
            if len(here) < len(trials):
                break
    chosen = frame.filter(pl.col("id").is_in([trial.id for trial in stored])) if stored else frame.clear()
    estimates = () if search is None else _thresholds(selection, search, stored, found)
    return Reading(chosen, tuple(estimates), missing, search, all_stored.origins, all_stored.failed)


def _thresholds(
    selection: Selection, search: Search, stored: Iterable[Trial], found: Mapping[str, Any]
) -> Iterable[tuple[Point, Threshold]]:
    """Per point of a search, or per point of a grid without its sizes, the estimate from all of its trials."""
    bare = [{axis: value for axis, value in point.items() if axis != search.axis} for point in selection.points]
    points = {canonical(point): (point, {}) for point in bare}
    for trial in stored:
        if found[trial.id] is not None:  # a trial that raised is neither success nor failure
            place = canonical({axis: value for axis, value in trial.point.items() if axis != search.axis})
            counts, size = points[place][1], trial.point[search.axis]
            successes, total = counts.get(size, (0, 0))
            counts[size] = successes + bool(found[trial.id].get(search.outcome)), total + 1
    if selection.search is None and len({point[search.axis] for point in selection.points}) < 2:
        return []  # one size crosses nothing
    return [
        (point, _estimate(dataclasses.replace(search, level=level), tuple(sorted(counts.items()))))
        for level in search.levels
        for point, counts in points.values()
    ]


def _law_axis(points: Sequence[Point]) -> str | None:
    values: dict[str, set[Any]] = {}
    for point in points:
        for name, value in point.items():
            if type(value) in (int, float):
                values.setdefault(name, set()).add(value)
    lengths = [name for name, seen in values.items() if min(seen) > 0]
    varying = [name for name in lengths if len(values[name]) > 1]
    if "context_length" in lengths:
        return "context_length"
    return varying[0] if len(varying) == 1 else None
