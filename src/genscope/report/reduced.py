"""A declared figure with its numbers: what there is to draw, and the drawing of it at any width.

Guarantee: exact; a figure without a finished trial has no drawing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from genscope.lab import Curves, Figure, Group, Heatmap, Line, Reading, Scatter, Success
from genscope.lab.results.answers import answer
from genscope.lab.results.reduction import Mark, Rates, ReducedSeries, lines, points, success
from genscope.report import arrays, charts, words
from genscope.report.arrays import Bundle
from genscope.report.heatmap import draw_matrix, heatmap
from genscope.report.looks import looks


@dataclass(frozen=True)
class Matrices:
    """The matrices of one trial, its marked columns and its seed."""

    values: Sequence[np.ndarray]
    marked: Sequence[int]
    seed: int


Numbers = Sequence[ReducedSeries] | Sequence[Rates] | Sequence[Bundle] | Matrices


@dataclass(frozen=True)
class Reduced:
    """A figure that is no group, with its numbers; `draw` makes it of any width, `sketch` puts its gist on axes."""

    figure: Figure
    numbers: Any
    draw: Callable[[float], Canvas]
    sketch: Callable[[Axes], None]

    @property
    def heading(self) -> str:
        """The answer in words where the numbers give one, otherwise the title."""
        series = self.numbers if isinstance(self.figure, Line | Scatter) else _ends(self.figure, self.numbers)
        return (self.figure.answer and answer(self.figure.answer, series, words.rough)) or self.figure.title

    @property
    def lone(self) -> bool:
        """Whether its horizontal axis has one place only, so that words serve better than a drawing."""
        if not isinstance(self.figure, Line | Scatter):
            return False
        elsewhere = [point.x for point in self.figure.published] if isinstance(self.figure, Line) else []
        at = {mark.x for each in self.numbers for mark in each.marks} | {*elsewhere}
        return len(at) < 2


def _ends(figure: Figure, numbers: Any) -> list[ReducedSeries]:
    """What a heading may speak of where a figure is no line: the last points of curves, the mass of marked columns."""
    if isinstance(figure, Curves):
        return [
            ReducedSeries(
                f"{each.name if len(figure.y) > 1 or figure.by else ''} {words.number(each.facet)}".strip(),
                tuple(_mark(x[-1], y[-1]) for x, y in each.curves if len(y) and np.isfinite(y[-1])),
            )
            for each in numbers
        ]
    if isinstance(figure, Heatmap) and numbers.marked:
        return [ReducedSeries("marked", (_mark(0.0, numbers.values[0][:, numbers.marked].sum(axis=1).mean()),))]
    return []


def _mark(x: float, y: float) -> Mark:
    return Mark(float(x), float(y), None, None, 1)


def reduced(figure: Figure, reading: Reading) -> list[Reduced]:
    """The figure, or the figures of a group, as far as finished trials have what they show."""
    if isinstance(figure, Group):
        return [made for panel in figure.panels for made in reduced(panel, reading)]
    made = _reduced(figure, reading)
    return [] if made is None else [made]


def heading(figure: Figure, found: Sequence[Reduced]) -> str:
    """The first answer of a figure or of the panels of a group, otherwise its title."""
    return next((each.heading for each in found if each.heading != each.figure.title), figure.title)


def _reduced(figure: Figure, reading: Reading) -> Reduced | None:
    match figure:
        case Line():
            series = lines(figure, reading)
            if any(each.marks for each in series):
                return Reduced(
                    *(figure, series),
                    draw=lambda width: charts.line(figure, series, width),
                    sketch=lambda axes: charts.draw_line(axes, figure, series),
                )
        case Scatter():
            clouds = points(figure, reading.frame)
            if any(each.marks for each in clouds):
                return Reduced(
                    *(figure, clouds),
                    draw=lambda width: charts.scatter(figure, clouds, width),
                    sketch=lambda axes: charts.draw_scatter(axes, figure, clouds),
                )
        case Success():
            rates = success(figure, reading)
            if rates:
                return Reduced(
                    *(figure, rates),
                    draw=lambda width: charts.success(figure, rates, width),
                    sketch=lambda axes: _sketch_rates(axes, figure, rates),
                )
        case Curves():
            bundles = arrays.curves(figure, reading.frame)
            if any(each.curves for each in bundles):
                return Reduced(
                    *(figure, bundles),
                    draw=lambda width: charts.curves(figure, bundles, width),
                    sketch=lambda axes: _sketch_curves(axes, figure, bundles),
                )
        case Heatmap():
            found = arrays.matrices(figure, reading.frame)
            if found is not None:
                matrices = Matrices(*found)
                return Reduced(
                    *(figure, matrices),
                    draw=lambda width: heatmap(figure, matrices.values, matrices.marked, width),
                    sketch=lambda axes: draw_matrix(axes, matrices.values[0]),
                )
    return None


def _sketch_rates(axes: Axes, figure: Success, rates: Sequence[Rates]) -> None:
    """The last panel."""
    shown = [each for each in rates if each.panel == rates[-1].panel]
    found = looks(figure.by, [each.name for each in shown])
    for row, each in enumerate(shown):
        charts.draw_rates(axes, each, found[each.name], row)


def _sketch_curves(axes: Axes, figure: Curves, bundles: Sequence[Bundle]) -> None:
    """The last facet."""
    shown = [each for each in bundles if each.facet == bundles[-1].facet]
    found = looks(figure.by, [each.name for each in shown])
    for each in shown:
        charts.draw_bundle(axes, each, found[each.name])
    if figure.log_x:
        axes.set_xscale("log")
