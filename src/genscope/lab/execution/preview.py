"""What a run would do: how many trials, how many are stored, how long the rest may take.

Guarantee: trial counts are exact without a search; with one they cover the rounds that are known by now, and `most`
is what the searches may ask for, failed trials aside. The time is an estimate: the mean of the stored trials of the
same point, at any size along a search; where there is none, the mean of all that are stored, or what the study says of
itself if that is longer.
"""

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from genscope.lab.execution.cores import cores
from genscope.lab.plans.design import rounds
from genscope.lab.plans.selection import Selection
from genscope.lab.plans.study import Trial, canonical
from genscope.lab.storage.store import Store
from genscope.lab.values import decode


@dataclass(frozen=True)
class Preview:
    """A run before it runs."""

    points: int
    trials: int
    stored: int
    exact: bool
    """False while a search may ask for more trials than these."""
    most: int
    """Trials if every unfinished search goes on to its limit."""
    seconds: float | None
    """For the missing trials among these, on the given workers, compilation aside; None if nobody knows."""
    measured: bool = False
    """Whether stored trials say so, and not the study of itself."""


def preview(store: Store | None, selection: Selection, *, workers: int | None = None) -> Preview:
    """Look at a selection without running it; `store` is None where there is no store yet."""
    seen, missing = _look(selection, store)
    workers = workers or cores()
    stored = {} if store is None else store.mean_seconds(selection.study, selection.revision)
    said = selection.trial_seconds
    if not stored and said is None:
        return seen
    alike = _means(stored, selection)
    others = max(_mean(stored.values()), said or 0.0)  # for points of which nothing like them is stored
    seconds = sum(number * alike.get(_kind(text, selection), others) for text, number in missing.items())
    return dataclasses.replace(seen, seconds=seconds / workers, measured=bool(stored))


def tally(store: Store | None, selection: Selection) -> Preview:
    """A preview without the time, which takes longer to find out than all the rest."""
    return _look(selection, store)[0]


def _look(selection: Selection, store: Store | None) -> tuple[Preview, Counter[str]]:
    """The preview, and the number of missing trials by the canonical text of their point."""
    look = _look_at_seeds if selection.search is None else _look_at_search
    missing, trials, most = look(selection, store)
    stored = trials - missing.total()
    return Preview(len(selection.points), trials, stored, exact=most == trials, most=most, seconds=None), missing


def _look_at_seeds(selection: Selection, store: Store | None) -> tuple[Counter[str], int, int]:
    counts = {} if store is None else store.stored_seeds(selection.study, selection.revision, selection.seeds)
    size = len(selection.seeds)
    texts = [canonical(dict(point)) for point in selection.points]
    missing = Counter({text: size - counts.get(text, 0) for text in texts})
    return missing, size * len(texts), size * len(texts)


def _look_at_search(selection: Selection, store: Store | None) -> tuple[Counter[str], int, int]:
    found: dict[str, Any] = {}

    def results(trials: Sequence[Trial]) -> Mapping[str, Any]:
        unknown = [trial for trial in trials if trial.id not in found]
        if store is not None and unknown:
            found.update(store.results(unknown))
        return found

    missing: Counter[str] = Counter()
    trials = most = 0
    for point in selection.points:
        before = trials
        open_end = False
        for listed in rounds(selection, point, results):
            trials += len(listed)
            known = results(listed)
            absent = [trial for trial in listed if trial.id not in known]
            missing.update(canonical(dict(trial.point)) for trial in absent)
            if absent:  # the next round depends on these
                open_end = True
                break
        counted = trials - before
        most += max(counted, selection.search.trials) if open_end and selection.search else counted
    return missing, trials, most


def _means(stored: Mapping[str, tuple[int, float]], selection: Selection) -> dict[str, float]:
    """Mean times by kind of point."""
    kinds: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
    for text, known in stored.items():
        kinds[_kind(text, selection)].append(known)
    return {kind: _mean(known) for kind, known in kinds.items()}


def _kind(text: str, selection: Selection) -> str:
    """A point's canonical text without the axis that a search runs along: trials differ little along it."""
    if selection.search is None:
        return text
    return canonical({axis: value for axis, value in decode(text).items() if axis != selection.search.axis})


def _mean(known: Iterable[tuple[int, float]]) -> float:
    """The mean over all trials, from the number and the mean of each group; 0 without any."""
    groups = list(known)
    return sum(number * mean for number, mean in groups) / max(sum(number for number, _ in groups), 1)
