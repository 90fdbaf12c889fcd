"""A thread of this process: a pool for studies that are at hand here, and for little work.

XLA computes on one thread (`one_thread`), so several threads of Python only help where trials wait.

Guarantee: the rows of worker processes, unless this process used JAX before on several threads, of which it warns
once. A study is compiled once, whichever thread comes first. A thread cannot be stopped inside a trial: when the pool
is left it ends with the trial, and nobody waits for it.
"""

import contextlib
import functools
import os
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path

from genscope.lab.execution.compute import CompileClock, Computer
from genscope.lab.execution.one_thread import one_thread, threads
from genscope.lab.execution.pool import Submit
from genscope.lab.plans.study import Study
from genscope.refusal import Refusal

_PACKAGE = f"{Path(__file__).parents[2]}{os.sep}"


@functools.cache  # once in a process, which keeps its threads
def _warn(found: int) -> None:
    warnings.warn(
        f"JAX was used in this process before, and computes on {found} threads: results differ from those of the "
        "command line in their last digits. Where that matters, start Python (or the notebook's server) with NPROC=1 "
        "in its environment, or run the study before anything else uses JAX.",
        stacklevel=_depth_of_the_caller(),
    )


def _depth_of_the_caller() -> int:
    """How far up from the function that called the code is which is neither ours nor the library's of contexts."""
    depth, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith((_PACKAGE, contextlib.__file__)):
        depth, frame = depth + 1, frame.f_back
    return depth


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
            _warn(found)
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
