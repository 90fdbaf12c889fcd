"""Axes of a drawing: scales, ticks in plain numbers, legends, small multiples, and what lies behind the marks.

Guarantee: exact; labels of ticks do not touch, and a legend explains every sign that occurs.
"""

import itertools
from collections.abc import Collection, Sequence
from typing import Any, Literal

import numpy as np
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D

from genscope.lab import Figure, Level
from genscope.lab.results.reduction import Mark
from genscope.report import words
from genscope.report.layout import ChartLayout
from genscope.report.svg import MUTED, PAPER, canvas

_LETTER = 6.2  # points that a letter of a note takes, about
DASHES = ((0, (5, 2.5)), (0, (1.5, 2)), (0, (6, 2, 1.5, 2)), (0, (9, 3)))


def log_ticks(axes: Axes, which: Literal["x", "y"]) -> None:
    """A logarithmic axis with ticks at 1, 2, 5, 10, ..., or at powers of ten alone, written as plain numbers."""
    axes.set(**{f"{which}scale": "log"})
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_locator(_LogTicks(axes if which == "x" else None))
    axis.set_major_formatter(plain)
    axis.set_minor_locator(ticker.NullLocator())


_EVEN = ticker.MaxNLocator(5, steps=[1, 2, 5, 10])


class _LogTicks(ticker.LogLocator):
    """As many ticks as their labels have room for; above each other they always have. Three at least if possible."""

    def __init__(self, beside: Axes | None) -> None:
        super().__init__()
        self._beside = beside

    def tick_values(self, vmin: float, vmax: float) -> Any:
        """Where the ticks of an axis from `vmin` to `vmax` are."""
        for each in ((1, 2, 5), (1, 3)) if vmax < 200 * vmin else ():
            self.set_params(subs=each)
            found = super().tick_values(vmin, vmax)
            if sum(vmin <= value <= vmax for value in found) < 3:  # a short axis is nearly even
                found = np.array([value for value in _EVEN.tick_values(vmin, vmax) if value > 0])
            if self._fit([value for value in found if vmin <= value <= vmax], vmax / vmin):
                return found
        self.set_params(subs=(1,))
        return super().tick_values(vmin, vmax)

    def _fit(self, shown: Sequence[float], span: float) -> bool:
        """Whether no label touches the next."""
        if self._beside is None:
            return True
        decade = self._beside.bbox.width / np.log10(span)
        return all(
            decade * np.log10(right / left) >= _LETTER * (len(plain(left)) + len(plain(right))) / 2 + 6
            for left, right in itertools.pairwise(shown)
        )


def plain(value: float, _: float | None = None) -> str:
    """The label of a tick."""
    if value and not 1e-4 <= abs(value) < 1e6:
        return words.power(value).removeprefix("1·")
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:g}"


def ticks(axes: Axes, values: Sequence[Any]) -> None:
    """Ticks in plain numbers, whole where the values are, at these if they are few, as far as labels have room."""
    named = labels(values)
    distinct = [] if named else sorted({value for value in values if value is not None})
    if named:
        axes.set_xticks(range(len(named)), named)
    else:
        whole = bool(distinct) and all(isinstance(value, int) for value in distinct)
        if whole and axes.get_xscale() == "linear":
            axes.xaxis.set_major_locator(ticker.MaxNLocator("auto", steps=[1, 2, 5, 10], integer=True))
        if whole and len(distinct) <= 10 and _cover(axes, distinct):
            axes.xaxis.set_major_locator(ticker.FixedLocator(_apart(axes, [float(value) for value in distinct])))
        axes.xaxis.set_major_formatter(plain)
    axes.yaxis.set_major_formatter(plain)


def _cover(axes: Axes, values: Sequence[float]) -> bool:
    """Whether ascending values reach over most of the axis, so that ticks at them tell all of it."""
    bottom = axes.get_ylim()[0]
    places = axes.transData.transform([(values[0], bottom), (values[-1], bottom)])[:, 0]
    return len(values) == 1 or bool(places[1] - places[0] > 0.6 * axes.bbox.width)


def labels(values: Sequence[Any]) -> list[str]:
    """The distinct values in order, if they are words."""
    return list(dict.fromkeys(value for value in values if isinstance(value, str)))


def _apart(axes: Axes, values: Sequence[float]) -> list[float]:
    """Ascending values, without those whose label would touch the one before."""
    places = axes.transData.transform([(value, axes.get_ylim()[0]) for value in values])[:, 0]
    kept: list[int] = []
    for number, place in enumerate(places):
        room = 7 * len(plain(values[number])) + 8
        if not kept or place - places[kept[-1]] >= max(room, 0.07 * axes.bbox.width):
            kept.append(number)
    return [values[number] for number in kept]


