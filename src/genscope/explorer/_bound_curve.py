"""A bound along one of its arguments: its terms, and where it stops being vacuous.

Guarantee: exact up to rounding at the values that the command line also takes; the place where a bound stops being
vacuous is exact for whole numbers and to six digits for others, if it changes once between two neighboring values.
"""

import itertools
import math
import time
from collections.abc import Callable
from typing import Any

from genscope.bounds import Bound
from genscope.bounds._parameters import STEPS, Number
from genscope.explorer import question_queue
from genscope.explorer._bound_asked import AskedBound
from genscope.explorer._bound_examples import LEADING, example, measure
from genscope.refusal import Refusal

SECONDS = 6.0  # of computing, after which a curve is given up
_CLOSE = 1e-7  # relative distance at which a bisection ends
_REACH = (100.0, 1000.0)  # factors from an example to the ends of its axis


def axes(asked: AskedBound) -> list[str]:
    """The arguments to vary, sample size and context length first."""
    leading = [word for word in LEADING if word in asked.numbers]
    return [*leading, *(word for word in asked.numbers if word not in leading)]


def span(asked: AskedBound, axis: str) -> tuple[float, float]:
    """Where the curve along an argument begins and ends unless told otherwise."""
    about, default = asked.numbers[axis], asked.known[axis].default
    middle = example(asked.name, axis) or (default if isinstance(default, int | float) and default else 1.0)
    low = max(middle / _REACH[0], about.low if about.closed[0] else math.nextafter(about.low, math.inf))
    high = min(middle * _REACH[1], about.high if about.closed[1] else about.high * 0.999)
    return float(f"{low:.3g}"), float(f"{high:.3g}")


def read_span(text: str) -> tuple[float, float]:
    """The ends in a text such as `100:1000000`."""
    try:
        low, high = (float(end) for end in text.split(":"))
    except ValueError:
        low = high = math.nan
    if not (math.isfinite(low) and math.isfinite(high) and 0 <= low < high):
        raise Refusal(f"got the axis {text!r}: it must go from a number to a larger one. Write it like 100:1000000.")
    return low, high


def curve(asked: AskedBound, axis: str, low: float, high: float) -> dict[str, Any]:
    """The values and terms of a bound along an argument; a flat line where it does not have this argument."""
    values, wrong = asked.values()
    wrong.pop(axis, None)
    if wrong:
        return {"error": "Correct the arguments first: " + " ".join(wrong.values())}
    deadline = time.thread_time() + SECONDS
    about = asked.numbers.get(axis)

    def at(value: float) -> Bound:
        question_queue.check()
        if time.thread_time() > deadline:
            raise TimeoutError(
                f"the curve of {asked.name} along {axis} takes more than {SECONDS:g} seconds. Choose smaller "
                "arguments, or let the command line print it."
            )
        return asked.at(values if about is None else values | {axis: about.accept(asked.name, axis, value)})

    places = (low, high) if about is None else about.between(low, high, STEPS)
    found: list[tuple[float, Bound]] = []
    refused = ""
    for place in places:
        try:
            found.append((place, at(place)))
        except TimeoutError:
            raise
        except ValueError as error:  # such as fewer points than dimensions: the rest of the curve stands
            refused = refused or str(error)
    if not found:
        return {"error": refused}
    _, sample = found[0]
    names = list(dict.fromkeys(name for _, bound in found for name in bound.terms))
    crossings = [] if about is None else _crossings(at, about, found)
    return {
        "error": "",
        "note": f"No curve where {refused}" if refused else "",
        "flat": about is None,
        "measure": measure(sample),
        "proved": sample.proved,
        "mark": "estimate" if sample.kind == "estimate" else "" if sample.explicit else "order only",
        "places": [place for place, _ in found],
        "values": [bound.value for _, bound in found],
        "terms": {name: [bound.terms.get(name) for _, bound in found] for name in names},
        "trivial": [bound.trivial for _, bound in found],
        "crossings": crossings,
        "vacuous": _regions(found, crossings),
        "said": _said(axis, found, crossings),
    }


def _crossings(at: Callable[[float], Bound], about: Number, found: list[tuple[float, Bound]]) -> list[float]:
    """The first values of the argument at which the bound becomes vacuous or stops being so."""
    if any(bound.vacuous is None for _, bound in found):
        return []
    changed = [(left, right) for (left, a), (right, b) in itertools.pairwise(found) if a.vacuous != b.vacuous]
    return [_bisect(at, about, left, right) for left, right in changed[:4]]


def _regions(found: list[tuple[float, Bound]], crossings: list[float]) -> list[tuple[float, float]]:
    """The stretches of the axis on which the bound is vacuous."""
    (first, start), (last, _) = found[0], found[-1]
    edges = [first, *crossings, last]
    stretches = itertools.pairwise(edges)
    return [stretch for number, stretch in enumerate(stretches) if bool(start.vacuous) == (number % 2 == 0)]


def _bisect(at: Callable[[float], Bound], about: Number, left: float, right: float) -> float:
    begins = at(left).vacuous
    while right - left > (1 if about.whole else _CLOSE * right):
        middle = math.sqrt(left * right) if left > 0 else (left + right) / 2
        if about.whole:
            middle = min(max(float(round(middle)), left + 1), right - 1)
            if middle in (left, right):  # beyond 2^53 neighbors are further apart than 1
                break
        left, right = (middle, right) if at(middle).vacuous == begins else (left, middle)
    return right


def _said(axis: str, found: list[tuple[float, Bound]], crossings: list[float]) -> str:
    word = axis.replace("_", " ")
    (_, start), (_, end) = found[0], found[-1]
    if start.vacuous is None:
        return "It is never called vacuous: there is no trivial bound to compare it with."
    known = f"the trivial bound is {end.trivial:.7g}"
    if not crossings:
        where = "Vacuous" if start.vacuous else "Nowhere vacuous"
        return f"{where} on this range: {known}."
    place = f"{crossings[0]:,.7g}"
    more = f" It changes {len(crossings)} times." if len(crossings) > 1 else ""
    how = f"stops being vacuous at {word} = {place}" if start.vacuous else f"becomes vacuous at {word} = {place}"
    return f"It {how}: {known}.{more}"
