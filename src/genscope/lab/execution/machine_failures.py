"""Failures of the machine, told from those of a trial, and waited out.

Memory, disk space, file handles, threads, connections and lost processes come and go with what else runs; a trial that
met such a failure is tried again at once, in the round that asked for it, so that the rounds after it are those of an
undisturbed run. Taken for such failures are

- a MemoryError, JAX's and PyTorch's words for it, and one that JAX reports of a callback;
- an OSError with a number of `_NUMBERS`, and that of `ndarray.tofile`, which has none;
- a thread that cannot be started, a process of a pool that died, a child killed by SIGKILL, as Linux does for memory;
- an exception raised from one of these, or in its handler, and a group of nothing else.

A pipe that broke (EPIPE), a connection refused and a time limit of the trial's own are not: they come again.

Guarantee: a bounded number of attempts, after which the trial has failed and says why; a failure of the trial itself is
never tried again. Whether memory ran out because of the trial or of others cannot be told: both are tried again.
"""

import errno
import re
import subprocess
from collections.abc import Iterator

PAUSES = (0.1, 0.5, 2.0)  # seconds between attempts
ATTEMPTS = len(PAUSES) + 1  # as many as a process that dies gets, and as Dask makes
_NUMBERS = {
    *(errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ENOMEM, errno.EAGAIN),
    *(errno.EMFILE, errno.ENFILE, errno.ESTALE),
    *(errno.ETIMEDOUT, errno.ECONNRESET, errno.ECONNABORTED, errno.ENOTCONN),  # also of file systems on a network
    *(errno.EHOSTUNREACH, errno.EHOSTDOWN, errno.ENETUNREACH, errno.ENETDOWN),
}
_NAMES = {"MemoryError", "OutOfMemoryError", "BrokenProcessPool"}  # of a class or of one that it is derived from
# What the message of a class says that has other messages; a callback's traceback is part of JAX's message.
_XLA = re.compile("RESOURCE_EXHAUSTED|UNAVAILABLE|DATA_LOSS|[Oo]ut of memory|^[\\w.]*MemoryError\\b", re.MULTILINE)
_SAID = {
    "XlaRuntimeError": _XLA,
    "JaxRuntimeError": _XLA,
    "RuntimeError": re.compile("^can't start new thread$|DefaultCPUAllocator: can't allocate memory"),
    "OSError": re.compile(r"^\d+ requested and \d+ written$"),
}
_KILLED = (-9, 128 + 9)  # by SIGKILL; the latter as a shell reports it


def is_of_the_machine(error: BaseException) -> bool:
    """Whether an exception, or one that it was raised from, speaks of the machine and not of the trial.

    >>> is_of_the_machine(MemoryError()), is_of_the_machine(ValueError())
    (True, False)
    """
    return any(_is_of_the_machine(each) for each in _chain(error))


def _is_of_the_machine(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return all(map(is_of_the_machine, error.exceptions))
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno in _NUMBERS
    if isinstance(error, subprocess.CalledProcessError):
        return error.returncode in _KILLED
    said = _SAID.get(type(error).__name__)
    return any(kind.__name__ in _NAMES for kind in type(error).__mro__) or bool(said and said.search(str(error)))


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
