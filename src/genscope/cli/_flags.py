"""Commands and groups whose help shows a flag without a value.

Braces in a usage line mean a choice, not that an argument is required.
"""

import re
from typing import Any

from typer.core import TyperCommand, TyperGroup


class PlainCommand(TyperCommand):
    """A command whose help shows flags without a value."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, --help among them."""
        return [_without_value(each) for each in super().get_params(ctx)]

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The words of the usage line, `EXPR` where typer writes `{EXPR}`."""
        return [re.sub(r"^\{(.*)\}", r"\1", piece) for piece in super().collect_usage_pieces(ctx)]


class PlainGroup(TyperGroup):
    """A group whose help shows flags without a value."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, --help and the two for completion among them."""
        return [_without_value(each) for each in super().get_params(ctx)]


def _without_value(parameter: Any) -> Any:
    if getattr(parameter, "is_flag", False) and parameter.metavar is None:
        parameter.metavar = ""
    return parameter
