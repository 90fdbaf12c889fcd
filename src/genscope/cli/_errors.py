"""How a command fails: a message and a status for a request that makes no sense, a traceback only for our own bugs.

Guarantee: a Refusal, an error of the system and one of a text's encoding is a message; anything else is a bug, keeps
its traceback and says so.
"""

import errno
import functools
import os
import shutil
import sys
import textwrap
from collections.abc import Callable

import typer

from genscope.cli._results import results_apart
from genscope.refusal import Refusal

_NO_ROOM = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EIO)
INTERRUPTED, TERMINATED, READER_GONE = 130, 143, 141
BUG = (
    "This is a bug in genscope, not a mistake in your request. Please report it with the command and the lines above; "
    "CONTRIBUTING.md says how."
)


class Terminated(KeyboardInterrupt):
    """SIGTERM, as an exception."""


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """The command with its failures turned into messages on standard error and exit statuses."""

    @functools.wraps(command)
    def call(*arguments: object, **options: object) -> None:
        try:
            with results_apart():
                command(*arguments, **options)
            sys.stdout.flush()
        except KeyboardInterrupt as stop:
            ended = isinstance(stop, Terminated)
            complain(" ".join(["Terminated." if ended else "Interrupted.", *getattr(stop, "__notes__", ())]))
            raise typer.Exit(TERMINATED if ended else INTERRUPTED) from None
        except BrokenPipeError:
            silence()
            raise typer.Exit(READER_GONE) from None
        except (Refusal, OSError, UnicodeError) as error:
            complain(described(error))
            raise typer.Exit(2) from None
        except (typer.Exit, typer.Abort, typer.BadParameter):
            raise
        except Exception as error:
            error.add_note(BUG)
            raise

    return call


def described(error: Exception) -> str:
    """An error in our words: those of the system name a file, if that, and not what to do about it."""
    if isinstance(error, OSError) and error.filename is not None:
        return (
            f"cannot open {error.filename} ({error.strerror}): it must exist, and you must be allowed to use it. "
            "Correct the path or the permissions."
        )
    if isinstance(error, OSError) and error.errno in _NO_ROOM:
        return (
            f"standard output, or a file, could not be written ({error.strerror}): there must be room for all of it. "
            "Free some space, or send it elsewhere."
        )
    return str(error)


def complain(message: str) -> None:
    """A message on standard error; a terminal would divide words where its lines end."""
    lines = f"genscope: {message}".splitlines()
    if sys.stderr.isatty():
        width = shutil.get_terminal_size().columns
        folding = textwrap.TextWrapper(width, break_long_words=False, break_on_hyphens=False)
        lines = [line if len(line) <= width else folding.fill(line) for line in lines]
    typer.echo("\n".join(lines), err=True)


def silence() -> None:
    """Let what is still buffered for standard output vanish: nobody can read it."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):  # not a real file
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  # open until the process ends
