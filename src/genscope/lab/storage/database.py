"""Opening a SQL database by URL, and everything that differs between SQLite and PostgreSQL.

Guarantee: exact; what is not a database, or not a usable address, is refused before a byte is written.
"""

import contextlib
import importlib
import os
import sqlite3
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import sqlalchemy as sa
import sqlalchemy.event
import sqlalchemy.exc

from genscope.extras import need
from genscope.files import SQLITE
from genscope.refusal import Refusal

BUSY_SECONDS = 30.0  # how long we wait for another writer, or for a server that went away, before we give up
_EXAMPLES = "sqlite:///genscope.db or postgresql+psycopg://user@host/name"
# Options of a PostgreSQL URL that say where a store is. Others may hold a secret, or the way to one.
_PLACES = ("host", "hostaddr", "port", "dbname", "user", "service", "sslmode", "connect_timeout", "application_name")
_LOCKS = {"schema": 0x67656E73, "leases": 0x67656E74}  # advisory locks of PostgreSQL have numbers
# A server that is not there, or no longer, is noticed: without these the system waits for minutes or for ever.
_PATIENCE = {"connect_timeout": "10", "tcp_user_timeout": "30000"}


def parse(url: str) -> sa.URL:
    """The parts of a store's URL; a SQLite path is made absolute, so that a later chdir cannot move the store."""
    scheme, separator, _ = url.partition("://")
    if not separator:
        secret = any(sign in url for sign in "@=?:")  # it may hold a password
        raise Refusal(
            f"Store got {'an address without ://' if secret else f'the address {url!r}'}: a store is named by a URL "
            f"such as {_EXAMPLES}. For a file, write sqlite:///{'genscope.db' if secret else url or 'genscope.db'}"
        )
    try:
        parts = sa.make_url(url)
        backend = parts.get_backend_name()
        if "@" in (parts.host or ""):
            raise Refusal("the end of a password with an @ was taken for the host")
        if "\0" in unquote(url) or (parts.port is not None and not 0 < parts.port < 2**16):
            raise Refusal("libpq would read up to the NUL, and take another port for 0")
    except (sqlalchemy.exc.ArgumentError, ValueError):  # the text is not repeated: it may hold a password
        begins = f" that begins with {scheme}://" if scheme.replace("+", "").isalnum() else ""
        raise Refusal(
            f"Store got a URL{begins} that cannot be parsed: it should look like {_EXAMPLES}. Check the port, and "
            "write special characters in a password as %XX."
        ) from None
    if backend == "sqlite":
        if not parts.database or parts.database == ":memory:":
            raise Refusal(
                f"Store got {shown(parts)}, a database in memory: results must survive the process, so a store is a "
                "file. Name one, as in sqlite:///genscope.db"
            )
        if parts.host:
            raise Refusal(
                f"Store got {shown(parts)}: a SQLite store is a path with three slashes and no host. Write "
                "sqlite:///relative.db or sqlite:////absolute/path.db"
            )
        if "?" in url:  # SQLAlchemy drops an option without a value: `results?1.db` would be the file `results`
            raise Refusal(
                f"Store got {shown(parts)} and a question mark: with one begin options, and a SQLite store has none. "
                "Leave it out, or rename a file that has one in its name (%3F is not read as one)."
            )
        if parts.drivername not in ("sqlite", "sqlite+pysqlite"):
            raise Refusal(
                f"Store got a {scheme}:// URL: genscope uses Python's own SQLite module. Write sqlite:///genscope.db"
            )
        return parts.set(drivername="sqlite", database=os.path.abspath(parts.database))
    if backend == "postgresql":
        if parts.drivername not in ("postgresql", "postgresql+psycopg"):
            raise Refusal(
                f"Store got a {scheme}:// URL: genscope connects to PostgreSQL with psycopg 3. Write "
                "postgresql+psycopg://"
            )
        need("postgres", given=f"Store got a {scheme}:// URL")
        parts = parts.set(drivername="postgresql+psycopg")
        _check_options(parts)
        return parts
    raise Refusal(f"Store got a {scheme}:// URL: a store must be in SQLite or PostgreSQL. Use {_EXAMPLES}")


