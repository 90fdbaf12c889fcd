"""A bound as the page asks for it: its name and its arguments as texts, each text checked beside its field.

A bound in an address is written as its name and `argument=value` words: `lower context_length=300 support_size=3`.

Departures: the explorer takes at most 64 layers, since a page should answer within seconds.
Guarantee: exact; the number is that of the command line for the same texts.
"""

import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from genscope import bounds
from genscope.bounds import Bound
from genscope.bounds._parameters import Number, Parameter, apply, parameters
from genscope.explorer._bound_examples import example, forced
from genscope.refusal import Refusal

LAYERS = 64
_LONGEST = 40  # characters of a value
_YES, _NO = "yes", "no"
_REACH = 1000.0  # factor between an example and the ends of its slider


@dataclass(frozen=True)
class AskedBound:
    """A bound and the texts of its arguments; those left empty have their defaults."""

    name: str
    texts: Mapping[str, str]

    @property
    def known(self) -> Mapping[str, Parameter]:
        """The arguments that the bound has."""
        return parameters(bounds.ALL[self.name])

    @property
    def numbers(self) -> Mapping[str, Number]:
        """The arguments that are numbers."""
        return {word: about for word, each in self.known.items() if isinstance(about := each.about, Number)}

    def values(self) -> tuple[dict[str, Any], dict[str, str]]:
        """The values by argument, and what is wrong with the other texts."""
        values, wrong = {}, {}
        for word, each in self.known.items():
            text = self.texts.get(word, "").strip()
            try:
                if text:
                    values[word] = _value(self.name, word, each, text)
                elif each.required:
                    raise Refusal(f"{word} is missing: {_range(each)}. Give a number.")
            except ValueError as error:
                wrong[word] = str(error)
        return values, wrong

    def at(self, values: Mapping[str, Any]) -> Bound:
        """The bound for given values; ValueError where they do not fit together."""
        return apply(bounds.ALL[self.name], values)

    def word(self) -> str:
        """The bound as an address has it."""
        return " ".join([self.name, *(f"{word}={text}" for word, text in self.texts.items() if text)])

    def command(self, vary: str | None = None) -> str:
        """The command that prints it; with `vary`, such as `samples=10:1000`, its curve."""
        parts = ["genscope", "bound", self.name]
        varied = None if vary is None else vary.partition("=")[0]
        for word, text in self.texts.items():
            each = self.known[word]
            if word == varied or not text or text == _default(each):
                continue
            flag = "--" + word.replace("_", "-")
            parts += [flag] if each.plain is bool else [flag, text]
        return shlex.join(parts if vary is None else [*parts, "--vary", vary])


def read(text: str) -> AskedBound:
    """The bound that a text of the address names."""
    name, *words = text.split() or [""]
    if name not in bounds.ALL:
        raise Refusal(f"got the bound {name[:60]!r}: the bounds are {', '.join(bounds.ALL)}. Choose one of them.")
    known = parameters(bounds.ALL[name])
    texts = {}
    for each in words:
        word, _, value = each.partition("=")
        if word not in known or len(value) > _LONGEST:
            raise Refusal(
                f"bound {name} got {each[:60]!r}: its arguments are {', '.join(known)}, with values of at most "
                f"{_LONGEST} characters. Write argument=value, or leave it out."
            )
        texts[word] = value
    return AskedBound(name, texts)


def first(name: str) -> AskedBound:
    """A bound at its example."""
    known = parameters(bounds.ALL[name])
    wanted = {word: example(name, word) for word, each in known.items() if each.required} | dict(forced(name))
    return AskedBound(
        name, {word: f"{value:g}" if value < 1e6 else str(value) for word, value in wanted.items() if value}
    )


def fields(asked: AskedBound, wrong: Mapping[str, str]) -> list[dict[str, Any]]:
    """What the page shows of each argument: its words, its range, its slider, its text and what is wrong with it."""
    return [
        {
            "name": word,
            "label": word.replace("_", " "),
            "meaning": each.about.meaning,
            "allowed": _range(each),
            "text": asked.texts.get(word, "") or _default(each),
            "default": _default(each),
            "error": wrong.get(word, ""),
            "more": not each.required and word not in forced(asked.name),
            "options": _options(each),
            "slider": _slider(asked.name, word, each),
        }
        for word, each in asked.known.items()
    ]


def _value(name: str, word: str, parameter: Parameter, text: str) -> Any:
    if parameter.plain is bool:
        if text not in (_YES, _NO):
            raise Refusal(f"{name} got {word}={text!r}: {_range(parameter)}. Choose one of them.")
        return text == _YES
    if isinstance(parameter.about, Number):
        try:
            number = float(text)
        except ValueError:
            raise Refusal(f"{name} got {word}={text!r}: {_range(parameter)}. Write a number.") from None
        if word == "layers" and number > LAYERS:
            raise Refusal(
                f"the explorer got layers={text}: it computes at most {LAYERS} layers, so that it can answer at "
                "once. Choose fewer, or use the command line."
            )
        return parameter.accept(name, word, number)
    return parameter.accept(name, word, text)


def _range(parameter: Parameter) -> str:
    about = parameter.about
    if isinstance(about, Number):
        return f"{about.meaning}; {about.allowed}"
    return f"{about.meaning}; {' or '.join(_options(parameter))}"


def _options(parameter: Parameter) -> list[str]:
    if isinstance(parameter.about, Number):
        return []
    return [_NO, _YES] if parameter.plain is bool else list(get_args(parameter.plain))


def _default(parameter: Parameter) -> str:
    if parameter.required or parameter.default is None:
        return ""
    if parameter.plain is bool:
        return _YES if parameter.default else _NO
    return f"{parameter.default:g}" if isinstance(parameter.about, Number) else str(parameter.default)


def _slider(name: str, word: str, parameter: Parameter) -> dict[str, Any] | None:
    """Where a slider ends: a thousandth and a thousandfold of the example, within what is allowed."""
    about, default = parameter.about, None if parameter.required else parameter.default
    middle = default if isinstance(default, int | float) and default else example(name, word)
    if not isinstance(about, Number) or not middle or (not parameter.required and default is None):
        return None
    high = min(middle * _REACH, about.high if about.closed[1] else math.nextafter(about.high, 0))
    if word == "layers":
        high = min(high, LAYERS)
    if middle > about.high / 2 and not about.closed[1]:  # a probability near 1
        return {"low": 0.5, "high": 0.999, "log": False, "whole": False}
    low = max(middle / _REACH, about.low)
    return {"low": low, "high": high, "log": True, "whole": about.whole}
