"""A checksum in every stored row, so that a damaged result is noticed before it becomes a number in a figure.

A database notices when its own structure is damaged, not when a digit inside a text has changed.

Guarantee: any change of up to 32 bits in a row is noticed, of more with probability 1 - 2^-32; times are not covered.
"""

import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

NAME = "checksum"
_TIMES = frozenset({"seconds", "compile_seconds", "finished", "updated", "asked"})


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


def is_sound(table: sa.Table, row: Any) -> bool:
    """Whether a row is as it was written."""
    return row[NAME] == checksum([row[name] for name in covered(table)])


def unsound(table: sa.Table, columns: Sequence[str], rows: Iterable[Sequence[Any]], **fixed: Any) -> int:
    """How many rows, given as tuples of columns, are not as they were written; `fixed` are columns that all share."""
    places = [columns.index(name) if name in columns else None for name in covered(table)]
    names = covered(table)
    last = columns.index(NAME)
    return sum(
        row[last] != checksum([fixed[name] if at is None else row[at] for name, at in zip(names, places, strict=True)])
        for row in rows
    )
