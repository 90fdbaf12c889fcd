"""How a command fails: a message and a status for a request that makes no sense, a traceback only for our own bugs.

Source: product.md, Section 2.
Departures: None.
Guarantee: a ValueError or TypeError that genscope raises, and every OSError, is a message; one that happens to us is a
mistake of ours and keeps its traceback.
"""

import functools
import os
import sys
from collections.abc import Callable

import typer

from genscope.refusal import is_refusal as is_refusal

INTERRUPTED, TERMINATED, READER_GONE = 130, 143, 141


class Terminated(KeyboardInterrupt):
    """SIGTERM, as an exception."""


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """The command with its failures turned into messages on standard error and exit statuses."""

    @functools.wraps(command)
    def call(*arguments: object, **options: object) -> None:
        try:
            command(*arguments, **options)
            sys.stdout.flush()
        except KeyboardInterrupt as stop:
            ended = isinstance(stop, Terminated)
            complain(" ".join(["Terminated." if ended else "Interrupted.", *getattr(stop, "__notes__", ())]))
            raise typer.Exit(TERMINATED if ended else INTERRUPTED) from None
        except BrokenPipeError:
            silence()
            raise typer.Exit(READER_GONE) from None
        except (OSError, ValueError, TypeError) as error:
            if not is_refusal(error):
                raise
            complain(_told(error))
            raise typer.Exit(2) from None

    return call


def _told(error: Exception) -> str:
    """An error in our words: those of the system name a file, and not what to do about it."""
    if isinstance(error, OSError) and error.filename is not None:
        return (
            f"got {error.filename}, and it cannot be opened ({error.strerror}): it must be there, and yours to use. "
            "Correct the path or the permissions."
        )
    return str(error)


def complain(message: str) -> None:
    """A message on standard error."""
    typer.echo(f"genscope: {message}", err=True)


def silence() -> None:
    """Let what is still buffered for standard output vanish: nobody can read it."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):  # not a real file
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  # open until the process ends
