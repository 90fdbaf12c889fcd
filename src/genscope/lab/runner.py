"""Running a study: lease a batch, have it computed, commit it; resume, share and stop at any moment.

One thread, the caller's, leases and writes; a pool of threads, of processes or of machines computes, and knows nothing
of the store. A worker gets its next batch when its last one is committed, so whatever is killed loses at most the
batches that were being computed. The rounds of all searches take turns, so that all thresholds are refined together.

Source: None (house design).
Departures: None.
Guarantee: exact; the stored trials and their values are the same however often the run was interrupted, by whom its
batches were computed and beside how many other processes it ran.
"""

import contextlib
import itertools
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass

from genscope.lab.design import Selection, Where, batches, default_threads, describe, rounds, select
from genscope.lab.interruption import between_steps
from genscope.lab.leases import Heartbeat
from genscope.lab.manifest import manifest
from genscope.lab.pool import Pool, Submit
from genscope.lab.store import Record, Store
from genscope.lab.study import Point, Study, Trial, canonical
from genscope.lab.threads import Threads

POLL_SECONDS = 0.5
_WINDOW = 64  # batches offered to the store at once; those that others hold are asked for again later


@dataclass(frozen=True)
class Progress:
    """How far a run is; `total` grows while a search goes on, and `exact` says that it no longer does."""

    study: str
    doing: str
    done: int
    total: int
    exact: bool
    failed: int
    rate: float
    """Trials per second since the run began."""
    seconds_left: float | None
    """None until there is a rate."""


@dataclass(frozen=True)
class Summary:
    """What a run did."""

    study: str
    budget: str
    trials: int
    """Trials of the selection, whoever computed them."""
    computed: int
    """Of these, computed by this run."""
    failed: int
    """Of those computed by this run, raised an exception."""
    seconds: float
    stopped: tuple[str, ...]
    """Searches that ended early, and why."""


def run(
    study: Study,
    *,
    store: Store,
    budget: str = "standard",
    where: Where | None = None,
    seeds: int | None = None,
    seed: int | None = None,
    threads: int | None = None,
    pool: Pool | None = None,
    progress: Callable[[Progress], None] | None = None,
    retry_failed: bool = False,
) -> Summary:
    """Run what is missing of a study; results go to the store, batch by batch.

    `where`, `seeds` and `seed` restrict or replace points and repetitions (`design.select`). Batches are computed by
    threads of this process, one per core unless `threads` says otherwise, or by a `pool`: `Processes` or `Cluster`.
    `progress` is called by the calling thread, after every batch and at least every `POLL_SECONDS`. An exception in a
    trial is stored with that trial; `retry_failed` first removes such trials of the selection, so that they run again.
    Ctrl-C and SIGTERM give back the leases and come out as KeyboardInterrupt and SystemExit.
    """
    selection = select(study, budget, where, seeds, seed)
    if threads is not None and pool is not None:
        raise ValueError(f"run got {threads=} and a pool: one of the two computes. Leave the threads out.")
    with contextlib.ExitStack() as stack:
        if pool is None:
            pool = stack.enter_context(Threads(default_threads() if threads is None else threads))
        submit = pool.open(study)
        store.put_manifest(study.name, study.revision, manifest(study))
        store.release()  # what an earlier run could not give back, say on a full disk: renewed, it would never expire
        if retry_failed:
            failed = store.failed(study.name, study.revision)
            store.forget_failed([trial for trial in failed if selection.contains(trial)])
        with between_steps() as step, Heartbeat(store.renew, store.lease_seconds / 3):
            session = Session(study, store, selection, submit, pool.slots, progress)
            try:
                session.drive(step)
            finally:
                session.leave()
    return session.summary(budget)


class _Walk:
    """One point on its way through its rounds; `stored` is how many of its seeds are finished, where that is known."""

    def __init__(self, study: Study, selection: Selection, point: Point, store: Store, stored: int):
        self._size = study.batch
        self._rounds = rounds(study, selection, point, store.results)
        self.due: set[str] = set()
        self.over = selection.search is None and stored == len(selection.seeds)
        self.trials = stored if self.over else 0
        self.stopped: str | None = None

    def advance(self, done: set[str]) -> list[list[Trial]]:
        """Batches of the first round that is not stored; none when the point is finished."""
        while True:
            try:
                trials = next(self._rounds)
            except StopIteration as end:
                self.over, self.stopped = True, end.value
                return []
            self.trials += len(trials)
            self.due = {trial.id for trial in trials} - done
            if self.due:
                groups = batches(trials, self._size)
                return [group for group in groups if any(trial.id in self.due for trial in group)]


