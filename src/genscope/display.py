"""How results show themselves: rows and tables, as plain text of 80 columns and as HTML for notebooks.

A class that shows itself inherits `Displayed` and declares a `card`; it writes no markup. `print(x)` is the plain
form, and IPython shows the HTML in a notebook and the plain form in a terminal.

Guarantee: texts are escaped in HTML; in plain text, what a terminal would obey (control characters) is replaced.
"""

import html
import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

WIDTH = 80
_LABEL = 26  # at most, for a label before it is wrapped
_GAP = "  "


@dataclass(frozen=True)
class Table:
    """Columns by name, and rows of values."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


@dataclass(frozen=True)
class Card:
    """What is shown of a result: a title, labeled values, tables, and sentences below."""

    title: str
    rows: Sequence[tuple[str, Any]] = ()
    tables: Sequence[Table] = ()
    notes: Sequence[str] = ()


class Displayed:
    """A result that shows itself by its `card`."""

    def card(self) -> Card:
        """What is shown."""
        raise NotImplementedError

    def __str__(self) -> str:
        """The plain form, which fits 80 columns."""
        return plain(self.card())

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(plain(self.card()))

    def _repr_html_(self) -> str:
        return as_html(self.card())


def shown(value: Any) -> str:
    """A value as a reader wants it.

    >>> [shown(value) for value in (None, True, 12345, 0.000012345, 1234567.8, (0, 5), {"a": 0.5})]
    ['–', 'yes', '12,345', '1.234e-05', '1.235e+06', '0, 5', 'a 0.5']
    """
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if 1e4 <= abs(value) < 1e6 and value == math.floor(value) else f"{value:.4g}"
    if isinstance(value, dict):
        return ", ".join(f"{shown(name)} {shown(each)}" for name, each in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(shown, value))
    return " ".join("".join(each if each.isprintable() else " �"[each not in "\n\t "] for each in str(value)).split())


def plain(card: Card) -> str:
    """The card as text, no line longer than 80 characters.

    >>> print(plain(Card("head, 12.5 nats", [("source", "edelman2022, Corollary 4.5")])))
    head, 12.5 nats
    source  edelman2022, Corollary 4.5
    """
    lines = textwrap.wrap(shown(card.title), WIDTH)
    labels = [shown(label) for label, _ in card.rows]
    width = min(max(map(len, labels), default=0), _LABEL)
    for label, (_, value) in zip(labels, card.rows, strict=True):
        lines += _side_by_side([label, shown(value)], [width, WIDTH - width - len(_GAP)])
    for table in card.tables:
        lines += ["", *_table_lines(table)]
    for note in card.notes:
        text = shown(note)
        lines += textwrap.wrap(text, WIDTH, subsequent_indent="  " if text.startswith("- ") else "")
    return "\n".join(lines)


def as_html(card: Card) -> str:
    """The card as HTML; colors and fonts are the page's own.

    >>> as_html(Card("a < b"))
    '<div class="genscope"><p><strong>a &lt; b</strong></p></div>'
    """
    parts = [f"<p><strong>{_escaped(card.title)}</strong></p>"]
    if card.rows:
        cells = ((f'<th style="text-align:left">{_escaped(label)}</th>', value) for label, value in card.rows)
        rows = "".join(f'<tr>{head}<td style="text-align:left">{_escaped(value)}</td></tr>' for head, value in cells)
        parts.append(f"<table><tbody>{rows}</tbody></table>")
    parts += map(_html_table, card.tables)
    parts += [f"<p>{_escaped(note)}</p>" for note in card.notes]
    return f'<div class="genscope">{"".join(parts)}</div>'


def _escaped(value: Any) -> str:
    return html.escape(shown(value))


def _html_table(table: Table) -> str:
    head = "".join(f"<th>{_escaped(column)}</th>" for column in table.columns)
    rows = "".join(f"<tr>{''.join(f'<td>{_escaped(cell)}</td>' for cell in row)}</tr>" for row in table.rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _table_lines(table: Table) -> list[str]:
    cells = [[shown(cell) for cell in row] for row in [table.columns, *table.rows]]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    room = WIDTH - len(_GAP) * (len(widths) - 1)
    while sum(widths) > room and max(widths) > 1:
        widths[widths.index(max(widths))] -= 1
    return [line for row in cells for line in _side_by_side(row, widths)]


def _side_by_side(cells: Sequence[str], widths: Sequence[int]) -> list[str]:
    """Cells in columns, each wrapped to its width."""
    wrapped = [textwrap.wrap(cell, max(width, 1)) or [""] for cell, width in zip(cells, widths, strict=True)]
    height = max(map(len, wrapped))
    filled = [[*lines, *[""] * (height - len(lines))] for lines in wrapped]
    rows = zip(*filled, strict=True)
    return [_GAP.join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
