"""Threads of this process, as many as it has cores: a pool for studies that are at hand here.

Source: None (house design).
Departures: None.
Guarantee: a study is compiled once, whichever thread comes first. A thread cannot be stopped inside a trial: when the
pool is left it ends with the trial, and nobody waits for it.
"""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager

from genscope.lab.compute import CompileClock, Computer
from genscope.lab.pool import Submit
from genscope.lab.study import Study


class Threads(AbstractContextManager["Threads"]):
    """So many threads, each of which computes one trial at a time; a pool for `run`."""

    def __init__(self, number: int):
        if number < 1:
            raise ValueError(f"got {number} threads: at least one thread computes. Give 1 or more.")
        self._number = number
        self._stop = threading.Event()
        self._clock = CompileClock()
        self._pool = ThreadPoolExecutor(number, thread_name_prefix="genscope trial")

    def __enter__(self) -> "Threads":
        self._clock.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._clock.__exit__()

    def slots(self) -> int:
        """How many batches can be computed at once."""
        return self._number

    def open(self, study: Study) -> Submit:
        """How batches of a study are given to the threads."""
        computer = Computer(study, self._clock, self._stop)
        return lambda batch: self._pool.submit(computer, batch)
