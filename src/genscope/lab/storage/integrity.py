"""Whether a store is sound: a quick look whenever one is opened, and a check of everything on request.

Guarantee: the quick look finds damage to the structure of a SQLite file of up to 256 MB, once per process, and up to
16 MB whether its indices fit its tables; `Store` then asks `schema.misfits` what is lost; the check reads every row and
compares it with its checksum and its identity. Neither changes anything.
"""

import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import sqlalchemy as sa

from genscope.lab import values
from genscope.lab.plans.study import Trial
from genscope.lab.storage import checksums, database, leases, schema
from genscope.lab.storage.failures import Damaged, clear_errors
from genscope.lab.storage.schema import LEASE, PROVENANCE, TRIAL
from genscope.refusal import Refusal

_QUICK_BYTES = 256 * 2**20  # a third of a second
_SHOWN = 20  # problems of one kind
_SMALL_BYTES = 16 * 2**20  # looked at whole, and again whenever it has changed; a larger file once in a process
_seen: dict[tuple[str, int], tuple[int, int]] = {}


@dataclass(frozen=True)
class Health:
    """What a check of a store found."""

    store: str
    version: int | None
    rows: dict[str, int]
    """Rows per table that could be read."""
    problems: tuple[str, ...]
    leases: int
    """Batches that running processes hold."""
    orphaned: int
    """Leases of processes that are dead or silent; the next run takes them over."""

    @property
    def sound(self) -> bool:
        """Whether nothing is damaged."""
        return not self.problems

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {**asdict(self), "problems": list(self.problems), "sound": self.sound}


def look_quickly(connection: sa.Connection, url: sa.URL, name: str) -> None:
    """Refuse a SQLite file whose structure is damaged."""
    if connection.dialect.name != "sqlite":
        return
    status = os.stat(str(url.database))
    place, state = (str(url.database), status.st_ino), (status.st_size, status.st_mtime_ns)
    if status.st_size > _QUICK_BYTES:
        return
    if place in _seen and (status.st_size > _SMALL_BYTES or _seen[place] == state):
        return
    how = "integrity_check" if status.st_size <= _SMALL_BYTES else "quick_check"  # the latter leaves out indices
    [(told,)] = connection.exec_driver_sql(f"PRAGMA {how}(1)").all()
    if told != "ok":
        raise Damaged(name, " ".join(str(told).split()))
    _seen[place] = state


def check_count(connection: sa.Connection, name: str, study: str, revision: int, number: int) -> None:
    """Refuse to have read a number of a study's trials that an index of SQLite does not know."""
    if connection.dialect.name == "sqlite":
        for index in sorted(str(each.name) for each in TRIAL.indexes):
            query = f"SELECT count(*) FROM trial INDEXED BY {index} WHERE study = :study AND revision = :revision"
            counted = connection.scalar(sa.text(query), {"study": study, "revision": revision})
            if counted != number:
                raise Damaged(name, f"{number} trials of {study} can be read, but {index} counts {counted}")


def check_store(url: str) -> Health:
    """Read everything in a store and compare it with what was written."""
    parts = database.parse(url)
    name = database.shown(parts)
    engine = database.engine(parts, read_only=True)
    try:
        with clear_errors(name), database.reader(engine).connect() as connection:
            return _check(connection, name)
    except Damaged as error:
        return Health(name, None, {}, (str(error),), 0, 0)
    finally:
        engine.dispose()


def _check(connection: sa.Connection, name: str) -> Health:
    structure = list(_structure(connection))
    problems = [*structure]
    version: int | None = None
    rows: dict[str, int] = {}
    held = orphaned = 0
    try:
        with clear_errors(name):
            version = schema.check(connection, name, read_only=True)
            misfits = list(schema.misfits(connection, version))
            problems += misfits
            for table in () if misfits else schema.tables(version):
                rows[table.name], wrong = _rows(connection, table, version)
                problems += wrong
            if not misfits:
                problems += _references(connection)
            if not misfits and not structure:
                held, orphaned = _leases(connection)
    except (Refusal, OSError) as error:
        if not problems and not isinstance(error, Damaged | OSError):
            raise  # empty, newer or another program's, and sound
        problems.append(str(error))
    except (TypeError, ValueError) as error:
        problems.append(f"a row holds what it cannot hold: {error}")
    return Health(name, version, rows, tuple(problems), held, orphaned)


def _structure(connection: sa.Connection) -> Iterator[str]:
    if connection.dialect.name == "sqlite":
        for (told,) in connection.exec_driver_sql(f"PRAGMA integrity_check({_SHOWN})"):
            if told != "ok":
                yield f"structure: {' '.join(str(told).split())}"


def _rows(connection: sa.Connection, table: sa.Table, version: int) -> tuple[int, list[str]]:
    """How many rows a table has, and what is wrong with some."""
    wrong: list[str] = []
    number = 0
    columns = schema.columns(table, version)
    query = sa.select(*columns).execution_options(yield_per=5_000)
    for row in connection.execute(query).mappings():
        number += 1
        if not checksums.is_sound(table, row):
            wrong.append(f"{table.name} {row[columns[0].name]}: not as it was written")
        elif table is TRIAL and not is_itself(row):
            wrong.append(f"trial {row['id']}: its identity does not follow from study, revision, point and seed")
    counted = connection.scalar(sa.select(sa.func.count()).select_from(table))
    if counted != number:
        wrong.append(f"{table.name}: {number} rows can be read, but {counted} are counted")
    left = [f"{table.name}: {len(wrong) - _SHOWN} rows more"] if len(wrong) > _SHOWN else []
    return number, wrong[:_SHOWN] + left


def is_itself(row: Any) -> bool:
    """Whether the row of a trial can be read and has the identity of what it says."""
    texts, numbers = ("id", "study", "point", "result"), ("revision", "seed")
    if not all(isinstance(row[name], str) for name in texts) or not all(isinstance(row[name], int) for name in numbers):
        return False
    try:
        values.decode(row["result"])
        return Trial(row["study"], row["revision"], values.decode(row["point"]), row["seed"]).id == row["id"]
    except (ValueError, TypeError, AttributeError):
        return False


def _references(connection: sa.Connection) -> Iterator[str]:
    known = sa.select(PROVENANCE.c.id)
    lost = connection.scalar(sa.select(sa.func.count()).where(TRIAL.c.provenance.not_in(known)))
    if lost:
        yield f"trial: {lost} rows name a provenance that is not there"


def _leases(connection: sa.Connection) -> tuple[int, int]:
    holder, now = leases.Holder(), database.now(connection)
    rows = connection.execute(sa.select(LEASE)).all()
    orphaned = sum(row.expires < now or holder.knows_dead(row.host, row.pid) for row in rows)
    return len(rows) - orphaned, orphaned