def panels(
    values: Sequence[Any], figure: Figure, column: str | None, *, width: float, height: float, columns: int
) -> tuple[Canvas, dict[Any, Axes]]:
    """Small axes side by side, one per distinct value, with common scales."""
    distinct = list(dict.fromkeys(values))
    columns = min(columns, len(distinct))
    rows = -(-len(distinct) // columns)
    drawing = canvas(rows * height * (1.4 if len(distinct) == 1 else 1) + 50, width, ChartLayout())
    every = drawing.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
    for axes in every[len(distinct) :]:
        axes.set_visible(False)
    for axes, value in zip(every, distinct, strict=False):
        axes.tick_params(labelbottom=True)
        if column is not None:
            axes.set_title(f"{figure.label(column)} = {plain(value) if isinstance(value, int | float) else value}")
    return drawing, dict(zip(distinct, every, strict=False))


def shade(axes: Axes, trivial: Level) -> None:
    """The value that is known without a bound, and what says no more than it; the line is always in the picture."""
    least, most = axes.get_ylim()
    log = axes.get_yscale() == "log"
    least, most = min(least, trivial.y / 2 if log else 0.0), max(most, trivial.y * (2 if log else 1.15))
    axes.set_ylim(least, most)
    said = f"{trivial.label}; vacuous above"
    if 2 * _LETTER * len(said) > axes.bbox.width:
        said = said.replace("; ", ";\n")
    right, above = _free_side(axes, trivial.y, said)
    axes.axhspan(trivial.y, most, color=MUTED, alpha=0.13, linewidth=0, zorder=0)
    axes.axhline(trivial.y, color=MUTED, linewidth=1.4, linestyle=DASHES[0])
    spot = {"xy": (right, trivial.y), "xycoords": axes.get_yaxis_transform(), "textcoords": "offset points"}
    shift = {"xytext": (-4 if right else 4, 3 if above else -3), "ha": "right" if right else "left"}
    shift["va"] = "bottom" if above else "top"
    axes.annotate(said, **spot, **shift, color=MUTED, fontsize=10.5)


def _free_side(axes: Axes, y: float, words: str) -> tuple[bool, bool]:
    """Whether words about a level stand at the right, and above it: where they meet the least of what is drawn."""
    inside = axes.transAxes.inverted()
    level = inside.transform(axes.transData.transform((axes.get_xlim()[1], y)))[1]
    lines = words.splitlines()
    long, high = _LETTER * max(map(len, lines)) / axes.bbox.width, 18 * len(lines) / axes.bbox.height
    paths = [inside.transform(line.get_transform().transform(line.get_xydata())) for line in axes.lines]
    steps = np.linspace(0, 1, 20)[:, None]
    dense = [start + steps * (end - start) for path in paths for start, end in itertools.pairwise(path)]
    dots = np.concatenate([np.empty((0, 2)), *paths, *dense])  # NaN, where nothing is drawn, meets nothing

    def met(side: tuple[bool, bool]) -> int:
        right, above = side
        across = dots[:, 0] > 1 - long if right else dots[:, 0] < long
        up = dots[:, 1] - level if above else level - dots[:, 1]
        return int((across & (up > 0) & (up < high)).sum())

    return min([(right, above) for right in (False, True) for above in (False, True)], key=met)


def levels(axes: Axes, listed: Sequence[Level]) -> None:
    """Horizontal lines with their names."""
    for level in listed:
        axes.axhline(level.y, color=MUTED, linewidth=1, linestyle=DASHES[1])
        spot = {"xy": (1, level.y), "xycoords": axes.get_yaxis_transform()}
        shift = {"xytext": (-2, 4), "textcoords": "offset points", "ha": "right"}
        axes.annotate(level.label, **spot, **shift, color=MUTED, fontsize=11)


def legend(drawing: Canvas, every: Collection[Axes], title: str, marks: Sequence[Mark] = ()) -> None:
    """Names above the drawing, in as many columns as their length allows."""
    entries = [zip(*axes.get_legend_handles_labels(), strict=True) for axes in every]
    named = {label: handle for handle, label in itertools.chain(*entries) if label}
    if any(mark.state in ("above", "below") for mark in marks):
        hollow = Line2D([], [], color=MUTED, marker="o", markerfacecolor=PAPER, linestyle="")
        named["limit: the arrow points to the value"] = hollow
    if any(mark.says_nothing for mark in marks):
        named["vacuous"] = Line2D(
            *([], []), color=MUTED, marker="o", markersize=4, markerfacecolor=PAPER, linestyle=DASHES[1]
        )
    if any(axes.get_yscale() == "log" for axes in every) and any(mark.not_positive for mark in marks):
        named["0 or less"] = Line2D([], [], color=MUTED, marker="v", linestyle="")
    if any(mark.y is None for mark in marks):
        named["no number (see below)"] = Line2D([], [], color=MUTED, marker="x", markeredgewidth=2, linestyle="")
    if named:
        width = 72 * drawing.get_figwidth()
        columns = max(1, min(4, int(width / (6.8 * max(map(len, named)) + 50))))
        about = {"title": title or None, "title_fontsize": 11.5, "alignment": "left"}
        place = {"loc": "upper left", "bbox_to_anchor": (0, 1), "borderaxespad": 0.4}
        drawing.legend(list(named.values()), list(named), **place, ncols=columns, **about)
        rows = -(-len(named) // columns) + bool(title)
        drawing.set_layout_engine(ChartLayout(18 * rows + 4))
        drawing.set_figheight(drawing.get_figheight() + 18 * rows / 72)  # the axes keep their height
