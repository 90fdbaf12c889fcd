"""Worker processes on this machine: each computes one trial at a time, and is ended when that takes too long.

A process is started afresh (JAX has threads, which a fork would lose) and given names and plain data. One that dies is
replaced, and its trial tried again: whoever killed it may have meant another. One that has loaded what was edited since
is replaced before it computes another study, or the same one anew.

Guarantee: every trial is answered, by what it measured or by why it could not; a trial during which four processes
died, or that took longer than its limit, has failed, and the others of its batch are computed all the same.
"""

import json
import os
import platform
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from typing import Any

from genscope.lab.execution import protocol
from genscope.lab.execution.cores import core_numbers
from genscope.lab.execution.machine_failures import ATTEMPTS
from genscope.lab.execution.one_thread import environment
from genscope.lab.execution.pool import Submit
from genscope.lab.execution.protocol import Answer, Order
from genscope.lab.execution.worker import IS_WORKER
from genscope.lab.plans.study import Study, Trial
from genscope.lab.storage.store import DIED, MACHINE_FAILED, TOO_LONG, Record
from genscope.refusal import Refusal

COMMAND = (sys.executable, "-m", "genscope.lab.execution.worker")
_GRACE_SECONDS = 5.0  # for a process that is ending


class Processes(AbstractContextManager["Processes"]):
    """So many worker processes, each with a core and a device of its own as far as there are enough; a pool for `run`.

    `time_limit` is in seconds and for one trial, its compilation included.
    """

    def __init__(self, number: int, *, time_limit: float | None = None):
        if number < 1:
            raise Refusal(f"got {number} worker processes: at least one is needed. Give 1 or more.")
        check_time_limit(time_limit)
        refuse_inside_worker()
        cores = core_numbers()
        self._workers = [Worker(i, core=cores[i % len(cores)], path=sys.path) for i in range(number)]
        self._idle = self._workers[::-1]
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(number, thread_name_prefix="genscope worker")
        self._time_limit = time_limit

    def slots(self) -> int:
        """How many batches can be computed at once."""
        return len(self._workers)

    def open(self, study: Study) -> Submit:
        """How batches of a study are given to the workers."""
        heading = protocol.heading(study)
        return lambda batch: self._threads.submit(self._compute, heading, batch)

    def _compute(self, heading: Order, batch: Sequence[Trial]) -> list[Record]:
        with self._lock:  # there are as many threads as workers, so one is idle
            # The last one used that has the study's programs, or else the last one used.
            knowing = [worker for worker in self._idle if worker.knows(heading["name"])]
            worker = (knowing or self._idle)[-1]
            self._idle.remove(worker)
        try:
            answer = worker.compute(protocol.order(heading, batch), self._time_limit)
        finally:
            with self._lock:
                self._idle.append(worker)
        return protocol.records(batch, answer)

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.close()
        self._threads.shutdown(cancel_futures=True)
        for worker in self._workers:
            worker.wait_for_end()


