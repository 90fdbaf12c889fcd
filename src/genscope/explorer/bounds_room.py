"""The room Bounds: any bound with sliders for its arguments, its curves, its terms, and the command that prints it.

Guarantee: exact; every number is that of `genscope bound`, and the address of the page determines what it shows.
"""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from genscope import bounds
from genscope.explorer import _bound_asked, _bound_curve, asking
from genscope.explorer._bound_asked import AskedBound
from genscope.explorer._bound_examples import measure
from genscope.explorer.formulas import typeset
from genscope.explorer.room import Ask, Room
from genscope.papers import PAPERS
from genscope.refusal import Refusal

MOST = 4  # bounds in one view
_LONGEST = 1000  # characters of a bound in an address


def room(store: str) -> Room:
    """The room; bounds need no store."""
    return Room(
        name="bounds",
        title="Bounds",
        about="What theorems guarantee, term by term, and from which sample size they are informative.",
        questions={"view": view, "curve": curve, "example": example},
        page=page,
    )


@functools.cache  # all bounds are computed once, for their sources
def page() -> Mapping[str, Any]:
    """The bounds to choose from, under the papers they come from."""
    listed: dict[str, list[tuple[str, str]]] = {}
    for name, function in bounds.ALL.items():
        key = _bound(_bound_asked.first(name)).source.partition(",")[0]
        paper = PAPERS[key].title if key in PAPERS else "Other sources"
        listed.setdefault(paper, []).append((name, (function.__doc__ or "").partition("\n")[0]))
    return {"listed": listed, "most": MOST}


def example(ask: Ask) -> dict[str, Any]:
    """A bound at its example, and the axes that go with it."""
    name = asking.choice(ask, "name", list(bounds.ALL))
    asked = _bound_asked.first(name)
    return {"bound": asked.word(), "axes": _axes([asked])[:2]}


def view(ask: Ask) -> dict[str, Any]:
    """The bounds of a page: their fields, values, terms and commands, and the axes to draw them along."""
    listed = _listed(ask)
    return {"bounds": [_card(asked) for asked in listed], "axes": _axes(listed)}


def curve(ask: Ask) -> dict[str, Any]:
    """All bounds of a page along one argument."""
    listed = _listed(ask)
    axis = asking.choice(ask, "axis", [each["name"] for each in _axes(listed)])
    low, high = _bound_curve.read_span(asking.text(ask, "span", longest=80))
    lines = [_bound_curve.curve(asked, axis, low, high) for asked in listed]
    measures = list(dict.fromkeys(line["measure"] for line in lines if not line["error"]))
    vary = f"{axis}={low:.17g}:{high:.17g}"
    return {
        "axis": axis,
        "measures": measures,
        "lines": [
            line | {"name": asked.name, "command": asked.command(vary) if axis in asked.numbers else ""}
            for asked, line in zip(listed, lines, strict=True)
        ],
    }


def _listed(ask: Ask) -> list[AskedBound]:
    given = ask.get("bounds")
    if not isinstance(given, list) or not 1 <= len(given) <= MOST:
        raise Refusal(f"the request names no list of 1 to {MOST} bounds. Choose at least one and at most {MOST}.")
    texts = (asking.text({"bound": each}, "bound", longest=_LONGEST) for each in given)
    return [_bound_asked.read(text) for text in texts]


def _axes(listed: Sequence[AskedBound]) -> list[dict[str, Any]]:
    """The arguments of any of the bounds, sample size and context length first, with where their curves begin."""
    found: dict[str, dict[str, Any]] = {}
    for asked in listed:
        for axis in _bound_curve.axes(asked):
            low, high = _bound_curve.span(asked, axis)
            facts = {"name": axis, "label": axis.replace("_", " "), "span": f"{low:g}:{high:g}"}
            found.setdefault(axis, facts | {"rank": len(found)})
    return sorted(found.values(), key=lambda facts: (not _leading(facts["name"]), facts["rank"]))


def _leading(axis: str) -> bool:
    return axis in _bound_curve.LEADING


def _bound(asked: AskedBound) -> bounds.Bound:
    return asked.at(asked.values()[0])


def _card(asked: AskedBound) -> dict[str, Any]:
    values, wrong = asked.values()
    documented = (bounds.ALL[asked.name].__doc__ or "").strip()
    title, _, rest = documented.partition("\n")
    card = {
        "name": asked.name,
        "word": asked.word(),
        "title": title,
        "about": [typeset(" ".join(part.split())) for part in rest.split("\n\n") if part.strip()],
        "fields": _bound_asked.fields(asked, wrong),
        "error": "",
        "command": asked.command(),
    }
    if wrong:
        return card | {"error": "Correct the marked arguments."}
    try:
        bound = asked.at(values)
    except ValueError as error:  # arguments that do not fit together
        return card | {"error": str(error)}
    return card | {
        "value": bound.value,
        "shown": f"{bound.value:.7g}",
        "measure": measure(bound),
        "terms": [{"name": name, "value": value, "shown": f"{value:.7g}"} for name, value in bound.terms.items()],
        "choices": [f"{name} = {value:.7g}" for name, value in bound.choices.items()],
        "trust": bound.trust,
        "explicit": bound.explicit,
        "kind": bound.kind,
        "lower": bound.lower,
        "vacuous": bound.vacuous,
        "source": bound.source,
    }