def _check_options(url: sa.URL) -> None:
    """Options of a PostgreSQL URL are libpq's: SQLAlchemy and psycopg have others, of which one loads code."""
    import psycopg.pq

    known = {option.keyword.decode() for option in psycopg.pq.Conninfo.get_defaults()}
    for name, value in url.query.items():
        if name not in known or not isinstance(value, str):
            found = "twice" if name in known else "which is not one of libpq's"
            raise Refusal(
                f"Store got a PostgreSQL URL with the option {name[:40]!r}, {found}: options must be libpq's, such "
                "as sslmode and connect_timeout, each given once. Correct its name, or leave it out."
            )
    try:
        url.get_dialect()().create_connect_args(url)
    except sqlalchemy.exc.ArgumentError:
        raise Refusal(
            "Store got a PostgreSQL URL whose options host and port do not match: give one port, or one for each "
            "host, and each must be a number. Correct them, or write user@host:port."
        ) from None


def shown(url: sa.URL) -> str:
    """The URL as it may be printed, stored and logged: without its secrets.

    >>> shown(sa.make_url("postgresql://me:secret@host/name?sslmode=require&passfile=secret"))
    'postgresql://me:***@host/name?passfile=HIDDEN&sslmode=require'
    """
    hidden = dict.fromkeys(url.query.keys() - set(_PLACES), "HIDDEN")  # a star would become %2A
    return url.update_query_dict(hidden).render_as_string(hide_password=True)


def exists(url: sa.URL) -> bool:
    """Whether there is something at the URL that could be a store already."""
    return url.get_backend_name() != "sqlite" or (
        os.path.isfile(file := str(url.database)) and os.path.getsize(file) > 0
    )


def engine(url: sa.URL, *, read_only: bool) -> sa.Engine:
    """An engine whose transactions are deferred, or immediate under the execution option `write`."""
    if url.get_backend_name() == "sqlite":
        return _sqlite_engine(Path(str(url.database)), read_only=read_only)
    return _postgresql_engine(url, read_only=read_only)


def _postgresql_engine(url: sa.URL, *, read_only: bool) -> sa.Engine:
    made = sa.create_engine(
        url.set(query={**_PATIENCE, **url.query}),
        pool_pre_ping=True,
        isolation_level="READ COMMITTED",  # a statement after a lock sees what was committed before the lock was given
        execution_options={"postgresql_readonly": read_only},
    )

    @sqlalchemy.event.listens_for(made, "connect")
    def connect(connection: Any, _: object) -> None:
        connection.execute(f"SET lock_timeout = {1000 * BUSY_SECONDS:.0f}")
        connection.commit()

    return made


def reader(engine: sa.Engine) -> sa.Engine:
    """The engine with transactions that see one moment of the database, as SQLite's always do."""
    return engine.execution_options(isolation_level="REPEATABLE READ") if _is_server(engine) else engine


def _is_server(engine: sa.Engine | sa.Connection) -> bool:
    return engine.dialect.name == "postgresql"


def _sqlite_engine(path: Path, *, read_only: bool) -> sa.Engine:
    try:
        _check_file(path, read_only=read_only)
    except PermissionError as error:
        if error.errno is None:
            raise
        raise PermissionError(
            f"Store got {path}, which this user has no access to ({error.strerror}). Change the permissions of its "
            "directories, or choose another place."
        ) from None
    mode = "ro" if read_only else "rw"
    if not read_only:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))  # results are their owner's; SQLite's log follows
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

    @sqlalchemy.event.listens_for(made, "connect")
    def connected(_: object, record: Any) -> None:
        record.info["file"] = _identity(path)

    @sqlalchemy.event.listens_for(made, "begin")
    def begin(connection: sa.Connection) -> None:
        # A deferred transaction that turns into a writer fails at once when another one writes; an immediate one waits.
        raw = connection.connection.driver_connection
        if not read_only and connection.info["file"] != _identity(path):
            raise FileNotFoundError(
                f"The store {path} was removed or replaced while it was in use: what is not in a file of that name "
                "is lost. Put the file back if you moved it, and run the same command again."
            )
        if raw is not None:
            _begin_immediate(raw) if connection.get_execution_options().get("write", False) else raw.execute("BEGIN")

    return made


