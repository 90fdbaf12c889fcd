"""Reading a finished selection back: its trials in a frame, and the thresholds of its searches.

Source: None (house design).
Departures: None.
Guarantee: exact; what is read depends on the study, the budget and the choice of points, not on what else is stored.
"""

from dataclasses import dataclass

import polars as pl

from genscope.lab import threshold
from genscope.lab.design import Where, rounds, select
from genscope.lab.store import Store
from genscope.lab.study import Point, Study, Trial
from genscope.lab.threshold import Threshold


@dataclass(frozen=True)
class Reading:
    """What the store holds of a selection."""

    frame: pl.DataFrame
    """One row per stored trial of the selection, as `Store.frame` gives it."""
    thresholds: tuple[tuple[Point, Threshold], ...]
    """Per point of a search, the estimate from its finished rounds."""
    missing: int
    """Trials of the selection that are not stored (of a search: in the round that is not finished)."""


def read(
    study: Study,
    *,
    store: Store,
    budget: str = "standard",
    where: Where | None = None,
    seeds: int | None = None,
    seed: int | None = None,
) -> Reading:
    """The stored part of a selection; the arguments are those of `run`."""
    selection = select(study, budget, where, seeds, seed)
    done = store.done(study.name, study.revision)
    frame = store.frame(study.name, study.revision)
    wanted: list[str] = []
    missing = 0
    searched: list[tuple[Point, list[Trial]]] = []
    for point in selection.points:
        complete: list[Trial] = []
        for trials in rounds(study, selection, point, store.results):
            absent = sum(trial.id not in done for trial in trials)
            wanted += [trial.id for trial in trials if trial.id in done]
            missing += absent
            if absent:
                break
            complete += trials
        searched.append((point, complete))
    chosen = frame.filter(pl.col("id").is_in(wanted)) if wanted else frame.clear()
    if selection.search is None:
        return Reading(chosen, (), missing)
    return Reading(chosen, tuple(_estimates(selection.search, searched, store)), missing)


def _estimates(search: threshold.Search, searched: list[tuple[Point, list[Trial]]], store: Store):
    for point, trials in searched:
        counts: dict[int, tuple[int, int]] = {}
        found = store.results(trials)
        for trial in trials:
            values = found[trial.id]
            if values is not None:  # a trial that raised is neither success nor failure
                size = int(trial.point[search.axis])
                successes, total = counts.get(size, (0, 0))
                counts[size] = successes + bool(values[search.outcome]), total + 1
        yield point, threshold.estimate(search, counts)
