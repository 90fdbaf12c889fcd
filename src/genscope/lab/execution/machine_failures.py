"""Failures of the machine, told from those of a trial, and waited out.

Memory, disk space, file handles and lost processes come and go with what else runs; a trial that met such a failure is
tried again at once, in the round that asked for it, so that the rounds after it are those of an undisturbed run.

Guarantee: a bounded number of attempts, after which the trial has failed and says why; a failure of the trial itself is
never tried again. Whether memory ran out because of the trial or of others cannot be told: both are tried again.
"""

import errno
from collections.abc import Iterator

PAUSES = (0.1, 0.5, 2.0)  # seconds between attempts
ATTEMPTS = len(PAUSES) + 1  # as many as a process that dies gets, and as Dask makes
_NUMBERS = {
    *(errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ENOMEM, errno.EAGAIN),
    *(errno.EMFILE, errno.ENFILE, errno.ESTALE),
}
_XLA = ("RESOURCE_EXHAUSTED", "UNAVAILABLE", "DATA_LOSS", "Out of memory", "out of memory")


def is_of_the_machine(error: BaseException) -> bool:
    """Whether an exception, or one that it was raised from, speaks of the machine and not of the trial.

    >>> is_of_the_machine(MemoryError()), is_of_the_machine(ValueError())
    (True, False)
    """
    return any(_is_of_the_machine(each) for each in _chain(error))


def _is_of_the_machine(error: BaseException) -> bool:
    if isinstance(error, MemoryError):
        return True
    if isinstance(error, OSError):
        return error.errno in _NUMBERS
    if type(error).__name__ in ("XlaRuntimeError", "JaxRuntimeError"):
        return any(sign in str(error) for sign in _XLA)
    return False


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
