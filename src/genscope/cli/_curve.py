"""A bound told to people, and a bound along one of its arguments: as a table, as JSON, as a drawing.

Guarantee: exact up to rounding; a curve has its two ends and values in equal ratios between them (equal distances where
one end is 0).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from genscope.bounds import ALL, Bound
from genscope.bounds._parameters import STEPS, Number, Parameter
from genscope.cli._output import echo, print_table
from genscope.extras import need
from genscope.refusal import Refusal

_STEEP = 50  # ratio of the largest to the smallest value from which their axis is logarithmic

Curve = Sequence[tuple[float, Bound]]


@dataclass(frozen=True)
class Axis:
    """The argument that is varied, its meaning and its values."""

    name: str
    meaning: str
    values: tuple[float, ...]

    @staticmethod
    def parse(bound: str, text: str, known: Mapping[str, Parameter]) -> "Axis":
        """The axis of a text such as `points=100:1000000`."""
        word, _, ends = text.partition("=")
        name = word.strip().lstrip("-").replace("-", "_")
        numeric = {each: about for each, parameter in known.items() if isinstance(about := parameter.about, Number)}
        if name not in numeric:
            first = _dashed(next(iter(numeric)))
            raise Refusal(
                f"bound {bound} got --vary {text}: the options that can vary are {', '.join(map(_dashed, numeric))}. "
                f"Name one of them, as in --vary {first}=FROM:TO."
            )
        try:
            low, high = (float(end) for end in ends.split(":"))
        except ValueError:
            low = high = math.nan
        if not (math.isfinite(low) and math.isfinite(high) and 0 <= low < high):
            example = "100:1000000" if numeric[name].whole else "0.1:0.9" if numeric[name].high <= 1 else "0.1:10"
            raise Refusal(
                f"bound {bound} got --vary {text}: the range must go from a number to a larger one. Write --vary "
                f"{_dashed(name)}=FROM:TO, as in --vary {_dashed(name)}={example}."
            )
        about = numeric[name]
        return Axis(name, about.meaning, about.between(low, high, STEPS))


def _dashed(name: str) -> str:
    return name.replace("_", "-")


def print_bound(bound: Bound) -> None:
    """A bound: its terms, its sum, and how far it can be trusted."""
    rows = [[name, _cell(value)] for name, value in bound.terms.items()]
    rows += [["sum", _cell(bound.value)]] if len(rows) > 1 else []
    print_table(_heading(bound), ["term", "value"], rows)
    if bound.choices:
        echo(f"Chosen: {', '.join(f'{name} = {_cell(value)}' for name, value in bound.choices.items())}.")
    echo(bound.trust)


def _heading(bound: Bound) -> str:
    """What the number is: the first line of the function's description, or the source of one that is not listed."""
    about = (ALL[bound.name].__doc__ or "").partition("\n")[0] if bound.name in ALL else bound.source
    return f"{bound.name}: {about.removesuffix('.')}"


def _cell(value: float) -> str:
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e15 and value == round(value) else f"{value:.7g}"


def print_curve(axis: Axis, curve: Curve) -> None:
    """A table with one row per value of the axis."""
    _, bound = curve[0]
    judged = bound.vacuous is not None
    rows = [
        [_cell(value), _cell(each.value), *(["yes" if each.vacuous else "no"] if judged else [])]
        for value, each in curve
    ]
    print_table(_heading(bound), [axis.name, "value", *(["vacuous"] if judged else [])], rows)
    echo(bound.proved)


def facts(axis: Axis, curve: Curve) -> dict[str, Any]:
    """The curve as one JSON object."""
    _, bound = curve[0]
    same = ("name", "kind", "explicit", "source")
    return {
        **{name: value for name, value in bound.facts().items() if name in same},
        "vary": axis.name,
        "curve": [
            {axis.name: value, **{name: part for name, part in each.facts().items() if name not in same}}
            for value, each in curve
        ],
    }


def draw(axis: Axis, curve: Curve, path: Path) -> None:
    """Draw the value of a bound against the axis, with the trivial value where there is one, and what is vacuous."""
    need("report", given=f"bound got --plot {path}")
    from matplotlib.figure import Figure

    from genscope.files import draft, picture_kind

    kind = picture_kind(path)
    finite = [(value, bound.value) for value, bound in curve if math.isfinite(bound.value)]
    _, bound = curve[0]
    label = "log covering number (nats)" if bound.trivial is None else bound.name
    figure = Figure(figsize=(7, 4.4), layout="constrained")
    axes = figure.add_subplot(xlabel=f"{axis.name.replace('_', ' ')}: {axis.meaning}", ylabel=label)
    axes.set_title(f"{bound.name} ({'explicit' if bound.explicit else 'order only'}; {bound.source})", fontsize=10)
    axes.plot([value for value, _ in finite], [value for _, value in finite], marker=".")
    if bound.trivial is not None:
        axes.axhline(bound.trivial, linestyle="--", color="gray", label="trivial bound")
        axes.legend()
    if all(value > 0 for value, _ in finite):
        axes.set_xscale("log")
    heights = [value for _, value in finite]
    if heights and 0 < _STEEP * min(heights) < max(heights):  # else a logarithm in the axis shows as a straight line
        axes.set_yscale("log")
    if bound.trivial is not None:  # last: a shade reaches to the end of the axis, and does not move it
        least, most = axes.get_ylim()
        ends = (least, bound.trivial) if bound.lower else (bound.trivial, most)
        if ends[0] < ends[1]:
            axes.axhspan(*ends, color="gray", alpha=0.13, linewidth=0, zorder=0)
        axes.set_ylim(least, most)
    axes.grid(alpha=0.3)
    with draft(path) as beside:
        figure.savefig(beside, format=kind)