class Worker:
    """One process; started when it is needed, and again when it has died."""

    def __init__(self, number: int = 0, *, core: int | None = None, path: Sequence[str] | None = None):
        self._setup = {"number": number, "core": core, "path": None if path is None else list(path)}
        self._process: subprocess.Popen[str] | None = None
        self._studies: set[str] = set()
        self._closed = False
        self._lock = threading.Lock()

    def knows(self, study: str) -> bool:
        """Whether its process has computed trials of a study, and so has its programs."""
        return study in self._studies

    def compute(self, order: Order, time_limit: float | None) -> Answer:
        """Have an order computed; the answer is a refusal, or a result for each trial."""
        self._studies.add(order["name"])
        trials, results, facts, deaths, edits = order["trials"], [], {}, 0, 0
        together = order["lanes"] if order["stacked"] else 1  # trials that take their time together
        while len(results) < len(trials):
            before = len(results)
            try:
                lines = self._lines({**order, "trials": trials[before:]}, time_limit and time_limit * together)
                facts = next(lines)
                if "refused" in facts:
                    return facts
                for line in lines:
                    results.append(line)  # those that came before an end stay
            except _ChangedError as files:
                self._end()
                edits = 1 if len(results) > before else edits + 1
                if edits == ATTEMPTS:
                    return {"refused": _edited(order, files)}
            except _EndedError as end:
                deaths = 1 if len(results) > before else deaths + 1
                if not end.begun and deaths == ATTEMPTS:
                    return {"refused": f"A worker process {end} before it could begin. Look at what it said above."}
                if end.late or deaths == ATTEMPTS:
                    lost = [protocol.failure(_reason(end, time_limit), end.seconds)] * together
                    results += lost[: len(trials) - len(results)]
                    deaths = 0
        return {"provenance": facts.get("ready", {}), "results": results}

    def close(self) -> None:
        """End the process; what is being computed is lost."""
        with self._lock:
            self._closed = True
            if self._process is not None:
                self._process.kill()

    def wait_for_end(self) -> str:
        """Wait for the end of the process; how it ended."""
        process, self._process = self._process, None
        self._studies.clear()
        if process is None:
            return "had not begun"
        try:
            status = process.wait(_GRACE_SECONDS)  # the end of its input would end it with status 0
        except subprocess.TimeoutExpired:
            process.kill()
            status = process.wait()
        for pipe in (process.stdin, process.stdout):
            with suppress(OSError):  # what was not sent yet is lost
                pipe.close()  # pyright: ignore[reportOptionalMemberAccess]  # both are pipes
        return f"ended with status {status}" if status >= 0 else f"was ended by {signal.Signals(-status).name}"

    def _end(self) -> None:
        """End a process that has nothing to do; the next order starts another."""
        if self._process is not None:
            self._process.kill()
        self.wait_for_end()

    def _lines(self, order: Order, limit: float | None) -> Iterator[dict[str, Any]]:
        """The answers to an order: `ready` or `refused`, then a result for each trial."""
        process = self._started()
        start, begun = time.monotonic(), False
        try:
            process.stdin.write(json.dumps(order) + "\n")  # pyright: ignore[reportOptionalMemberAccess]  # a pipe
            process.stdin.flush()  # pyright: ignore[reportOptionalMemberAccess]  # a pipe
            yield self._hear(process, None)
            for _ in order["trials"]:
                start, begun = time.monotonic(), True
                yield self._hear(process, limit)
        except OSError as error:
            late = isinstance(error, TimeoutError)
            raise _EndedError(self.wait_for_end(), late=late, begun=begun, seconds=time.monotonic() - start) from None

    def _hear(self, process: "subprocess.Popen[str]", limit: float | None) -> dict[str, Any]:
        late = threading.Event()

        def end() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(limit or 0.0, end)
        if limit is not None:
            timer.start()
        line = process.stdout.readline()  # pyright: ignore[reportOptionalMemberAccess]  # a pipe
        timer.cancel()
        if line.endswith("\n"):
            answer = json.loads(line)
            if "changed" in answer:
                raise _ChangedError(", ".join(answer["changed"]))
            return answer
        raise TimeoutError if late.is_set() else ConnectionResetError

    def _started(self) -> "subprocess.Popen[str]":
        with self._lock:
            if self._closed:
                raise CancelledError
            if self._process is None:
                self._process = subprocess.Popen(
                    COMMAND,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    env=environment(os.environ) | {IS_WORKER: "1"},
                    text=True,
                    encoding="utf-8",
                    start_new_session=True,  # Ctrl-C in a terminal is for us, who then end it
                )
                assert self._process.stdin is not None
                self._process.stdin.write(json.dumps(self._setup) + "\n")
            return self._process


class _EndedError(Exception):
    """A process ended before it had answered; its text says how."""

    def __init__(self, how: str, *, late: bool, begun: bool, seconds: float):
        super().__init__(how)
        self.late, self.begun, self.seconds = late, begun, seconds


class _ChangedError(Exception):
    """Files have changed since a process loaded them; its text names them."""


def _edited(order: Order, files: _ChangedError) -> str:
    return (
        f"A worker on {platform.node()} got {order['name']!r}, whose code ({files}) changed while it was loaded, in "
        f"each of {ATTEMPTS} attempts: results of different code must not be mixed. Change nothing while the study "
        "begins; if its trials write modules that they import, run it on threads (without workers, cluster or time "
        "limit)."
    )


def _reason(end: _EndedError, time_limit: float | None) -> str:
    if end.late:
        return f"{TOO_LONG}{time_limit:.15g} s, its limit, and its process was ended\n"
    if "SIGKILL" not in str(end):
        return f"{DIED}{end}, in each of {ATTEMPTS} attempts\n"
    return f"{MACHINE_FAILED}: its process {end} (as happens when memory runs out), in each of {ATTEMPTS} attempts\n"


def check_time_limit(seconds: float | None) -> None:
    """Refuse a limit that is none."""
    if seconds is not None and not 0 < seconds < threading.TIMEOUT_MAX:
        raise Refusal(f"got a time limit of {seconds} s: it must be positive and finite. Change it.")


def refuse_inside_worker() -> None:
    """Refuse to start workers in a worker, which would start workers in turn."""
    if IS_WORKER in os.environ:
        raise Refusal(
            "the file starts a run on worker processes while a worker process is loading it to find its study. Put "
            "what the file runs under `if __name__ == '__main__':`."
        )
