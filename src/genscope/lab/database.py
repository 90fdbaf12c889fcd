"""Opening a SQL database by URL, and everything that differs between SQLite and PostgreSQL.

Source: None (house design).
Departures: None.
Guarantee: exact; what is not a database, or not a usable address, is refused before a byte is written.
"""

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa
import sqlalchemy.event
import sqlalchemy.exc
from sqlalchemy.dialects import postgresql, sqlite

BUSY_SECONDS = 30.0  # how long a writer waits for another one before it gives up
_MAGIC = b"SQLite format 3\x00"
_EXAMPLES = "sqlite:///genscope.db or postgresql+psycopg://user@host/name"


def parse(url: str) -> sa.URL:
    """The parts of a store's URL; a SQLite path is made absolute, so that a later chdir cannot move the store."""
    scheme, separator, _ = url.partition("://")
    if not separator:
        raise ValueError(
            f"Store got the address {url!r}: a store is named by a URL such as {_EXAMPLES}. "
            f"For a file, write sqlite:///{url or 'genscope.db'}"
        )
    try:
        parts = sa.make_url(url)
        backend = parts.get_backend_name()
    except (sqlalchemy.exc.ArgumentError, ValueError):  # the text is not repeated: it may hold a password
        raise ValueError(
            f"Store got a URL that begins with {scheme}:// and cannot be read: it should look like {_EXAMPLES}. "
            "Check the port, and write special characters of a password as %XX."
        ) from None
    if backend == "sqlite":
        if not parts.database or parts.database == ":memory:":
            raise ValueError(
                f"Store got {url!r}, a database in memory: results must survive the process, so a store is a file. "
                "Name one, as in sqlite:///genscope.db"
            )
        if parts.query or parts.host:
            raise ValueError(
                f"Store got {url!r}: a SQLite store is a path with three slashes and no host or options. "
                "Write sqlite:///relative.db or sqlite:////absolute/path.db"
            )
        return parts.set(database=os.path.abspath(parts.database))
    if backend == "postgresql":
        return parts.set(drivername="postgresql+psycopg") if parts.drivername == "postgresql" else parts
    raise ValueError(f"Store got a {scheme}:// URL: stores live in SQLite or PostgreSQL. Use {_EXAMPLES}")


def exists(url: sa.URL) -> bool:
    """Whether there is something at the URL that could be a store already."""
    return url.get_backend_name() != "sqlite" or (
        os.path.isfile(file := str(url.database)) and os.path.getsize(file) > 0
    )


def engine(url: sa.URL, *, read_only: bool) -> sa.Engine:
    """An engine whose transactions are deferred, or immediate under the execution option `write`."""
    if url.get_backend_name() == "sqlite":
        made = _sqlite_engine(Path(str(url.database)), read_only=read_only)
    else:
        try:
            made = sa.create_engine(url, pool_pre_ping=True, execution_options={"postgresql_readonly": read_only})
        except ModuleNotFoundError as error:
            raise ValueError(
                f"Store got a {url.drivername}:// URL, whose driver {error.name} is not installed: PostgreSQL needs "
                "psycopg 3. Install it with pip install 'genscope[postgres]' and write postgresql+psycopg://"
            ) from None
    return made


def _sqlite_engine(path: Path, *, read_only: bool) -> sa.Engine:
    try:
        _check_file(path, read_only=read_only)
    except PermissionError as error:
        if error.errno is None:
            raise
        raise PermissionError(
            f"Store got {path}, which this user may not reach ({error.strerror}). "
            "Change the permissions of its directories, or choose another place."
        ) from None
    mode = "ro" if read_only else "rwc"
    if read_only and not os.access(path.parent, os.W_OK) and not path.with_name(path.name + "-wal").exists():
        mode = "ro&immutable=1"  # SQLite cannot make its shared-memory file here, and without a log needs none

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"file:{quote(str(path))}?mode={mode}",
            uri=True,
            timeout=BUSY_SECONDS,
            isolation_level=None,  # transactions are begun below, not guessed by the driver
            check_same_thread=False,  # SQLAlchemy's pool hands a connection to one thread at a time
        )
        connection.execute("PRAGMA synchronous = FULL")  # a committed batch survives a power cut as well
        return connection

    made = sa.create_engine("sqlite://", creator=connect, poolclass=sa.pool.QueuePool)

    @sqlalchemy.event.listens_for(made, "begin")
    def begin(connection: sa.Connection) -> None:
        # A deferred transaction that turns into a writer fails at once when another one writes; an immediate one waits.
        write = connection.get_execution_options().get("write", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")

    return made


def _check_file(path: Path, *, read_only: bool) -> None:
    if path.is_dir():
        raise ValueError(f"Store got {path}, a directory: a SQLite store is a file. Add a file name to the URL.")
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"Store got {path}, but there is no directory {path.parent}: a store is made in an existing directory. "
            "Make it first, or correct the path."
        )
    if not path.exists():
        if read_only:
            raise FileNotFoundError(
                f"Store got {path}, which does not exist: only an existing store can be read. "
                "Run a study with this store first, or correct the path."
            )
    else:
        if not os.access(path, os.R_OK):
            raise PermissionError(f"Store got {path}, which may not be read by this user. Change its permissions.")
        with path.open("rb") as file:
            head = file.read(len(_MAGIC))
        if head and head != _MAGIC:
            raise ValueError(
                f"Store got {path}, which is not a SQLite database (it begins with {head!r}): it was left untouched. "
                "Give the path of a genscope store or of a new file."
            )
    unwritable = next((p for p in (path.parent, path) if p.exists() and not os.access(p, os.W_OK)), None)
    if unwritable and not read_only:
        raise PermissionError(
            f"Store got {path}, but {unwritable} may not be written by this user: a store needs to write its file and, "
            "beside it, its log. Change the permissions, choose another place, or open it for reading only."
        )


