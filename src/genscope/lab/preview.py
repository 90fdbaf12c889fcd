"""What a run would do: how many trials, how many are stored, how long the rest may take.

Source: None (house design).
Departures: None.
Guarantee: trial counts are exact without a search; with one they cover the rounds that are known by now, and `most`
is what the searches may ask for, failed trials aside. The time is an estimate: the mean of the stored trials of the
same point, or else of the study.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from genscope.lab.design import Where, default_threads, rounds, select
from genscope.lab.store import Store
from genscope.lab.study import Study, Trial


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
    """For the missing trials among these, on the given threads, compilation aside; None without stored trials."""


def preview(
    study: Study,
    *,
    store: Store | None,
    budget: str = "standard",
    where: Where | None = None,
    seeds: int | None = None,
    seed: int | None = None,
    threads: int | None = None,
) -> Preview:
    """Look at a selection without running it; `store` is None where there is no store yet."""
    selection = select(study, budget, where, seeds, seed)
    done = set() if store is None else store.done(study.name, study.revision)
    listed: list[Trial] = []
    most, exact = 0, True
    for point in selection.points:
        known, finished = _known(rounds(study, selection, point, store.results if store else lambda _: {}), done)
        listed += known
        if finished or selection.search is None:
            most += len(known)
        else:
            most += max(len(known), selection.search.trials)
            exact = False
    missing = [trial for trial in listed if trial.id not in done] if done else listed  # identities take a while
    return Preview(
        points=len(selection.points),
        trials=len(listed),
        stored=len(listed) - len(missing),
        exact=exact,
        most=most,
        seconds=None if store is None else _seconds(study, store, missing, threads or default_threads()),
    )


def _known(walk: Iterable[list[Trial]], done: set[str]) -> tuple[list[Trial], bool]:
    """Trials of a point up to the first round that is not stored, and whether there is no such round."""
    known: list[Trial] = []
    for trials in walk:
        known += trials
        if any(trial.id not in done for trial in trials):
            return known, False
    return known, True


def _seconds(study: Study, store: Store, missing: list[Trial], threads: int) -> float | None:
    stored = store.frame(study.name, study.revision)
    if stored.is_empty():
        return None
    axes = [axis for axis in study.axes() if axis in stored.columns]
    means = stored.group_by(axes).agg(pl.col("seconds").mean()) if axes else stored.select(pl.col("seconds").mean())
    by_point = {tuple(row[:-1]): row[-1] for row in means.rows()}
    overall = float(stored["seconds"].mean())  # pyright: ignore[reportArgumentType]  # a column of floats
    expected = (by_point.get(tuple(trial.point.get(axis) for axis in axes), overall) for trial in missing)
    return sum(expected, 0.0) / threads
