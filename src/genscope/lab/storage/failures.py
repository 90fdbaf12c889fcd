"""When the database fails: waited out where that is safe, and otherwise told so that the user knows what to do.

Guarantee: a failure of the machine is an OSError or ValueError that gives advice and no secret; our own mistakes come
out as they are.
"""

import contextlib
import functools
import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

import sqlalchemy.exc

from genscope.lab.storage import database
from genscope.refusal import Refusal


class Damaged(Refusal):
    """A store that is not as it was written; what is sound of it can be copied."""

    def __init__(self, name: str, told: str):
        super().__init__(
            f"The store {name} is damaged ({told}): it was left as it is. `genscope store check {name}` says what is "
            f"lost, and `genscope store copy {name} sqlite:///sound.db` copies what is sound. Or restore a copy of it."
        )


P = ParamSpec("P")
T = TypeVar("T")


def patient(method: Callable[P, T]) -> Callable[P, T]:
    """Repeat a method that is one transaction, and may be repeated, while the server is away for a moment.

    A server that restarts, or ends a connection, so costs a pause and not a run.
    """

    @functools.wraps(method)
    def call(*arguments: P.args, **options: P.kwargs) -> T:
        deadline = None
        while True:
            try:
                return method(*arguments, **options)
            except ConnectionError:
                deadline = deadline or time.monotonic() + database.BUSY_SECONDS
                if time.monotonic() > deadline:
                    raise
            time.sleep(0.2)

    return call


@contextlib.contextmanager
def clear_errors(name: str) -> Iterator[None]:
    """Turn a driver's failure on the store `name` into an exception that says what to do."""
    try:
        yield
    except (sqlalchemy.exc.DBAPIError, sqlite3.Error) as error:
        explained = _explained(name, error)
        if explained is None:
            raise
        raise explained from error
    except UnicodeDecodeError as error:  # of a text inside the database
        raise Damaged(name, str(error)) from error


def stored_json(name: str, text: str) -> Any:
    """What a text in the store `name` says."""
    try:
        return json.loads(text)
    except (ValueError, TypeError) as error:
        raise Damaged(name, f"a stored text is not JSON: {error}") from None


def _explained(name: str, error: sqlalchemy.exc.DBAPIError | sqlite3.Error) -> Exception | None:
    """What the user can do about it; None for a mistake of ours."""
    if isinstance(error, sqlite3.Error):  # before SQLAlchemy saw it
        error = sqlalchemy.exc.DatabaseError("", None, error)
    original = error.orig
    brief = getattr(
        getattr(original, "diag", None), "message_primary", None
    )  # what the server said, less our statement
    told = " ".join(str(brief or original).split())
    code = getattr(original, "sqlite_errorcode", -1) & 0xFF if isinstance(original, sqlite3.Error) else None
    state = getattr(original, "sqlstate", None)
    if code == sqlite3.SQLITE_FULL or state == "53100":
        return OSError(
            f"The store {name} could not be written ({told}): everything committed so far is safe. Free some space and "
            "run the same command again."
        )
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM) or state in ("42501", "25006"):
        return PermissionError(
            f"The store {name} cannot be opened or written ({told}): nothing was changed. Check the permissions of the "
            "file and its directory, or of the database user, or choose another place."
        )
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) or state == "55P03":
        return TimeoutError(
            f"The store {name} was locked by another process for {database.BUSY_SECONDS:.0f} seconds ({told}). "
            "Let that process finish, or end it, and run the same command again."
        )
    broken = code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_FORMAT)
    lost = code == sqlite3.SQLITE_ERROR and told.startswith("no such ")  # a table, column or index, since it was opened
    if broken or lost or "decode to UTF-8" in told:
        return Damaged(name, told)
    if isinstance(error, sqlalchemy.exc.ProgrammingError) and code is None and error.statement is None:
        return Refusal(
            f"The store {name} has an option that cannot be used ({told}): the options of a PostgreSQL URL are "
            "libpq's. Correct it, or leave it out."
        )
    if isinstance(error, sqlalchemy.exc.ProgrammingError | sqlalchemy.exc.IntegrityError | sqlalchemy.exc.DataError):
        return None
    if code is None and (error.connection_invalidated or state is None):
        return ConnectionError(
            f"The store {name} does not answer ({told}): a server with this database must be running and reachable "
            "there. Check host, port, database, user, password and network, and run the same command again."
        )
    return OSError(
        f"The store {name} failed ({told}): everything committed so far is safe. Check the disk or the server, and run "
        "the same command again."
    )
