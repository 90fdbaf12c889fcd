"""Help texts from docstrings, as a terminal shows them; commands and groups that print them.

Guarantee: exact words; paragraphs with formulas or code are for the reference and left out where that is asked for.
A flag shows no value, and braces in a usage line mean a choice, not that an argument is required.
"""

import inspect
import re
from collections.abc import Callable
from typing import Any

from rich.markup import escape
from typer.core import TyperCommand, TyperGroup


class Command(TyperCommand):
    """A command whose help shows flags without a value."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, --help among them."""
        return [_without_value(each) for each in super().get_params(ctx)]

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The words of the usage line, `EXPR` where typer writes `{EXPR}`."""
        return [re.sub(r"^\{(.*)\}", r"\1", piece) for piece in super().collect_usage_pieces(ctx)]


class Group(TyperGroup):
    """A group whose help shows flags without a value."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, --help and the two for completion among them."""
        return [_without_value(each) for each in super().get_params(ctx)]


def _without_value(parameter: Any) -> Any:
    if getattr(parameter, "is_flag", False) and parameter.metavar is None:
        parameter.metavar = ""
    return parameter


def flowing(function: Callable[..., object], *, formulas: bool = True) -> str:
    """The docstring with lines that end where the terminal does, and with brackets that are no markup."""
    paragraphs = (inspect.getdoc(function) or "").split("\n\n")
    kept = [text for text in paragraphs if formulas or not ("$" in text or ">>>" in text)]
    return escape("\n\n".join(" ".join(text.split()) for text in kept))
