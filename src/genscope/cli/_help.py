"""Help texts from docstrings, as a terminal shows them.

Guarantee: exact words; paragraphs with formulas or code are for the reference and left out where that is asked for.
"""

import inspect
from collections.abc import Callable

from rich.markup import escape


def flowing(function: Callable[..., object], *, formulas: bool = True) -> str:
    """The docstring with lines that end where the terminal does, and with brackets that are no markup."""
    paragraphs = (inspect.getdoc(function) or "").split("\n\n")
    kept = [text for text in paragraphs if formulas or not ("$" in text or ">>>" in text)]
    return escape("\n\n".join(" ".join(text.split()) for text in kept))
