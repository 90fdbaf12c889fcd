"""From a batch of trials to records: keys, stacked or single execution, compile time apart from run time.

Guarantee: exact; a trial's values depend on its study, point and seed and on the program, not on what ran before it,
beside it or on which thread.
"""

import contextlib
import inspect
import sys
import threading
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.monitoring
import jax.random as jr
import numpy as np
from jaxtyping import Array, Key

from genscope.compilation import make_room
from genscope.lab import values
from genscope.lab.execution.machine_failures import ATTEMPTS, PAUSES, is_of_the_machine
from genscope.lab.execution.one_thread import limit_again, threads
from genscope.lab.execution.provenance import provenance
from genscope.lab.plans.sources import sources
from genscope.lab.plans.study import Point, Scalar, Study, Trial, canonical
from genscope.lab.storage.store import MACHINE_FAILED, Record
from genscope.random import derived, root, stream


def point_key(study: Study, point: Point) -> Key[Array, ""]:
    """Key of a point, folded from the study's name and the point without its `paired` axes.

    The revision is left out: a corrected study meets the same data again. The generator is named, so that JAX's
    global settings do not change results.
    """
    shared = {axis: value for axis, value in point.items() if axis not in study.paired}
    return stream(stream(root(0), study.name), canonical(shared))


def trial_key(study: Study, trial: Trial) -> Key[Array, ""]:
    """Key of a trial: its point's key, folded with its seed."""
    return derived(point_key(study, trial.point), trial.seed)


class CompileClock(contextlib.AbstractContextManager["CompileClock"]):
    """Seconds that each thread spends in tracing, lowering and compiling while the block runs."""

    def __init__(self) -> None:
        self._local = threading.local()

    def __enter__(self) -> "CompileClock":
        jax.monitoring.register_event_time_span_listener(self._listen)
        return self

    def __exit__(self, *_: object) -> None:
        jax.monitoring.unregister_event_time_span_listener(self._listen)

    def _listen(self, event: str, start_time: float, end_time: float, **kwargs: str | int) -> None:
        if not event.startswith("/jax/core/compile/"):
            return
        spans = self._spans()
        while (
            spans and spans[-1][0] >= start_time
        ):  # tracing nests; an outer span ends after, and covers, its inner ones
            spans.pop()
        spans.append((start_time, end_time))

    def _spans(self) -> list[tuple[float, float]]:
        if not hasattr(self._local, "spans"):
            self._local.spans = []
        return self._local.spans

    def restart(self) -> float:
        """Seconds of this thread since the last call."""
        spans = self._spans()
        seconds = sum((end - start for start, end in spans), 0.0)
        spans.clear()
        return seconds


