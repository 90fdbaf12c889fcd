"""Marks of a series: numbers with intervals, single runs, arrows where a number is known from one side only.

Guarantee: exact; whatever a reduction hands over is drawn, a censored number as an arrow, a missing one as a cross,
what a logarithmic axis has no place for as an arrow at its lower edge. A point whose x has no such place is not drawn.
"""

import itertools
import math
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes

from genscope.lab.results.reduction import FEW, Mark, ReducedSeries
from genscope.report.axes import DASHES, labels
from genscope.report.looks import Look
from genscope.report.svg import PAPER


def places(series: Sequence[ReducedSeries]) -> list[list[float]]:
    """Where the marks of each series stand: at their numbers; words at 0, 1, ..., series a little apart."""
    rank: dict[Any, Any] = {
        word: place for place, word in enumerate(labels([mark.x for each in series for mark in each.marks]))
    }
    gap = 0.06 if rank else 0.0
    shifts = [gap * (number - (len(series) - 1) / 2) for number in range(len(series))]
    return [
        [float(rank.get(mark.x, math.nan if mark.x is None else mark.x)) + shift for mark in each.marks]
        for each, shift in zip(series, shifts, strict=True)
    ]


def marks(
    axes: Axes,
    series: ReducedSeries,
    look: Look,
    at_x: Sequence[float],
    *,
    name: str,
    joined: bool,
    runs: bool = False,
    row: int = 0,
) -> None:
    """Every mark of a series, joined by a line or not; a cross at the upper edge for one without a number."""
    colour, shape = look.colour, look.marker
    at = list(zip(at_x, series.marks, strict=True))
    if joined:
        known = [(x, mark.y, mark.says_nothing) for x, mark in at if mark.state == "measured" and mark.y is not None]
        _join(axes, known, colour)
    alike = _Alike(axes, colour)
    for x, mark in at:
        few = 0 < len(mark.draws) < FEW or (len(mark.draws) > 1 and mark.low is None and mark.high is None)
        if few or (runs and mark.draws):
            _draws(alike, x, mark, look, alone=few)
        if mark.y is not None and not (few and mark.state == "measured"):
            _mark(alike, x, mark, mark.y, shape)
    alike.draw(0.8 if runs else 1.6)
    axes.plot([], [], shape, color=colour, markersize=7, label=name)
    if nowhere := [x for x, mark in at if mark.y is None]:
        edge, heights = axes.get_xaxis_transform(), [0.97 - 0.05 * row] * len(nowhere)
        axes.plot(nowhere, heights, "x", color=colour, markersize=8, markeredgewidth=2, transform=edge)


class _Alike:
    """The signs of a series: those that look alike are drawn together, since each drawing on its own takes its time."""

    def __init__(self, axes: Axes, colour: str) -> None:
        self.axes, self.colour = axes, colour
        self.floor = 0.0 if axes.get_yscale() == "log" else -math.inf
        self._bars: list[tuple[float, float, float]] = []
        self._edge: list[float] = []
        self._signs: dict[tuple[tuple[str, Any], ...], list[tuple[float, float]]] = {}

    def bar(self, x: float, low: float, high: float) -> None:
        """A bar from one height to another."""
        self._bars.append((x, low, high))

    def sign(self, x: float, y: float, **look: Any) -> None:
        """A sign that looks like this."""
        self._signs.setdefault(tuple(look.items()), []).append((x, y))

    def below(self, x: float) -> None:
        """A hollow arrowhead on the lower edge, for what a logarithmic axis has no place for."""
        self._edge.append(x)

    def draw(self, width: float) -> None:
        """Draw the bars with lines of this width, and the signs on them."""
        x = [place for x, _, _ in self._bars for place in (x, x, math.nan)]
        y = [place for _, low, high in self._bars for place in (low, high, math.nan)]
        self.axes.plot(x, y, color=self.colour, linewidth=width, solid_capstyle="butt")
        for look, at in self._signs.items():
            self.axes.plot(*zip(*at, strict=True), linestyle="", color=self.colour, **dict(look))
        if self._edge:
            edge = {"markerfacecolor": PAPER, "transform": self.axes.get_xaxis_transform(), "clip_on": False}
            self.axes.plot(self._edge, [0] * len(self._edge), "v", color=self.colour, markersize=8, **edge)


def _draws(alike: _Alike, x: float, mark: Mark, look: Look, *, alone: bool) -> None:
    """The single runs behind a mark: dots, or where they stand for it, marks of its shape."""
    if alone:
        style: dict[str, Any] = {"marker": look.marker, "markersize": 4 if mark.says_nothing else 6, "alpha": 0.85}
        style |= {"markerfacecolor": PAPER} if mark.says_nothing else {}
    else:
        style = {"marker": "o", "markersize": 4.5, "alpha": 0.55, "markeredgewidth": 0}
    known = [value for value in mark.draws if value > alike.floor]
    for value in known:
        alike.sign(x, value, **style)
    if alone and len(known) < len(mark.draws):
        alike.below(x)


def _mark(alike: _Alike, x: float, mark: Mark, y: float, shape: str) -> None:
    """A bar from end to end of the interval; hollow where it is a limit, small where vacuous; arrows where it goes on.

    A logarithmic axis has no place for 0 and less: a bar that reaches there ends in an arrow at the lower edge, and a
    number that lies there is a hollow arrowhead on it.
    """
    axes, colour, floor = alike.axes, alike.colour, alike.floor
    ends = [end for end in (mark.low, y, mark.high) if end is not None]
    if max(ends) > floor:
        alike.bar(x, min(ends), max(ends))
    if y > floor:
        solid = mark.state == "measured" and not mark.says_nothing
        size = 4 if mark.says_nothing else 7
        alike.sign(x, y, marker=shape, markersize=size, markerfacecolor=colour if solid else PAPER)
    else:
        alike.below(x)
    if max(ends) > floor and (mark.state == "above" or (mark.high is None and mark.low is not None)):
        _arrow(axes, x, max(ends), +1, colour)
    if y > floor >= min(ends):
        edge = axes.get_xaxis_transform()
        axes.annotate(*("", (x, 0), (0, 24), edge, "offset points"), arrowprops=_head("-|>", colour))
    elif min(ends) > floor and (mark.state == "below" or (mark.low is None and mark.high is not None)):
        _arrow(axes, x, min(ends), -1, colour)


def _join(axes: Axes, known: Sequence[tuple[float, float, bool]], colour: str) -> None:
    """Lines between neighbors (x, y, vacuous), dotted where one of them is vacuous."""
    for dotted in (False, True):
        pairs = [pair for pair in itertools.pairwise(known) if dotted == any(vacuous for _, _, vacuous in pair)]
        x = [place for (left, _, _), (right, _, _) in pairs for place in (left, right, math.nan)]
        y = [place for (_, left, _), (_, right, _) in pairs for place in (left, right, math.nan)]
        axes.plot(x, y, color=colour, linewidth=1.2, alpha=0.5, linestyle=DASHES[1] if dotted else "-")


def _arrow(axes: Axes, x: float, y: float, way: int, colour: str) -> None:
    axes.annotate(
        *("", (x, y), (0, 26 * way), "data", "offset points"),
        arrowprops=_head("<|-", colour),
    )


def _head(style: str, colour: str) -> dict[str, Any]:
    return {"arrowstyle": style, "color": colour, "linewidth": 1.6, "shrinkA": 0, "shrinkB": 0}
