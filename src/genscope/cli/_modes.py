"""Commands with modes: `construct EXPR` beside `construct token-retrieval`.

Guarantee: exact; a word is a mode if it is the name of one, and belongs to the first mode otherwise.
"""

from collections.abc import Callable, Mapping
from typing import Any

import typer

from genscope.cli._flags import PlainGroup
from genscope.cli._help import add


class _Modes(PlainGroup):
    """A group whose first member also answers where no mode is named."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Name the first mode where the user did not."""
        first = next(iter(self.commands))
        return super().parse_args(ctx, args if args and args[0] in self.commands else [first, *args])


def with_modes(first: str, command: Callable[..., None], modes: Mapping[str, Callable[..., None]]) -> typer.Typer:
    """The command, under the name `first` or none, and its further modes, each with options of its own."""
    summary = (command.__doc__ or "").partition("\n")[0]
    group = typer.Typer(cls=_Modes, help=summary, add_completion=False, rich_markup_mode="rich")
    others = f"Other modes, each with --help: {', '.join(modes)}."
    add(group, first, command, epilog=others)
    for name, mode in modes.items():
        add(group, name, mode)
    return group
