"""How values of an axis are written in `--where axis=value,value`, and read again.

A text that would be divided, or taken for something else, stands in quotation marks, written as in JSON; nothing at all
stands for points that do not have the axis.

Guarantee: exact; what is written is read back as it was.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from genscope.refusal import Refusal

_WORD = re.compile(r'\s*(?:("(?:[^"\\]|\\.)*")\s*|([^,]*))(,|\Z)', re.DOTALL)


class Word(NamedTuple):
    """A value as it stands in a list; one in quotation marks is a text, whatever it looks like."""

    text: str
    quoted: bool


def words(listed: str) -> Iterator[Word]:
    """The values of a list."""
    end, comma = 0, ","
    while comma and (found := _WORD.match(listed, end)):
        quoted, bare, comma = found.groups()
        end = found.end()
        yield Word(bare.strip(), False) if quoted is None else Word(_unquoted(quoted), True)


def written(chosen: Iterable[object], *, mixed: bool) -> str:
    """The list of some values; of a `mixed` axis, which has texts and other values, texts like numbers are quoted."""
    return ",".join("" if value is None else _written(value, mixed) for value in chosen)


def _written(value: object, mixed: bool) -> str:
    if isinstance(value, str) and ([*words(value)] != [(value, False)] or not value or (mixed and _is_plain(value))):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def _is_plain(text: str) -> bool:
    """Whether a text looks like a number or a flag."""
    try:
        float(text)
    except ValueError:
        return text.lower() in ("true", "false")
    return True


def _unquoted(text: str) -> str:
    try:
        return json.loads(text, strict=False)
    except ValueError:
        raise Refusal(
            f"got the value {text}: between quotation marks stands a text as in JSON, where a backslash is written "
            r"\\. Correct it."
        ) from None
