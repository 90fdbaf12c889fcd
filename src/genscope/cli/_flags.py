"""Commands and groups whose help shows a flag without a value.

Braces in a usage line mean a choice, not that an argument is required.
"""

import re
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

_WORDS = {
    "Value error, ": "",
    "Input should be a valid number, unable to parse string as a number": "it must be a number",
    "Input should be a valid integer, unable to parse string as an integer": "it must be a whole number",
}


class PlainCommand(TyperCommand):
    """A command whose help shows flags without a value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """The options; what typer lets pydantic say of a wrong value is said in our words."""
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            error.message = re.sub("|".join(_WORDS), lambda said: _WORDS[said[0]], error.message)
            raise

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
