"""Formulas of docstrings as MathML, which browsers draw without scripts or fonts from elsewhere.

Guarantee: texts come back as they are; what stands between dollar signs is converted by latex2mathml.
"""

import functools
import re
from collections.abc import Sequence

from latex2mathml.converter import convert

_NAMED = re.compile("<mi>([a-z]{2,})</mi>")
_FORMULA = re.compile(r"(\$\$?)(.+?)\1", re.DOTALL)


@functools.cache
def typeset(text: str) -> Sequence[dict[str, str]]:
    r"""The pieces of a text in order, each `{"text": …}` or `{"math": …}`, where a formula on its own is a block.

    >>> [list(piece) for piece in typeset(r"At most $\log N$, hence finite.")]
    [['text'], ['math'], ['text']]
    """
    pieces: list[dict[str, str]] = []
    place = 0
    for found in _FORMULA.finditer(text):
        pieces.append({"text": text[place : found.start()]})
        display = "block" if found[1] == "$$" else "inline"
        pieces.append({"math": mathml(found[2], display)})
        place = found.end()
    pieces.append({"text": text[place:]})
    return [piece for piece in pieces if piece.get("text") != ""]


def mathml(latex: str, display: str = "inline") -> str:
    """A formula as MathML, with the thin spaces that TeX sets around log and its like (latex2mathml sets none)."""
    return _NAMED.sub(_spaced, convert(" ".join(latex.split()), display=display))


def _spaced(found: re.Match[str]) -> str:
    before = re.sub("<m(sub|sup|subsup)>$", "", found.string[: found.start()])
    after = found.string[found.end() :]
    left = "0.17em" if re.search("</m(?!o>)[a-z]+>$", before) else "0"
    right = "0" if re.match('<mo stretchy="false">&#x00028;|</', after) else "0.17em"
    return f'<mo lspace="{left}" rspace="{right}">{found[1]}</mo>'
