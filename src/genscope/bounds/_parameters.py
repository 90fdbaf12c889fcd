"""What the parameters of bounds mean and which values they take: said once, in a signature.

A parameter is annotated `Annotated[float, Number(...)]`. The decorator `checked` holds every call against these ranges;
the command line reads its options and their help from the same place.

Guarantee: exact; a function sees finite numbers in their range, and whole numbers as integers of any size.
"""

import functools
import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from numbers import Real
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, get_args, get_origin, get_type_hints

from genscope.refusal import Refusal

P = ParamSpec("P")
R = TypeVar("R")

STEPS = 24  # of a curve along a parameter


@dataclass(frozen=True)
class Number:
    """A number, its meaning and its range: from `low` to `high`, `closed` telling which ends belong to it."""

    meaning: str
    low: float = 0.0
    high: float = math.inf
    closed: tuple[bool, bool] = (False, False)
    whole: bool = False

    @property
    def allowed(self) -> str:
        """The range in words."""
        what = "a whole number" if self.whole else "a finite number"
        low = f"{'at least' if self.closed[0] else 'above'} {self.low:g}"
        if self.high == math.inf:
            return f"{what} {low}"
        return f"{what} {low} and {'at most' if self.closed[1] else 'below'} {self.high:g}"

    def accept(self, caller: str, name: str, value: Any) -> float:
        """The value if it is allowed; whole numbers become integers."""
        if not isinstance(value, Real) or isinstance(value, bool):
            raise Refusal(
                f"{caller} got {name}={value!r} of type {type(value).__name__}: {self.meaning}; {self.allowed}. Give a "
                "Python number."
            )
        exact = value if isinstance(value, int) else float(value)
        inside = (self.low < exact or (self.closed[0] and exact == self.low)) and (
            exact < self.high or (self.closed[1] and exact == self.high)
        )
        if not inside or (self.whole and exact != math.floor(exact)):
            given = f"{name} {value:g}" if name.startswith("-") else f"{name}={value!r}"
            raise Refusal(f"{caller} got {given}: {self.meaning}; {self.allowed}. Change {name}.")
        return math.floor(exact) if self.whole else exact

    def between(self, low: float, high: float, steps: int) -> tuple[float, ...]:
        """Both ends and values in equal ratios between them (equal distances where `low` is 0), rounded if whole."""
        inner = (step / steps for step in range(1, steps))
        values = [low ** (1 - t) * high**t if low > 0 else t * high for t in inner]
        if self.whole:
            values = [float(round(value)) for value in values]
        return tuple(dict.fromkeys([low, *values, high]))


def norm(meaning: str) -> Number:
    """A size, zero allowed."""
    return Number(meaning, closed=(True, False))


def positive(meaning: str) -> Number:
    """A size, zero excluded."""
    return Number(meaning)


def count(meaning: str, most: float = math.inf) -> Number:
    """A number of things, one at least."""
    return Number(meaning, low=1, high=most, closed=(True, math.isfinite(most)), whole=True)


@dataclass(frozen=True)
class Choice:
    """A yes or no, or one of several words, and its meaning."""

    meaning: str


Form = Annotated[Literal["explicit", "order"], Choice("explicit: every constant proved; order: up to a constant")]
Epsilon = Annotated[float, positive("accuracy of the cover")]
Points = Annotated[float, count("number of points to cover (m T for a head)")]
WeightNorm = Annotated[float, norm("norm bound of the weights")]
InputNorm = Annotated[float, norm("norm bound of the points, ‖x‖")]
Constant = Annotated[float | None, positive("constant of the order form (default 1)")]


@dataclass(frozen=True)
class Parameter:
    """One parameter of a bound; `group` is the argument, by name and class, that it is a field of, if it is."""

    about: Number | Choice
    plain: Any
    default: Any
    group: tuple[str, type] | None = None

    @property
    def required(self) -> bool:
        """Whether it has no default."""
        return self.default is inspect.Parameter.empty

    def accept(self, caller: str, name: str, value: Any) -> Any:
        """The value if it is allowed; lists, where they are, become tuples."""
        if value is None and self.default is None:
            return None
        if isinstance(self.about, Number):
            if Sequence in {get_origin(part) for part in get_args(self.plain)} and isinstance(value, Iterable):
                return tuple(self.about.accept(caller, name, item) for item in value)
            return self.about.accept(caller, name, value)
        choices = (False, True) if self.plain is bool else get_args(self.plain)
        if value not in choices:
            raise Refusal(f"{caller} got {name}={value!r}: {self.about.meaning}. Choose one of {choices}.")
        return value


def parameters(function: Callable[..., Any]) -> Mapping[str, Parameter]:
    """The parameters of a bound by name; those of a grouped argument stand among the others."""
    hints = get_type_hints(function, include_extras=True)
    found: dict[str, Parameter] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        hint = hints[name]
        if get_origin(hint) is Annotated:
            plain, about = get_args(hint)
            found[name] = Parameter(about, plain, parameter.default)
        elif isinstance(hint, type) and is_dataclass(hint):
            fields = parameters(hint).items()
            found |= {field: Parameter(each.about, each.plain, each.default, (name, hint)) for field, each in fields}
    return found


def apply(function: Callable[..., R], values: Mapping[str, Any]) -> R:
    """Call a bound with values by name, those of a grouped argument put together."""
    flat: dict[str, Any] = {}
    groups: dict[tuple[str, type], dict[str, Any]] = {}
    known = parameters(function)
    for name, value in values.items():
        group = known[name].group
        (flat if group is None else groups.setdefault(group, {}))[name] = value
    return function(**flat, **{name: kind(**fields) for (name, kind), fields in groups.items()})


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """The function, holding its arguments against the ranges of its signature."""
    own = {name: each for name, each in parameters(function).items() if each.group is None}
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*arguments: P.args, **options: P.kwargs) -> R:
        bound = signature.bind(*arguments, **options)
        for name, value in bound.arguments.items():
            if name in own:
                bound.arguments[name] = own[name].accept(function.__name__, name, value)
        return function(*bound.args, **bound.kwargs)

    return call


def check_fields(instance: object) -> None:
    """Hold the fields of a frozen dataclass against their ranges."""
    kind = type(instance)
    for name, parameter in parameters(kind).items():
        object.__setattr__(instance, name, parameter.accept(kind.__name__, name, getattr(instance, name)))
