"""Formulas of docstrings as MathML, which browsers draw without scripts or fonts from elsewhere.

Guarantee: texts come back as they are; what stands between dollar signs is converted by latex2mathml.
"""

import functools
import re
from collections.abc import Sequence

from latex2mathml.converter import convert

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
        pieces.append({"math": convert(" ".join(found[2].split()), display=display)})
        place = found.end()
    pieces.append({"text": text[place:]})
    return [piece for piece in pieces if piece.get("text") != ""]
