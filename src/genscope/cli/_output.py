"""Results on standard output: one JSON object, or tables for people.

Source: product.md, Section 2.
Departures: None.
Guarantee: JSON holds no NaN and no infinity (they become null), and tables cut nothing off.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from genscope.jsonable import jsonable

_WIDE = 140  # columns where there is no terminal


def print_json(facts: Mapping[str, Any]) -> None:
    """The one JSON object of a command."""
    print(json.dumps(jsonable(facts), indent=2, allow_nan=False))


class _Plain(Console):
    """Texts as they are; a reader that has gone is our caller's affair."""

    def __init__(self, **options: Any):
        super().__init__(highlight=False, markup=False, emoji=False, **options)

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console(*, stderr: bool = False) -> Console:
    """Standard output, or standard error, as rich sees it."""
    made = _Plain(stderr=stderr)
    return made if made.is_terminal else _Plain(stderr=stderr, width=_WIDE)


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table of texts, the first column being their name; long texts go on in the next line."""
    made = Table(box=SIMPLE_HEAD, pad_edge=False)
    for number, column in enumerate(columns):
        made.add_column(Text(column), overflow="fold", no_wrap=number == 0)  # names stay in one piece
    for row in rows:
        made.add_row(*(Text(cell) for cell in row))
    out = console()
    out.print(Text(title, "bold"))
    out.print(made)
