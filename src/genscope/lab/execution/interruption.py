"""Ctrl-C and SIGTERM act between two steps of a run, never inside one.

Python raises KeyboardInterrupt in whatever line the main thread is in. Inside a transaction that leaves a connection
which holds the database's lock, and the run's last act, giving back its leases, then waits for itself.

Guarantee: a signal is acted on at the next step, or at the end of the block; a second one is acted on at once.
"""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any


@contextlib.contextmanager
def between_steps() -> Iterator[Callable[[], None]]:
    """Remember signals while the block runs, and give a function that acts on them as the program would have.

    SIGTERM, where the program does not handle it, becomes SystemExit, so that the block ends in order. Threads other
    than the main one receive no signals, and one that the program ignores stays ignored.
    """
    pending: list[int] = []
    handlers: dict[int, Any] = {}

    def act() -> None:
        if pending:
            number = pending[-1]
            pending.clear()
            handler = handlers[number]
            if not callable(handler):
                raise SystemExit(128 + number)
            handler(number, None)

    def remember(number: int, _: object) -> None:
        impatient = bool(pending)
        pending.append(number)
        if impatient:
            act()

    if threading.current_thread() is threading.main_thread():
        known = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        handlers = {number: now for number, now in known.items() if now is signal.SIG_DFL or callable(now)}
    for number in handlers:
        signal.signal(number, remember)
    try:
        yield act
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    act()
