"""A checksum in every stored row, so that a damaged result is noticed before it becomes a number in a figure.

A database notices when its own structure is damaged, not when a digit inside a text has changed.

Guarantee: any change of up to 32 bits in a row is noticed, of more with probability 1 - 2^-32. Times are not covered:
of them only what is no time at all is noticed.
"""

import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

NAME = "checksum"
_TIMES = frozenset({"seconds", "compile_seconds", "finished", "updated", "asked"})
_LATEST = 2.5e11  # seconds: the year 9892; dates end with 9999


def covered(table: sa.Table) -> tuple[str, ...]:
    """The columns of a table that its checksums cover, in their order."""
    return tuple(column.name for column in table.columns if column.name not in _TIMES | {NAME})


def checksum(values: Iterable[Any]) -> int:
    """The checksum of the values of a row's covered columns."""
    text = "\x1f".join("\x00" if value is None else str(value) for value in values)
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))


def sealed(table: sa.Table, rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows with their checksums."""
    names = covered(table)
    return [{**row, NAME: checksum([row[name] for name in names])} for row in rows]


def is_time(value: Any) -> bool:
    """Whether it is a number of seconds, or since 1970, that a clock may have shown.

    >>> is_time(1.5), is_time("1.5"), is_time(float("nan")), is_time(-1.0)
    (True, False, False, False)
    """
    return isinstance(value, float | int) and 0 <= value < _LATEST


def is_sound(table: sa.Table, row: Any) -> bool:
    """Whether a row is as it was written, as far as is known: before version 4 there were no checksums."""
    if not all(is_time(row[column.name]) for column in table.columns if column.name in _TIMES):
        return False
    return NAME not in row or row[NAME] == checksum([row[name] for name in covered(table)])


def unsound(table: sa.Table, columns: Sequence[str], rows: Iterable[Sequence[Any]], **fixed: Any) -> int:
    """How many rows, given as tuples of columns, are not as they were written; `fixed` are columns that all share."""
    names = covered(table)
    places = [columns.index(name) if name in columns else None for name in names]
    times = [at for at, name in enumerate(columns) if name in _TIMES]
    last = columns.index(NAME) if NAME in columns else None

    def is_sound(row: Sequence[Any]) -> bool:
        if not all(is_time(row[at]) for at in times):
            return False
        written = (fixed[name] if at is None else row[at] for name, at in zip(names, places, strict=True))
        return last is None or row[last] == checksum(written)

    return sum(not is_sound(row) for row in rows)
