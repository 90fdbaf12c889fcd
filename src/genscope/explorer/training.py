"""Training for the room Learn: one process at a time beside the server, which reads what it writes and ends it in time.

The server itself never trains. The process is `python -m genscope.questions.live`; a line of JSON tells it what to
do, and it writes events, a line each, which a thread collects here. A request only looks at what was collected.

Guarantee: exact; at most one process, for at most `LONGEST_SECONDS`, of which at most `MOST_EVENTS` events are kept; it
ends with the server, however that ends, because its standard input does.
"""

import contextlib
import functools
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import Any

from genscope.lab.execution.one_thread import environment
from genscope.refusal import Refusal

LONGEST_SECONDS = 600.0
MOST_EVENTS = 5_000
LONGEST_EVENT = 200_000  # characters
AT_ONCE = 200  # events of an answer
PATIENCE = 4.0  # seconds between asking a process to end and ending it
COMMAND = (sys.executable, "-m", "genscope.questions.live")


class Training:
    """The process that trains now, or the last one; `seconds` is how long one may take."""

    def __init__(self, seconds: float = LONGEST_SECONDS, command: tuple[str, ...] = COMMAND):
        self._seconds, self._command = seconds, command
        self._lock = threading.Lock()
        self._number = 0
        self._events: list[Any] = []
        self._request: Mapping[str, Any] = {}
        self._state = "none"
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None

    def start(self, request: Mapping[str, Any], *, store: str) -> int:
        """Start a process; its number. Refused while another one works. Pages are not told the address of the store."""
        with self._lock:
            if self._process is not None:
                raise Refusal(
                    "the explorer is already training something, and it trains one thing at a time. Stop that run, "
                    "or wait until it ends."
                )
            process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                encoding="utf-8",
                env=environment(os.environ),
                start_new_session=True,
            )
            self._number += 1
            self._process, self._events, self._state, self._request = process, [], "running", request
            self._reader = threading.Thread(target=self._read, args=(process,), daemon=True)
            assert process.stdin is not None
            with contextlib.suppress(OSError):  # it has ended already, which the reader finds
                process.stdin.write(json.dumps({**request, "store": store}) + "\n")
                process.stdin.flush()
            self._reader.start()
            return self._number

    def look(self, number: int | None, since: int) -> dict[str, Any]:
        """Some events from the one numbered `since` on; of another training than `number`, from its first on."""
        with self._lock:
            first = since if number == self._number else 0
            events = self._events[first : first + AT_ONCE]
            return {
                "number": self._number,
                "state": self._state,
                "request": self._request,
                "events": events,
                "next": first + len(events),
                "more": first + len(events) < len(self._events),
            }

    def stop(self, why: str = "stopped") -> None:
        """End the process soon; nothing where none works."""
        with self._lock:
            process = self._process
            if process is None:
                return
            if self._state == "running":
                self._state = why
        _end(process, signal.SIGTERM)
        last = threading.Timer(PATIENCE, _end, (process, signal.SIGKILL))
        last.daemon = True
        last.start()

    def close(self) -> None:
        """End the process, and wait for it."""
        self.stop()
        if self._reader is not None:
            self._reader.join(2 * PATIENCE)

    def _read(self, process: "subprocess.Popen[str]") -> None:
        """Collect events until the process ends."""
        limit = threading.Timer(self._seconds, self.stop, ("out of time",))
        limit.daemon = True
        limit.start()
        assert process.stdin is not None
        assert process.stdout is not None
        for line in iter(functools.partial(process.stdout.readline, LONGEST_EVENT), ""):
            with contextlib.suppress(ValueError):  # cut by the end of the process, or too long
                self._keep(json.loads(line))
            if len(self._events) >= MOST_EVENTS:
                self.stop("too long")
                break
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            _end(process, signal.SIGKILL)
            process.wait()
        limit.cancel()
        with contextlib.suppress(OSError):  # what was written to it may not have been read
            process.stdin.close()
        process.stdout.close()
        with self._lock:
            if self._state == "running":
                self._state = "ended" if process.returncode == 0 else "failed"
            self._process = None

    def _keep(self, event: Any) -> None:
        with self._lock:
            self._events.append(event)


def _end(process: "subprocess.Popen[str]", how: signal.Signals) -> None:
    """Send a signal to the process and its own ones; nothing if it has ended."""
    if process.poll() is None:
        with contextlib.suppress(OSError):
            os.killpg(process.pid, how)
