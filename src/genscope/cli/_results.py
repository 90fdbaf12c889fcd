"""Standard output is for results: what the user's code prints meanwhile goes to standard error.

Guarantee: `--json` writes one JSON object and nothing else, whatever a model or a function prints.
"""

import contextlib
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

_stream: ContextVar[Any] = ContextVar("results", default=None)


def results() -> Any:
    """The stream to which results go."""
    return _stream.get() or sys.stdout


@contextlib.contextmanager
def results_apart() -> Iterator[None]:
    """Here, `results` alone writes to standard output, and `print` to standard error."""
    before = _stream.set(results())
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        _stream.reset(before)
