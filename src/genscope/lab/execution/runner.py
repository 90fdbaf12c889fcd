"""Running studies: lease a batch, have it computed, commit it; resume, share and stop at any moment.

One thread, the caller's, leases and writes; a pool of threads, of processes or of machines computes, and knows nothing
of the store. A worker gets its next batch when its last one is committed, so whatever is killed loses at most the
batches that were being computed. The rounds of all searches take turns, so that all thresholds are refined together.

Guarantee: exact; the stored trials and their values are the same however often the run was interrupted, by whom its
batches were computed and beside how many other processes it ran.
"""

import contextlib
import itertools
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from typing import Any

from genscope.lab.execution.changes import check_changes, outdated
from genscope.lab.execution.interruption import between_steps
from genscope.lab.execution.pool import Pool, Submit
from genscope.lab.execution.processes import Processes
from genscope.lab.execution.schedule import Schedule, cost
from genscope.lab.execution.threads import Threads
from genscope.lab.plans.design import Results, batches, rounds
from genscope.lab.plans.manifest import manifest
from genscope.lab.plans.selection import Selection, describe, select
from genscope.lab.plans.sources import left_behind
from genscope.lab.plans.study import Point, Study, Trial, canonical
from genscope.lab.storage.leases import Heartbeat
from genscope.lab.storage.store import Record, Store
from genscope.refusal import Refusal

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
    outdated: str | None = None
    """A sentence where nothing was missing, and code that has changed since computed what is stored."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """What has to be said beside its numbers."""
        return (*self.stopped, *([self.outdated] if self.outdated else []))


@dataclass(frozen=True)
class Failure:
    """A study that could not be finished, and why."""

    study: str
    error: Exception


Follow = Callable[[Progress], None]


def run(
    study: Study,
    selection: Selection | None = None,
    *,
    store: Store,
    workers: int | None = None,
    pool: Pool | None = None,
    progress: Follow | None = None,
    retry_failed: bool = False,
    accept_changes: bool = False,
) -> Summary:
    """Run what is missing of a selection, `select(study)` if none is given; results go to the store, batch by batch.

    Trials are computed by this process, one at a time, by so many `workers`, or by a `pool` that several runs share.
    `progress` is called by the calling thread, after every batch and at least every `POLL_SECONDS`. An exception in a
    trial is stored with that trial; `retry_failed` runs such trials of the selection again, and each failure stays
    stored until its trial has a new outcome.
    Where stored trials were computed by code that has changed since, nothing is added unless `accept_changes`.
    Ctrl-C and SIGTERM give back the leases and come out as KeyboardInterrupt and SystemExit.
    """
    selection = selection or select(study)
    if (selection.study, selection.revision) != (study.name, study.revision):
        raise Refusal(
            f"run got the study {study.name}, revision {study.revision}, and a selection of {selection.study}, "
            f"revision {selection.revision}: a selection only runs with its own study. Select from this study."
        )
    with left_behind(study), _pool(workers, pool) as computing:
        session = _Session(study, selection, store, computing, progress, retry_failed, accept_changes)
        [outcome] = _drive([session], store, computing)
    if isinstance(outcome, Failure):
        raise outcome.error
    return outcome


def run_all(
    studies: Sequence[Study],
    *,
    store: Store,
    budget: str = "standard",
    workers: int | None = None,
    pool: Pool | None = None,
    progress: Follow | None = None,
    accept_changes: bool = False,
) -> Iterator[Summary | Failure]:
    """Run what is missing of several studies at one budget, side by side on one pool; each comes out when it is over.

    A study that cannot be finished does not keep the others; a store or a cluster that is lost ends all.
    """
    with _pool(workers, pool) as computing:
        sessions = [
            _Session(study, select(study, budget), store, computing, progress, False, accept_changes)
            for study in studies
        ]
        yield from _drive(sessions, store, computing)


@contextlib.contextmanager
def _pool(workers: int | None, pool: Pool | None) -> Iterator[Pool]:
    if workers is not None and pool is not None:
        raise Refusal(
            f"run got workers={workers!r} and a pool: only one of the two can compute. Leave the workers out."
        )
    if pool is not None:
        yield pool
        return
    with Threads() if workers is None else Processes(workers) as made:
        yield made


def _drive(sessions: Sequence["_Session"], store: Store, pool: Pool) -> Iterator[Summary | Failure]:
    """Work until every study is over or has failed; an exception, of a signal as well, harms nothing."""
    store.release()  # what an earlier run could not give back, say on a full disk: renewed, it would never expire
    schedule = Schedule(sessions)
    running: dict[Future[list[Record]], _Session] = {}
    freed: list[_Session] = []  # what the workers that became free worked on
    left = list(sessions)
    asked = time.monotonic()
    with between_steps() as step, Heartbeat(store.renew, store.lease_seconds / 3):
        try:
            while left:
                step()
                slots = pool.slots()
                while len(running) < slots:
                    workers = Counter(running.values())
                    for session in schedule.turn(freed.pop() if freed else None, workers):
                        if (future := session.submit_next()) is not None:
                            running[future] = session
                            break
                    else:
                        break
                freed.clear()
                if running:
                    for future in wait(running, POLL_SECONDS, FIRST_COMPLETED).done:
                        freed.append(running.pop(future))
                        freed[-1].commit(future)
                elif not any(session.over for session in left):
                    time.sleep(POLL_SECONDS)
                if time.monotonic() > asked + POLL_SECONDS and len(running) < slots:
                    for session in left:
                        session.look_elsewhere()
                    asked = time.monotonic()
                for session in [session for session in left if session.over]:
                    left.remove(session)
                    yield session.outcome()
                for session in left:
                    session.report()
        finally:
            with contextlib.suppress(OSError):  # the store is gone: leases expire by themselves
                for future, session in running.items():
                    session.keep(future)
                store.release()


class _PointRun:
    """One point on its way through its rounds; `stored` is how many of its seeds are finished, where that is known."""

    def __init__(self, study: Study, selection: Selection, point: Point, results: Results, stored: int):
        self._size = study.batch
        self._rounds = rounds(selection, point, results)
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


_Task = tuple[_PointRun, list[Trial]]


class _Session:
    """One study under way: points, batches due, batches being computed; it begins when its turn comes."""

    def __init__(
        self,
        study: Study,
        selection: Selection,
        store: Store,
        pool: Pool,
        progress: Follow | None,
        retry_failed: bool,
        accept_changes: bool,
    ):
        self.cost = cost(selection)
        self._study, self._selection = study, selection
        self._store, self._pool, self._progress = store, pool, progress
        self._retry_failed, self._accept_changes = retry_failed, accept_changes
        self._retried: float | None = None  # failures stored up to this moment run again
        self._submit: Submit | None = None
        self._done: set[str] = set()
        self._ready: deque[_Task] = deque()
        self._elsewhere: list[_Task] = []  # leased by other processes when last asked
        self._running: dict[Future[list[Record]], _Task] = {}
        self._points: list[_PointRun] = []
        self._error: Exception | None = None
        self._outdated: str | None = None
        self._start = time.monotonic()
        self._found = self._computed = self._failed = 0

    @property
    def over(self) -> bool:
        """Whether nothing is left to do, or nothing more can be done."""
        if self._error is not None:
            return True
        return self._submit is not None and not (self._ready or self._elsewhere or self._running)

    def outcome(self) -> Summary | Failure:
        """What was done."""
        if self._error is not None:
            return Failure(self._study.name, self._error)
        self.report("done")
        return Summary(
            study=self._study.name,
            budget=self._selection.budget or "",
            trials=sum(point.trials for point in self._points),
            computed=self._computed,
            failed=self._failed,
            seconds=time.monotonic() - self._start,
            stopped=tuple(point.stopped for point in self._points if point.stopped is not None),
            outdated=self._outdated,
        )

    def submit_next(self) -> "Future[list[Record]] | None":
        """Lease the next batch and have it computed; None where there is none now."""
        with self._guarded():
            if self._submit is None:
                self._begin()
            assert self._submit is not None
            if (task := self._lease()) is not None:
                due = [trial for trial in task[1] if trial.id not in self._done]
                future = self._submit(due)
                self._running[future] = task
                self.report(describe(task[1][0].point))
                return future
        return None

    def commit(self, future: "Future[list[Record]]") -> None:
        """Store what a worker computed."""
        point, group = self._running.pop(future)
        with self._guarded():
            records = future.result()
            self._store.add(records, leased=group, retried=self._retried)
            self._computed += len(records)
            self._failed += sum(record.error is not None for record in records)
            self._finish(point, group)

    def keep(self, future: "Future[list[Record]]") -> None:
        """Store what a worker has computed by now, at an end before the end."""
        if future.done() and not future.cancelled() and future.exception() is None:
            self._store.add(future.result(), leased=self._running[future][1], retried=self._retried)

    def look_elsewhere(self) -> None:
        """Take note of what other processes finished, and ask again for the rest."""
        tasks, self._elsewhere = self._elsewhere, []
        if not tasks:
            return
        found = self._results([trial for _, group in tasks for trial in group])
        for point, group in tasks:
            if all(trial.id in found for trial in group):
                with self._guarded():
                    self._finish(point, group)
            else:
                self._ready.append((point, group))

    def report(self, doing: str | None = None) -> None:
        """Say how far the study is."""
        if self._progress is None or self._submit is None:
            return
        if doing is None:
            tasks = [*self._running.values(), *self._elsewhere]
            doing = describe(tasks[0][1][0].point) if tasks else "waits for a worker"
        done, total = self._finished(), sum(point.trials for point in self._points)
        rate = (done - self._found) / max(time.monotonic() - self._start, 1e-9)
        self._progress(
            Progress(
                study=self._study.name,
                doing=doing,
                done=done,
                total=total,
                exact=self._selection.search is None or all(point.over for point in self._points),
                failed=self._failed,
                rate=rate,
                seconds_left=(total - done) / rate if rate > 0 else None,
            )
        )

    def _begin(self) -> None:
        study, store, selection = self._study, self._store, self._selection
        submit = self._pool.open(study)
        if self._retry_failed:
            self._retried = store.last_failure(study.name, study.revision)
        self._done = store.done(study.name, study.revision, retried=self._retried)
        seeds = selection.seeds
        counts = (
            {} if selection.search else store.stored_seeds(study.name, study.revision, seeds, retried=self._retried)
        )
        for chosen in selection.points:
            point = _PointRun(study, selection, chosen, self._results, counts.get(canonical(dict(chosen)), 0))
            self._points.append(point)
            if not point.over:  # the trials of a million finished ones need not be listed
                self._advance(point)
        if not self._ready:
            self._outdated = outdated(store, study)
        elif not self._accept_changes:
            check_changes(store, study)
        store.put_manifest(study.name, study.revision, manifest(study))
        store.put_selection(selection)
        self._start, self._found = time.monotonic(), self._finished()
        self._submit = submit

    def _results(self, trials: Sequence[Trial]) -> Mapping[str, Mapping[str, Any] | None]:
        return self._store.results(trials, retried=self._retried)

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[None]:
        """Let an exception end this study alone; a store or a cluster that is lost ends all."""
        try:
            yield
        except OSError:
            raise
        except Exception as error:
            self._error = error

    def _advance(self, point: _PointRun) -> None:
        self._ready.extend((point, group) for group in point.advance(self._done))

    def _lease(self) -> _Task | None:
        while self._ready:
            offered = list(itertools.islice(self._ready, _WINDOW))
            leased = self._store.lease([group for _, group in offered], retried=self._retried)
            for _ in offered:
                task = self._ready.popleft()
                if task[1] is leased:
                    return task
                self._elsewhere.append(task)
        return None

    def _finish(self, point: _PointRun, group: Sequence[Trial]) -> None:
        ids = {trial.id for trial in group}
        self._done |= ids
        point.due -= ids
        if not point.due and not point.over:
            self._advance(point)

    def _finished(self) -> int:
        return sum(point.trials - len(point.due) for point in self._points)