def _identity(path: Path) -> tuple[int, int] | None:
    """What tells a file from another one of its name; None where there is none."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def _begin_immediate(connection: sqlite3.Connection) -> None:
    """Wait for our turn by asking often.

    SQLite's own waiting asks ever more rarely, and beside writers that never rest the last one starves: four of them
    for a minute made one wait for 25 seconds.
    """
    deadline = time.monotonic() + BUSY_SECONDS
    connection.execute("PRAGMA busy_timeout = 20")
    try:
        while True:
            try:
                connection.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise sqlalchemy.exc.OperationalError("BEGIN IMMEDIATE", None, error) from error
    finally:
        connection.execute(f"PRAGMA busy_timeout = {1000 * BUSY_SECONDS:.0f}")


def _check_file(path: Path, *, read_only: bool) -> None:
    if path.is_dir():
        raise Refusal(f"Store got {path}, a directory: a SQLite store is a file. Add a file name to the URL.")
    if path.exists() and not path.is_file():  # a pipe would be waited for without end
        raise Refusal(f"Store got {path}, a pipe or a device: a SQLite store is a file. Correct the path.")
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"Store got {path}, but there is no directory {path.parent}: a store must be created in an existing "
            "directory. Create the directory first, or correct the path."
        )
    if not path.exists():
        if read_only:
            raise FileNotFoundError(
                f"Store got {path}, which does not exist: only an existing store can be read. "
                "Run a study with this store first, or correct the path."
            )
    else:
        if not os.access(path, os.R_OK):
            raise PermissionError(f"Store got {path}, which this user may not read. Change its permissions.")
        with path.open("rb") as file:
            head = file.read(len(SQLITE))
        if head and head != SQLITE:
            raise Refusal(
                f"Store got {path}, which is not a SQLite database (it begins with {head!r}): it was left untouched. "
                "Give the path of a genscope store or of a new file."
            )
    unwritable = next((p for p in (path.parent, path) if p.exists() and not os.access(p, os.W_OK)), None)
    if unwritable and not read_only:
        raise PermissionError(
            f"Store got {path}, but this user may not write {unwritable}: a store must write its file and a log next "
            "to it. Change the permissions, choose another place, or open the store read-only."
        )


def prepare_for_writing(engine: sa.Engine) -> None:
    """Let readers and a writer work side by side (SQLite's write-ahead log; PostgreSQL always does)."""
    if engine.dialect.name != "sqlite":
        return
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            with (
                contextlib.closing(engine.raw_connection()) as connection,
                contextlib.closing(connection.cursor()) as cursor,  # left open, it would hold a lock after a failure
            ):
                cursor.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            # SQLite's own busy timeout does not cover this switch when several processes make a store at once.
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise sqlalchemy.exc.OperationalError("PRAGMA journal_mode", None, error) from error
        time.sleep(0.05)


def lock(connection: sa.Connection, what: str) -> None:
    """Let one transaction at a time change the `schema` or the `leases` (a SQLite writer is alone anyway).

    What the holder before us committed is visible to every later statement of this transaction.
    """
    if _is_server(connection):
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCKS[what])))


def insert_new(connection: sa.Connection, table: sa.Table) -> Any:
    """An insert that leaves an existing row with the same primary key as it is."""
    return _insert(connection, table).on_conflict_do_nothing()


def insert_or_replace(connection: sa.Connection, table: sa.Table, *, newer: str | None = None) -> Any:
    """An insert that replaces a row with the same primary key; with `newer`, only one that is less in that column."""
    made = _insert(connection, table)
    changed = {column.name: made.excluded[column.name] for column in table.columns if not column.primary_key}
    where = None if newer is None else table.c[newer] < made.excluded[newer]
    return made.on_conflict_do_update(index_elements=list(table.primary_key.columns), set_=changed, where=where)


def _insert(connection: sa.Connection, table: sa.Table) -> Any:
    dialect = importlib.import_module(f"sqlalchemy.dialects.{connection.dialect.name}")  # each takes a while to load
    return dialect.insert(table)


def now(connection: sa.Connection) -> float:
    """Seconds since 1970 by the database's clock, the one clock all processes share."""
    clock = {
        "sqlite": sa.literal_column("(julianday('now') - 2440587.5) * 86400.0"),
        "postgresql": sa.extract("epoch", sa.func.clock_timestamp()),
    }
    return float(connection.scalar(sa.select(clock[connection.dialect.name])) or 0.0)
