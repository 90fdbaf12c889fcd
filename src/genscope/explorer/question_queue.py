"""Where questions are answered: a few threads, a queue of limited length, and no work that nobody wants.

Guarantee: what waits is dropped as soon as its page has gone; what runs ends at its next `check`.
"""

import asyncio
import contextlib
import contextvars
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from starlette.requests import Request

THREADS = max(2, min(4, os.cpu_count() or 1))
WAITING = 256  # questions; beyond these a page is asked to come again

_dropped: contextvars.ContextVar[threading.Event] = contextvars.ContextVar("dropped")


class Busy(Exception):
    """Too many questions are waiting."""


class Unwanted(Exception):
    """The page that asked has gone."""


def check() -> None:
    """End here if the page that asked has gone; elsewhere, nothing."""
    event = _dropped.get(None)
    if event is not None and event.is_set():
        raise Unwanted


class QuestionQueue:
    """A pool of threads for the answers of one server."""

    def __init__(self, threads: int = THREADS, waiting: int = WAITING):
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="explorer")
        self._waiting = waiting
        self._open: set[threading.Event] = set()

    async def answer(self, request: Request, function: Callable[[], Any]) -> Any:
        """The function's result, computed in a thread; the request's body must have been read."""
        if len(self._open) >= self._waiting:
            raise Busy
        dropped = threading.Event()
        self._open.add(dropped)
        context = contextvars.copy_context()
        context.run(_dropped.set, dropped)
        work = asyncio.wrap_future(self._pool.submit(context.run, _unless_dropped, function))
        gone = asyncio.ensure_future(_departure(request))
        try:
            await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                raise Unwanted
            return work.result()
        finally:
            dropped.set()
            self._open.discard(dropped)
            work.cancel()  # out of the queue; a thread that has begun sees the event
            gone.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await gone

    def close(self) -> None:
        """Drop everything."""
        for event in [*self._open]:
            event.set()
        self._pool.shutdown(wait=False, cancel_futures=True)


def _unless_dropped(function: Callable[[], Any]) -> Any:
    check()
    return function()


async def _departure(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
