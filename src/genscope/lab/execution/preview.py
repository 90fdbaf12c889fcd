"""What a run would do: how many trials, how many are stored, how long the rest may take.

Guarantee: trial counts are exact without a search; with one they cover the rounds that are known by now, and `most`
is what the searches may ask for, failed trials aside. The time is an estimate: the mean of the stored trials of the
same point, or else of the study; while none is stored, what the study says of itself.
"""

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from genscope.lab.plans.design import cores, rounds
from genscope.lab.plans.selection import Selection
from genscope.lab.plans.study import Trial, canonical
from genscope.lab.storage.store import Store


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
    measured = None if store is None else _seconds(selection, store, missing)
    if measured is not None:
        return dataclasses.replace(seen, seconds=measured / workers, measured=True)
    each = selection.trial_seconds
    return seen if each is None else dataclasses.replace(seen, seconds=missing.total() * each / workers)


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


def _seconds(selection: Selection, store: Store, missing: Counter[str]) -> float | None:
    """From the mean of the same point, or else of all that is stored."""
    stored = store.mean_seconds(selection.study, selection.revision)
    if not stored:
        return None
    overall = sum(number * mean for number, mean in stored.values()) / sum(number for number, _ in stored.values())
    return sum(number * stored.get(text, (0, overall))[1] for text, number in missing.items())