class Session:
    """The state of one run: points under way, batches due, batches in work."""

    def __init__(
        self,
        study: Study,
        store: Store,
        selection: Selection,
        submit: Submit,
        slots: Callable[[], int],
        progress: Callable[[Progress], None] | None,
    ):
        self._study, self._store, self._submit, self._slots = study, store, submit, slots
        self._progress = progress
        self._exact = selection.search is None
        self._done = store.done(study.name, study.revision)
        self._ready: deque[tuple[_Walk, list[Trial]]] = deque()
        self._elsewhere: list[tuple[_Walk, list[Trial]]] = []  # leased by other processes when last asked
        self._running: dict[Future[list[Record]], tuple[_Walk, list[Trial]]] = {}
        counts = {} if selection.search else store.stored_seeds(study.name, study.revision, selection.seeds)
        stored = [counts.get(canonical(dict(point)), 0) for point in selection.points]
        self._walks = [
            _Walk(study, selection, point, store, number)
            for point, number in zip(selection.points, stored, strict=True)
        ]
        for walk in self._walks:
            if not walk.over:  # the trials of a million finished ones need not be listed
                self._advance(walk)
        self._start = time.monotonic()
        self._found = self._finished()
        self._computed = self._failed = 0

    def drive(self, step: Callable[[], None]) -> None:
        """Work until every point is finished; `step` is called where an exception of it harms nothing."""
        asked = time.monotonic()
        while True:
            step()
            slots = self._slots()
            while len(self._running) < slots and (task := self._lease()) is not None:
                group = task[1]
                due = [trial for trial in group if trial.id not in self._done]
                self._running[self._submit(due)] = task
                self._report(describe(group[0].point))
            if not self._running and not self._elsewhere:
                self._report("done")
                return
            if self._running:
                for future in wait(self._running, POLL_SECONDS, FIRST_COMPLETED).done:
                    self._commit(future)
            else:
                time.sleep(POLL_SECONDS)
            if self._elsewhere and len(self._running) < slots and time.monotonic() > asked + POLL_SECONDS:
                self._look_elsewhere()
                asked = time.monotonic()
            doing = [group for _, group in self._running.values()] or [group for _, group in self._elsewhere]
            self._report(describe(doing[0][0].point) if doing else "next round")

    def leave(self) -> None:
        """Store what is computed and give back the rest; for an end before the end as well."""
        with contextlib.suppress(OSError):  # the store is gone: leases expire by themselves
            for future, (_, group) in self._running.items():
                if future.done() and not future.cancelled() and future.exception() is None:
                    self._store.add(future.result(), leased=group)
            self._store.release()

    def summary(self, budget: str) -> Summary:
        """What was done."""
        return Summary(
            study=self._study.name,
            budget=budget,
            trials=sum(walk.trials for walk in self._walks),
            computed=self._computed,
            failed=self._failed,
            seconds=time.monotonic() - self._start,
            stopped=tuple(walk.stopped for walk in self._walks if walk.stopped is not None),
        )

    def _advance(self, walk: _Walk) -> None:
        self._ready.extend((walk, group) for group in walk.advance(self._done))

    def _lease(self) -> tuple[_Walk, list[Trial]] | None:
        while self._ready:
            offered = list(itertools.islice(self._ready, _WINDOW))
            leased = self._store.lease([group for _, group in offered])
            for _ in offered:
                task = self._ready.popleft()
                if task[1] is leased:
                    return task
                self._elsewhere.append(task)
        return None

    def _look_elsewhere(self) -> None:
        """Take note of what other processes finished, and ask again for the rest."""
        tasks, self._elsewhere = self._elsewhere, []
        found = self._store.results([trial for _, group in tasks for trial in group])
        for walk, group in tasks:
            if all(trial.id in found for trial in group):
                self._finish(walk, group)
            else:
                self._ready.append((walk, group))

    def _commit(self, future: "Future[list[Record]]") -> None:
        walk, group = self._running.pop(future)
        records = future.result()
        self._store.add(records, leased=group)
        self._computed += len(records)
        self._failed += sum(record.error is not None for record in records)
        self._finish(walk, group)

    def _finish(self, walk: _Walk, group: Sequence[Trial]) -> None:
        ids = {trial.id for trial in group}
        self._done |= ids
        walk.due -= ids
        if not walk.due and not walk.over:
            self._advance(walk)

    def _finished(self) -> int:
        return sum(walk.trials - len(walk.due) for walk in self._walks)

    def _report(self, doing: str) -> None:
        if self._progress is None:
            return
        done, total = self._finished(), sum(walk.trials for walk in self._walks)
        rate = (done - self._found) / max(time.monotonic() - self._start, 1e-9)
        self._progress(
            Progress(
                study=self._study.name,
                doing=doing,
                done=done,
                total=total,
                exact=self._exact or all(walk.over for walk in self._walks),
                failed=self._failed,
                rate=rate,
                seconds_left=(total - done) / rate if rate > 0 else None,
            )
        )
