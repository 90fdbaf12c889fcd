"""Results on standard output: one JSON object, or tables for people.

Guarantee: JSON holds no NaN and no infinity (they become null), and tables cut nothing off.
"""

import json
import os
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from genscope.cli._results import results
from genscope.jsonable import jsonable

_WIDE = 140  # columns where there is no terminal, and COLUMNS does not say
_NOTEBOOK = "JPY_PARENT_PID"  # what Jupyter tells the programs that its kernels start
_WORD = 24  # what is longer may be divided
_SHORT = 8  # letters that every heading may have in a line


def print_json(facts: Mapping[str, Any]) -> None:
    """The one JSON object of a command."""
    print(json.dumps(jsonable(facts), indent=2, allow_nan=False), file=results())


def echo(text: str) -> None:
    """Sentences, folded where somebody reads them: on a terminal, or where COLUMNS says how wide it is."""
    out = console()
    if out.is_terminal or "COLUMNS" in os.environ:
        text = "\n".join(_filled(line, out.width) for line in text.split("\n"))
    typer.echo(text, file=results())


def _filled(line: str, width: int) -> str:
    """A sentence, or a point of a list, in lines of this width."""
    indent = "  " * line.startswith("- ")
    return textwrap.fill(line, width, break_on_hyphens=False, break_long_words=False, subsequent_indent=indent)


class _Plain(Console):
    """Texts as they are; a reader that has gone is our caller's affair."""

    def __init__(self, **options: Any):
        if (
            _NOTEBOOK in os.environ
        ):  # its kernel asks for colors, and shows every frame of what moves in a line of its own
            options["force_terminal"] = False
        super().__init__(highlight=False, markup=False, emoji=False, **options)

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def counted(number: int, one: str, several: str | None = None) -> str:
    """A number of things in words.

    >>> counted(1, "study", "studies"), counted(1200, "trial")
    ('1 study', '1,200 trials')
    """
    return f"{number:,} {one if number == 1 else several or one + 's'}"


def console(*, stderr: bool = False) -> Console:
    """Standard output, or standard error, as rich sees it."""
    place: dict[str, Any] = {"stderr": True} if stderr else {"file": results()}
    made = _Plain(**place)
    return made if made.is_terminal or "COLUMNS" in os.environ else _Plain(**place, width=_WIDE)


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], *, names: int = 1) -> None:
    """A table of texts whose first columns name a row; long texts go on in the next line.

    Where the terminal is narrow, first texts give way, then headings; then the table goes on in another below it.
    """
    out, rows = console(), list(rows)
    out.print(Text(title, "bold"))
    cells = [[row[number] for row in rows] for number in range(len(columns))]
    whole = [number == 0 or _are_words(texts) for number, texts in enumerate(cells)]
    folded = [_folded(heading, _longest(texts)) for heading, texts in zip(columns, cells, strict=True)]
    fits = sum(map(_least, columns, cells, whole)) + 2 * len(columns) <= out.width
    headings = columns if fits else folded
    widths = list(map(_least, headings, cells, whole))
    for group in _groups(widths, names, out.width):
        made = Table(box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
        least = [widths[number] for number in group]
        wanted = [_longest(line for text in (headings[n], *cells[n]) for line in text.splitlines()) for n in group]
        shared = _shared(least, wanted, out.width - 2 * len(group))
        for number, width in zip(group, shared or [None] * len(group), strict=True):
            made.add_column(
                Text(headings[number]), overflow="fold", no_wrap=bool(shared) and whole[number], width=width
            )
        for row in rows:
            made.add_row(*(Text(row[number]) for number in group))
        out.print(made)


def _shared(least: Sequence[int], wanted: Sequence[int], room: int) -> list[int]:
    """Widths of columns in which no word is divided and short texts stand on one line if they can; none if they do
    not fit. Rich would divide words in a narrow column before it folds a wide one.

    >>> _shared([4, 9, 5], [4, 12, 60], 30)
    [4, 12, 14]
    """
    if sum(least) > room:
        return []
    widths = list(least)
    for _ in range(min(room, sum(map(max, least, wanted))) - sum(least)):
        short = [number for number, width in enumerate(widths) if width < wanted[number]]
        widths[min(short, key=widths.__getitem__)] += 1
    return widths


def _groups(widths: Sequence[int], names: int, room: int) -> list[list[int]]:
    """Columns in groups that fit, each after the names.

    >>> _groups([4, 10, 10, 10], 1, 30)
    [[0, 1, 2], [0, 3]]
    """
    groups = [list(range(names))]
    for number in range(names, len(widths)):
        here = [*groups[-1], number]
        if sum(widths[each] + 2 for each in here) > room and len(here) > names + 1:
            groups.append([*range(names), number])
        else:
            groups[-1] = here
    return groups


def _are_words(texts: Sequence[str]) -> bool:
    """Whether they stand on one line each: words, and numbers with their error."""
    joined = [re.sub(r" ± | \(exact\)", "", text) for text in texts]
    return _longest(texts) <= _WORD and not any(" " in text for text in joined)


def _longest(texts: Iterable[str]) -> int:
    return max(map(len, texts), default=0)


def _least(heading: str, texts: Sequence[str], whole: bool) -> int:
    """Columns that these texts need if nothing, or no word, is divided."""
    return _longest(part for text in (heading, *texts) for part in (text.splitlines() if whole else text.split()))


def _folded(heading: str, width: int) -> str:
    r"""A heading in lines about as wide as its column: it ends them at spaces and after underscores.

    >>> _folded("median span_risk", 6)
    'median\nspan_\nrisk'
    """
    lines = [""]
    for piece in re.findall(r"[^ _]+_*| +", heading):
        if len((lines[-1] + piece).rstrip()) <= max(width, _SHORT):
            lines[-1] += piece
        else:
            lines.append(piece.lstrip())
    return "\n".join(line.rstrip() for line in lines if line)
