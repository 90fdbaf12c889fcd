"""A thread of this process: a pool for studies that are at hand here, and for little work.

XLA computes on one thread (`one_thread`), so several threads of Python only help where trials wait.

Guarantee: the rows of worker processes, unless this process used JAX before on several threads, of which it warns. A
study is compiled once, whichever thread comes first. A thread cannot be stopped inside a trial: when the
pool is left it ends with the trial, and nobody waits for it.
"""

import contextlib
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager

from genscope.lab.execution.compute import CompileClock, Computer
from genscope.lab.execution.one_thread import one_thread, threads
from genscope.lab.execution.pool import Submit
from genscope.lab.plans.study import Study
from genscope.refusal import Refusal


class Threads(AbstractContextManager["Threads"]):
    """So many threads, each of which computes one trial at a time; a pool for `run`."""

    def __init__(self, number: int = 1):
        if number < 1:
            raise Refusal(f"got {number} threads: at least one is needed. Give 1 or more.")
        self._number = number
        self._stop = threading.Event()
        self._clock = CompileClock()
        self._ends = contextlib.ExitStack()
        self._pool = ThreadPoolExecutor(number, thread_name_prefix="genscope trial")

    def __enter__(self) -> "Threads":
        self._ends.enter_context(one_thread())
        self._ends.enter_context(self._clock)
        if (found := threads()["xla"]) not in (1, None):
            warnings.warn(
                f"JAX was used in this process before and computes on {found} threads: results differ from those of "
                "the command line in their last digits. Run the study before anything uses JAX, or give workers=1.",
                stacklevel=3,
            )
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._ends.close()

    def slots(self) -> int:
        """How many batches can be computed at once."""
        return self._number

    def open(self, study: Study) -> Submit:
        """How batches of a study are given to the threads."""
        computer = Computer(study, self._clock, self._stop)
        return lambda batch: self._pool.submit(computer, batch)