def prepare_for_writing(engine: sa.Engine) -> None:
    """Let readers and a writer work side by side (SQLite's write-ahead log; PostgreSQL always does)."""
    if engine.dialect.name != "sqlite":
        return
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            with contextlib.closing(engine.raw_connection()) as connection:
                connection.cursor().execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            # SQLite's own busy timeout does not cover this switch when several processes make a store at once.
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise sqlalchemy.exc.OperationalError("PRAGMA journal_mode", None, error) from error
        time.sleep(0.05)


def lock_schema(connection: sa.Connection) -> None:
    """Let one process at a time make or migrate the tables (an immediate SQLite transaction already does)."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(0x67656E73)))


def insert_new(connection: sa.Connection, table: sa.Table) -> Any:
    """An insert that leaves an existing row with the same primary key as it is."""
    dialect = {"sqlite": sqlite, "postgresql": postgresql}[connection.dialect.name]
    return dialect.insert(table).on_conflict_do_nothing()


def now(connection: sa.Connection) -> float:
    """Seconds since 1970 by the database's clock, the one clock all processes share."""
    clock = {
        "sqlite": sa.literal_column("(julianday('now') - 2440587.5) * 86400.0"),
        "postgresql": sa.extract("epoch", sa.func.clock_timestamp()),
    }
    return float(connection.scalar(sa.select(clock[connection.dialect.name])) or 0.0)


@contextlib.contextmanager
def clear_errors(name: str) -> Iterator[None]:
    """Turn a driver's failure on the store `name` into an exception that says what to do."""
    try:
        yield
    except (sqlalchemy.exc.ProgrammingError, sqlalchemy.exc.IntegrityError):
        raise  # a mistake of ours, not of the user's or the machine's
    except sqlalchemy.exc.DBAPIError as error:
        raise _explained(name, error) from error


def _explained(name: str, error: sqlalchemy.exc.DBAPIError) -> Exception:
    original = error.orig
    told = str(original).strip()
    code = getattr(original, "sqlite_errorcode", -1) & 0xFF if isinstance(original, sqlite3.Error) else None
    state = getattr(original, "sqlstate", None)
    if code == sqlite3.SQLITE_FULL or state == "53100":
        return OSError(
            f"The store {name} could not write ({told}): what was committed before is safe. "
            "Free some space and run the same command again."
        )
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM) or state in ("42501", "25006"):
        return PermissionError(
            f"The store {name} cannot be opened or written ({told}): nothing was changed. "
            "Check the permissions of the file and its directory, or choose another place."
        )
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return TimeoutError(
            f"The store {name} was locked by another process for {BUSY_SECONDS:.0f} seconds ({told}). "
            "Let that process finish, or end it, and run the same command again."
        )
    if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
        return ValueError(
            f"The store {name} is not a readable SQLite database ({told}): it was left as it is. "
            "Restore it from a copy, or give another file."
        )
    if code is None and (error.connection_invalidated or state is None):
        return ConnectionError(
            f"The store {name} does not answer ({told}): a server must be running and reachable there. "
            "Check host, port, user and network, and run the same command again."
        )
    return OSError(
        f"The store {name} failed ({told}): what was committed before is safe. "
        "Check the disk or the server, and run the same command again."
    )