class Computer:
    """Computes batches of one study; several threads may call it at once."""

    def __init__(self, study: Study, clock: CompileClock, stop: threading.Event | None = None):
        self.study = study
        self._clock = clock
        self._stop = stop or threading.Event()
        self._axes = frozenset(study.axes())
        self.sources = sources(study)
        self.provenance = provenance(_file(study.trial), self.sources)
        self._modules = len(sys.modules)
        self._programs: dict[str, Callable[..., Any]] = {}
        self._locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._lock = threading.Lock()

    def __call__(self, batch: Sequence[Trial]) -> list[Record]:
        """Records of all trials of a batch, or of none when told to stop."""
        make_room()
        records = self._stacked(batch) if self.study.stacked else self._singles(batch)
        return self._counted(records)

    def _singles(self, batch: Sequence[Trial]) -> list[Record]:
        records = []
        for trial in batch:
            if self._stop.is_set():
                return []
            with self._timed() as took:
                measured, error = self._attempt(lambda t=trial: [self._single(t)])
            records.append(self._record(trial, measured[0] if measured else {}, error, took))
        return records

    def _single(self, trial: Trial) -> dict[str, Any]:
        return self._checked(self.study.trial(trial_key(self.study, trial), **trial.point))

    def _stacked(self, batch: Sequence[Trial]) -> list[Record]:
        if self._stop.is_set():
            return []
        point = batch[0].point
        fixed = {axis: value for axis, value in point.items() if self._is_fixed(axis, value)}
        traced = {axis: value for axis, value in point.items() if axis not in fixed}
        with self._program(fixed) as program, self._timed() as took:
            measured, error = self._attempt(lambda: self._lanes(program, traced, batch))
        share = [seconds / len(batch) for seconds in took]
        results = measured or [{}] * len(batch)
        return [self._record(trial, result, error, share) for trial, result in zip(batch, results, strict=True)]

    def _counted(self, records: list[Record]) -> list[Record]:
        """The records, with the threads of libraries that their trials loaded; from here on these have one."""
        if self._modules == len(sys.modules):  # counting takes 5 ms
            return records
        self._modules = len(sys.modules)
        found = threads()
        if found == self.provenance["threads"]:
            return records
        limit_again()
        return [replace(record, provenance=self.provenance | {"threads": found}) for record in records]

    def _lanes(
        self, program: Callable[..., Any], traced: dict[str, Scalar], batch: Sequence[Trial]
    ) -> list[dict[str, Any]]:
        size = self.study.batch
        first = batch[0].seed // size * size
        # Seed k is always lane k mod size of the same full group, so its values do not depend on which others are due.
        seeds = np.arange(first, first + size, dtype=np.uint32)
        stacked = program(point_key(self.study, batch[0].point), seeds, traced)
        if not isinstance(stacked, dict):
            values.plain(stacked)  # says what a trial should return
        columns = {name: np.asarray(value) for name, value in stacked.items()}
        return [self._checked({name: column[t.seed - first] for name, column in columns.items()}) for t in batch]

    def _is_fixed(self, axis: str, value: Scalar) -> bool:
        """Whether an axis is known at compile time: words and flags choose code, numbers only feed it."""
        return axis in self.study.static or isinstance(value, str | bool)

    @contextlib.contextmanager
    def _program(self, fixed: dict[str, Scalar]) -> Iterator[Callable[..., Any]]:
        """The compiled program of a choice of fixed axes; its first call runs alone, so that it compiles once."""
        name = canonical(fixed)
        with self._lock:
            lock = self._locks[name]
            program = self._programs.get(name)
        if program is not None:
            yield program
            return
        with lock:
            program = self._programs.get(name) or _stack(self.study.trial, fixed)
            yield program
            self._programs[name] = program

    def _checked(self, result: Any) -> dict[str, Any]:
        measured = values.plain(result)
        values.check_names(list(measured), taken=self._axes)
        return measured

    def _attempt(self, function: Callable[[], list[dict[str, Any]]]) -> tuple[list[dict[str, Any]], str | None]:
        text = ""
        for pause in (*PAUSES, None):
            try:
                return function(), None
            # Failure is data: it is stored with the trial, and the study goes on. SystemExit is the trial's own: that
            # of a signal comes up in the thread that drives the run, and Ctrl-C is a KeyboardInterrupt.
            except (Exception, SystemExit) as error:
                text = "".join(traceback.format_exception(error))
                machine = is_of_the_machine(error)
            if not machine:
                break
            text = f"{MACHINE_FAILED}, in each of {ATTEMPTS} attempts\n{text}"
            if pause is None or self._stop.wait(pause):
                break
        return [], text

    @contextlib.contextmanager
    def _timed(self) -> Iterator[list[float]]:
        """A list that after the block holds the seconds of running and of compiling."""
        took: list[float] = []
        self._clock.restart()
        start = time.perf_counter()
        yield took
        compiling = self._clock.restart()
        took += [max(time.perf_counter() - start - compiling, 0.0), compiling]

    def _record(self, trial: Trial, measured: dict[str, Any], error: str | None, took: Sequence[float]) -> Record:
        seconds, compile_seconds = took
        return Record(trial, measured, error, seconds, compile_seconds, self.provenance)


def _stack(trial: Callable[..., Any], fixed: dict[str, Scalar]) -> Callable[..., Any]:
    def lane(key: Key[Array, ""], seed: Array, traced: dict[str, Any]) -> Any:
        return trial(jr.fold_in(key, seed), **fixed, **traced)

    return jax.jit(jax.vmap(lane, in_axes=(None, 0, None)))


def _file(function: Callable[..., Any]) -> Path | None:
    try:
        return Path(inspect.getsourcefile(inspect.unwrap(function)) or "")
    except TypeError:  # a callable object
        return None
