"""The store: 100,000 trials into a data frame (wanted: under a second), what storing adds to a batch, a million trials.

Peer: the same rows taken one by one, each JSON text parsed by Python. Of a million stored trials: counting them for
`genscope list` (wanted: under a second) and finding that nothing is left to run (under 3).
"""

import json
import tempfile
from pathlib import Path

import polars as pl

from benchmarks._timing import best_seconds, cpu_seconds, show
from genscope.lab import Record, Store, Study, Trial, grid, run, select
from genscope.lab.execution.preview import tally
from genscope.lab.plans.design import batches
from genscope.lab.storage.store import TRIAL

TRIALS, BATCHES, SIZE = 100_000, 200, 4


def records(count: int) -> list[Record]:
    """Trials of 2,000 points with six values each, every thousandth of them not a number."""
    made = []
    for i in range(count):
        point = {"context_length": i % 50, "sample_size": i // 50 % 40, "preset": "tuned"}
        loss = float("nan") if i % 1000 == 0 else 1e-3 * i
        measured = {"accuracy": 1 - 1 / (i + 1), "loss": loss, "steps": i, "solved": i % 2 == 0, "curve": [0.1 * i] * 5}
        made.append(Record(Trial("bench", 1, point, i // 2000), measured, seconds=0.1, provenance={"commit": "none"}))
    return made


def row_by_row(store: Store) -> pl.DataFrame:
    """The peer."""
    with store.reading() as connection:
        rows = connection.execute(TRIAL.select()).mappings().all()
    return pl.DataFrame([{**json.loads(row["point"]), **json.loads(row["result"]), **row} for row in rows])


def batch_seconds(store: Store) -> float:
    """Leasing and committing a batch, on the disk that holds temporary files."""
    groups = iter(batches([Trial("batches", 1, {"size": 1}, seed) for seed in range(8 * BATCHES * SIZE)], SIZE))

    def work() -> None:
        for _ in range(BATCHES):
            group = store.lease([next(groups)])
            assert group is not None
            store.add([Record(trial, {"x": 1.0}) for trial in group], leased=group)

    return best_seconds(work, repeats=5) / BATCHES


def empty_trial_seconds(store: Store) -> float:
    """Everything that a run adds to a trial which does nothing."""
    study = Study("empty", "", "", lambda key, repeat: {"x": 1.0}, points=(), seeds=400)
    repeats = iter(range(100))
    return best_seconds(lambda: run(study.replace(points=grid(repeat=[next(repeats)])), store=store), repeats=3) / 400


def million(store: Store) -> dict[str, float]:
    """CPU seconds with a million trials of one study in the store."""
    axes = {"context_length": list(range(50)), "sample_size": list(range(40))}
    study = Study("million", "", "", lambda key, **point: {}, points=grid(**axes), seeds=500)
    for point in study.points:
        store.add(Record(trial, {"loss": 0.5, "curve": [0.5] * 5}) for trial in study.trials(point, range(500)))
    listed, resumed = cpu_seconds(lambda: tally(store, select(study)), lambda: run(study, store=store), repeats=3)
    return {"count 1,000,000 trials, CPU seconds": listed, "resume 1,000,000 trials, CPU seconds": resumed}


def main() -> None:
    with tempfile.TemporaryDirectory() as name, Store(f"sqlite:///{Path(name) / 'store.db'}") as store:
        store.add(records(TRIALS))
        frame = best_seconds(lambda: store.frame("bench"), repeats=5)
        rows = {
            f"Store.frame, {TRIALS:,} trials, seconds": frame,
            "row by row / Store.frame": best_seconds(lambda: row_by_row(store), repeats=1) / frame,
            f"lease and commit, batch of {SIZE}, milliseconds": 1e3 * batch_seconds(store),
            f"run, per empty trial in batches of {SIZE}, milliseconds": 1e3 * empty_trial_seconds(store),
        }
        show("store: results in and out", rows | million(store))


if __name__ == "__main__":
    main()
