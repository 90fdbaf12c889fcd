"""Commands from functions, with help texts from docstrings, as a terminal shows them.

Guarantee: exact words; paragraphs with formulas or code are for the reference and left out where that is asked for.
"""

import inspect
from collections.abc import Callable
from typing import Any

import typer
from rich.markup import escape

from genscope.cli._errors import guarded
from genscope.cli._flags import PlainCommand


def flowing(function: Callable[..., object], *, formulas: bool = True) -> str:
    """The docstring with lines that end where the terminal does, and with brackets that are no markup."""
    paragraphs = (inspect.getdoc(function) or "").split("\n\n")
    kept = [text for text in paragraphs if formulas or not ("$" in text or ">>>" in text)]
    return escape("\n\n".join(" ".join(text.split()) for text in kept))


def alone(name: str, function: Callable[..., None], **settings: Any) -> typer.Typer:
    """A program of one command, whose failures are messages."""
    app = typer.Typer(add_completion=False, rich_markup_mode="rich")
    add(app, name, function, **settings)
    return app


def add(app: typer.Typer, name: str, function: Callable[..., None], **settings: Any) -> None:
    """One more command, whose failures are messages; its help is its docstring unless the settings have one."""
    app.command(name, cls=PlainCommand, **{"help": flowing(function), **settings})(guarded(function))
