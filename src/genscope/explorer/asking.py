"""The fields of a question, checked: what a page sent is never trusted to have the right type or size.

Guarantee: exact; a field that is missing, of another type or out of range raises ValueError.
"""

from collections.abc import Sequence
from typing import Any

from genscope.explorer.room import Ask
from genscope.refusal import Refusal


def text(ask: Ask, name: str, *, longest: int, default: str | None = None) -> str:
    """A text of at most so many characters."""
    given = ask.get(name, default)
    if not isinstance(given, str) or len(given) > longest:
        raise Refusal(
            f"{_capital(name)} is {_shown(given)}, but must be a text of at most {longest:,} characters. Shorten it."
        )
    return given


def whole(ask: Ask, name: str, *, least: int, most: int, default: int | None = None, instead: str = "") -> int:
    """A whole number in a range; `instead` says what takes larger ones."""
    given = ask.get(name, default)
    if type(given) is not int or not least <= given <= most:
        more = f"For larger ones use {instead}." if instead and type(given) is int and given > most else "Choose one."
        raise Refusal(
            f"{_capital(name)} is {_shown(given)}, but must be a whole number from {least:,} to {most:,} here. {more}"
        )
    return given


def number(ask: Ask, name: str, *, least: float, most: float, default: float | None = None) -> float:
    """A number in a range."""
    given = ask.get(name, default)
    if type(given) not in (int, float) or not least <= given <= most:  # no truth values; NaN is in no range
        raise Refusal(
            f"{_capital(name)} is {_shown(given)}, but must be a number from {least:g} to {most:g} here. Choose one."
        )
    return float(given)


def choice(ask: Ask, name: str, options: Sequence[str], default: str | None = None) -> str:
    """One of several words."""
    given = ask.get(name, default)
    if given not in options:
        raise Refusal(
            f"{_capital(name)} is {_shown(given)}, but must be one of {', '.join(options)}. Choose one of these."
        )
    return given


def _capital(name: str) -> str:
    return name.replace("_", " ").capitalize()


def _shown(value: Any) -> str:
    shown = "nothing" if value is None else repr(value)
    return shown if len(shown) <= 40 else f"{shown[:37]}..."
