"""What is sound of a damaged store, copied into another.

Rows are read on every way that the database offers (forwards, backwards, along each index, one by one), since damage
ends one way and not another; each is copied if it is as it was written.

Guarantee: nothing unsound is copied; what cannot be reached, or was not sound, is counted as far as it shows.
"""

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa

from genscope.lab.storage import checksums, database, schema
from genscope.lab.storage.failures import Damaged
from genscope.lab.storage.integrity import is_itself
from genscope.lab.storage.schema import CHECKED, PROVENANCE, TRIAL
from genscope.lab.storage.store import Store

_MOST_SINGLE = 2_000_000  # rows that are asked for one by one
_BEYOND = 1_000  # numbers that are tried after the last one that is known: where a file was cut, none may be
Row = dict[str, Any]


@dataclass(frozen=True)
class Rescued:
    """Rows per table that were copied, and that were seen and left behind."""

    copied: dict[str, int]
    left: dict[str, int]


def copy_sound(source: str, target: Store) -> Rescued:
    """Copy the sound rows of a damaged SQLite store into another store."""
    url = database.parse(source)
    if url.get_backend_name() != "sqlite":
        raise Damaged(database.shown(url), "a server keeps its own copies: restore the database there")
    copied: dict[str, int] = {}
    left: dict[str, int] = {}
    named: set[str] = set()
    with contextlib.closing(_open(Path(str(url.database)))) as connection:
        known = schema.VERSION if any(_has_checksums(connection, table) for table in CHECKED) else schema.READABLE
        for table in CHECKED:
            found = _reachable(connection, table)
            names = [column.name for column in schema.columns(table, known)]
            good = [{name: row[name] for name in names} for row in found.values() if _good(table, row, names)]
            target.put_rows(table, good)
            if table is TRIAL:
                named = {row["provenance"] for row in good}
            elif table is PROVENANCE:  # trials whose origin is lost say so
                target.put_lost(named - {row["id"] for row in good})
            copied[table.name], left[table.name] = len(good), len(found) - len(good)
    return Rescued(copied, left)


def _open(path: Path) -> sqlite3.Connection:
    made = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)
    made.execute("PRAGMA writable_schema = ON")  # else a file that was cut is not read at all; none can be written
    made.row_factory = sqlite3.Row
    made.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")  # a broken text is a row that is not sound
    return made


def _reachable(connection: sqlite3.Connection, table: sa.Table) -> dict[int, Row]:
    """All rows that some way leads to, by their number."""
    found: dict[int, Row] = {}
    select = f"SELECT rowid AS _row, * FROM {table.name}"
    ways = [f"{select} ORDER BY _row", f"{select} ORDER BY _row DESC"]
    for index in table.indexes:
        columns = ", ".join(column.name for column in index.columns)
        ways.append(f"{select} INDEXED BY {index.name} ORDER BY {columns}")
    for way in ways:
        for row in _rows(connection, way):
            found[row.pop("_row")] = row
    last, number = max([*found, *_numbers(connection, table)], default=0), 0
    while (number := number + 1) <= min(last + _BEYOND, _MOST_SINGLE):
        if number not in found:
            for row in _rows(connection, f"{select} WHERE rowid = ?", number):
                found[row.pop("_row")] = row
                last = max(last, number)
    return found


def _numbers(connection: sqlite3.Connection, table: sa.Table) -> Iterator[int]:
    """Numbers of rows that indices know, whether or not the rows can be read."""
    for index in table.indexes:
        columns = ", ".join(column.name for column in index.columns)
        query = f"SELECT rowid AS _row FROM {table.name} INDEXED BY {index.name} ORDER BY {columns}"
        yield from (row["_row"] for row in _rows(connection, query))


def _rows(connection: sqlite3.Connection, query: str, *values: int) -> Iterator[Row]:
    """The rows of a query until the database fails; a table that is not there has none."""
    try:
        for row in connection.execute(query, values):
            yield dict(zip(row.keys(), tuple(row), strict=True))
    except sqlite3.Error:
        return


def _has_checksums(connection: sqlite3.Connection, table: sa.Table) -> bool:
    """Whether a table has checksums; where one has them, rows of another that lost them are not known to be sound."""
    return any(row["name"] == checksums.NAME for row in _rows(connection, f"PRAGMA table_info({table.name})"))


def _good(table: sa.Table, row: Row, names: Sequence[str]) -> bool:
    """Whether a row has these columns and is as it was written."""
    try:
        "".join(map(str, row.values())).encode()  # ValueError for what was no text
        if not row.keys() >= {*names} or (table is TRIAL and not is_itself(row)):
            return False
        return checksums.is_sound(table, row)
    except (TypeError, ValueError):
        return False
