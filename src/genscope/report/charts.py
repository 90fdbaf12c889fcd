"""Charts of the declared figures: numbers with their intervals in, SVG out.

Guarantee: exact; whatever a reduction hands over is drawn, a censored number as an arrow, a missing one as a cross,
what a logarithmic axis has no place for as an arrow at its lower edge. A point whose x has no such place is not drawn.
"""

import itertools
import math
from collections.abc import Collection, Sequence
from typing import Any, Literal

import numpy as np
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D

from genscope.lab import Crossing, Curves, Figure, Level, Line, Mean, Median, Plateau, Scatter, Smallest, Success
from genscope.lab.results.reduction import Mark, Rates, Series
from genscope.lab.statistics.scaling import Fits
from genscope.lab.statistics.threshold import share_of, words_of
from genscope.report import words
from genscope.report.arrays import Bundle
from genscope.report.svg import INK, MUTED, PAPER, SERIES, WIDTH, canvas, inline, styled

_MARKERS = "osD^vP"
_DASHES = ((0, (5, 2.5)), (0, (1.5, 2)), (0, (6, 2, 1.5, 2)), (0, (9, 3)))


def reduced_label(figure: Line) -> str:
    """What the vertical axis of a line shows, in words."""
    match figure.y:
        case Crossing(axis, _, level):
            return f"{figure.label(axis)} at which {words_of(level)} succeed"
        case Plateau(axis, outcome):
            return f"{figure.label(outcome)}, plateau in {figure.label(axis)}"
        case Smallest(axis, _, level):
            return f"smallest {figure.label(axis)} with {100 * level:g} % success"
        case Median(value, _):
            return f"{figure.label(value)}, median"
        case Mean(value, _):
            return figure.label(value)


def _colour(number: int) -> str:
    return SERIES[number % len(SERIES)]


@styled
def line(figure: Line, series: Sequence[Series], name: str, label: str) -> str:
    """Marks with intervals, fitted laws, reference curves and published values against an axis."""
    drawing = canvas(390)
    axes = drawing.subplots()
    _scales(axes, figure)
    places = _places(series, log=figure.log_x)
    for number, each in enumerate(series):
        fit = each.fits
        _marks(axes, each, number, places[number], joined=fit is None or not fit.laws)
        if fit is not None and fit.laws:
            _laws(axes, figure, fit, number, each.name)
    for reference, dashes in zip(figure.references, itertools.cycle(_DASHES), strict=False):
        axes.plot(reference.x, reference.y, color=MUTED, linewidth=1.4, linestyle=dashes, label=reference.name)
    if figure.trivial is not None:
        _shade(axes, figure.trivial)
    names = [each.name for each in series]
    for label_, points in itertools.groupby(figure.published, key=lambda point: point.label):
        drawn = list(points)
        colour = _colour(names.index(drawn[0].by)) if drawn[0].by in names else INK
        look = {"color": colour, "markerfacecolor": PAPER, "markersize": 13, "linestyle": _DASHES[1], "linewidth": 1}
        axes.plot(
            [point.x for point in drawn], [point.y for point in drawn], marker="*", label=label_, zorder=5, **look
        )
    _levels(axes, figure.levels)
    axes.set_xlabel(figure.label(figure.x))
    axes.set_ylabel(reduced_label(figure))
    _ticks(axes, [mark.x for each in series for mark in each.marks])
    if not figure.log_y:
        least, most = axes.get_ylim()
        axes.set_ylim(min(0, least), most + 0.05 * max(0, least))  # from 0 on, with room above a lone mark
    _legend(drawing, [axes], _title(figure), [mark for each in series for mark in each.marks])
    return inline(drawing, name, label)


def _shade(axes: Axes, trivial: Level) -> None:
    """The value that is known without a bound, and what says no more than it; the line is always in the picture."""
    least, most = axes.get_ylim()
    log = axes.get_yscale() == "log"
    least, most = min(least, trivial.y / 2 if log else 0.0), max(most, trivial.y * (2 if log else 1.15))
    axes.axhspan(trivial.y, most, color=MUTED, alpha=0.13, linewidth=0, zorder=0)
    axes.axhline(trivial.y, color=MUTED, linewidth=1.4, linestyle=_DASHES[0], label=f"{trivial.label}; vacuous above")
    axes.set_ylim(least, most)


@styled
def scatter(figure: Scatter, series: Sequence[Series], name: str, label: str) -> str:
    """One mark per trial."""
    drawing = canvas(390)
    axes = drawing.subplots()
    _scales(axes, figure)
    for number, (each, places) in enumerate(zip(series, _places(series, log=figure.log_x, apart=False), strict=True)):
        _marks(axes, each, number, places, joined=False)
    if figure.diagonal:
        ends = min(axes.get_xlim()[0], axes.get_ylim()[0]), max(axes.get_xlim()[1], axes.get_ylim()[1])
        axes.plot(ends, ends, color=MUTED, linewidth=1.2, linestyle=_DASHES[0], label="equal", zorder=1)
    axes.set_xlabel(figure.label(figure.x))
    axes.set_ylabel(figure.label(figure.y))
    _ticks(axes, [mark.x for each in series for mark in each.marks])
    _legend(drawing, [axes], _title(figure), [mark for each in series for mark in each.marks])
    return inline(drawing, name, label)


@styled
def success(figure: Success, rates: Sequence[Rates], name: str, label: str) -> str:
    """Success rates with Wilson intervals, the fitted curve, the level, and the threshold with its interval."""
    drawing, panels = _panels([each.panel for each in rates], figure, figure.panel, height=190)
    names = list(dict.fromkeys(each.name for each in rates))
    level, of_plateau = share_of(figure.crossing.level)
    for axes in panels.values():
        if not of_plateau:
            axes.axhline(level, color=MUTED, linewidth=1, linestyle=_DASHES[1])
        axes.set_ylim(-0.04, 1.04)
        axes.yaxis.set_major_locator(ticker.FixedLocator(sorted({0, 0.5, level, 1})))
        axes.yaxis.set_major_formatter(ticker.PercentFormatter(1, 0))
        if figure.log_x:
            _log_ticks(axes, "x")
    for each in rates:
        _rates(panels[each.panel], each, names.index(each.name))
    drawing.supxlabel(figure.label(figure.crossing.axis), fontsize=12.5)
    drawing.supylabel(figure.label(figure.crossing.outcome), fontsize=12.5)
    _legend(drawing, panels.values(), _title(figure))
    return inline(drawing, name, label)


def _rates(axes: Axes, each: Rates, number: int) -> None:
    colour, found = _colour(number), each.threshold
    shares, ends = [share for share, *_ in each.shares], [end for _, *end in each.shares]
    if found.size is not None:
        low, high = found.low or min(each.sizes), found.high or max(each.sizes)
        axes.axvspan(low, high, color=colour, alpha=0.14, linewidth=0)
        axes.axvline(found.size, color=colour, linewidth=1)
    sizes = np.geomspace(min(each.sizes), max(each.sizes), 80)
    axes.plot(sizes, found.probability(sizes), color=colour, linewidth=1.4)
    axes.vlines(each.sizes, *zip(*ends, strict=True), color=colour, linewidth=1.1)
    axes.plot(each.sizes, shares, _MARKERS[number % 6], color=colour, markersize=4.5, label=each.name)
    shown, ends = words.measured(found.size, found.low, found.high)
    told = f"{shown} {ends}" if found.size is not None else "no threshold" if found.state == "plateau" else ends
    spot = {"xy": (1, 0.06 + 0.13 * number), "xycoords": "axes fraction", "ha": "right"}
    axes.annotate(told, **spot, color=colour, fontsize=11)


@styled
def curves(figure: Curves, bundles: Sequence[Bundle], name: str, label: str) -> str:
    """Every run thin, the median bold if there is one, named levels; a cross where a run stopped being a number."""
    drawing, panels = _panels([each.facet for each in bundles], figure, figure.facet, height=270, columns=2)
    names = list(dict.fromkeys(each.name for each in bundles))
    for each in bundles:
        axes, colour = panels[each.facet], _colour(names.index(each.name))
        look: dict[str, Any] = {"linewidth": 1.1} if each.median is None else {"linewidth": 0.8, "alpha": 0.45}
        for number, (x, y) in enumerate(each.curves):
            if each.median is None or len(each.curves) > 1:
                named = each.median is None and number == 0
                axes.plot(x, y, color=colour, label=each.name if named else "", **look)
            ended = np.flatnonzero(~np.isfinite(y))
            if ended.size and ended[0] > 0:
                axes.plot(x[ended[0] - 1], y[ended[0] - 1], "x", color=colour, markersize=7, markeredgewidth=1.8)
        if each.median is not None:
            axes.plot(*each.median, color=colour, linewidth=2.2, label=each.name)
    for axes in panels.values():
        axes.margins(x=0.02)
        if figure.log_x:
            _log_ticks(axes, "x")
        axes.xaxis.set_major_formatter(_plain)
        _levels(axes, figure.levels)
    drawing.supxlabel(figure.label(figure.x), fontsize=12.5)
    drawing.supylabel(figure.quantity, fontsize=12.5)
    _legend(drawing, panels.values(), _title(figure))
    return inline(drawing, name, label)


def _levels(axes: Axes, levels: Sequence[Level]) -> None:
    for level in levels:
        axes.axhline(level.y, color=MUTED, linewidth=1, linestyle=_DASHES[1])
        spot = {"xy": (1, level.y), "xycoords": axes.get_yaxis_transform()}
        shift = {"xytext": (-2, 4), "textcoords": "offset points", "ha": "right"}
        axes.annotate(level.label, **spot, **shift, color=MUTED, fontsize=11)


def _title(figure: Line | Scatter | Success | Curves) -> str:
    """What the colours tell apart, in words; nothing where the series have no axis in common."""
    return figure.label(figure.by) if figure.by else ""


def _laws(axes: Axes, figure: Line, fit: Fits, number: int, name: str) -> None:
    """The best law with the band of its interval; its rivals dashed, with what they are behind."""
    low, high = min(fit.lengths), max(fit.lengths)
    lengths = np.geomspace(low, high, 60) if figure.log_x else np.linspace(low, high, 60)
    prefix = f"{name}: " if name else ""
    for law, dashes in zip(sorted(figure.laws, key=lambda law: law != fit.best), ("-", *_DASHES), strict=False):
        sizes, least, most = zip(*(fit.laws[law].predict(length) for length in lengths), strict=True)
        if law == fit.best:
            axes.fill_between(lengths, least, most, color=_colour(number), alpha=0.13, linewidth=0)
        behind = "best fit" if law == fit.best else f"{fit.lead(str(fit.best), law):.1f} behind"
        look = {"linewidth": 1.5 if law == fit.best else 1.1, "linestyle": dashes}
        axes.plot(lengths, sizes, color=_colour(number), label=f"{prefix}{law} law, {behind}", **look)


def _panels(
    values: Sequence[Any], figure: Figure, column: str | None, *, height: float, columns: int = 3
) -> tuple[Canvas, dict[Any, Axes]]:
    """Small axes side by side, one per distinct value, with common scales."""
    distinct = list(dict.fromkeys(values))
    columns = min(columns, len(distinct))
    rows = -(-len(distinct) // columns)
    drawing = canvas(rows * height * (1.4 if len(distinct) == 1 else 1) + 50)
    every = drawing.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
    for axes in every[len(distinct) :]:
        axes.set_visible(False)
    for axes, value in zip(every, distinct, strict=False):
        axes.tick_params(labelbottom=True)
        if column is not None:
            axes.set_title(f"{figure.label(column)} = {_plain(value) if isinstance(value, int | float) else value}")
    return drawing, dict(zip(distinct, every, strict=False))


def _marks(axes: Axes, series: Series, number: int, places: Sequence[float], *, joined: bool) -> None:
    """Every mark of a series, joined by a line or not; a cross at the upper edge for one without a number."""
    colour, shape = _colour(number), _MARKERS[number % len(_MARKERS)]
    at = list(zip(places, series.marks, strict=True))
    if joined:
        known = [(x, mark.y, mark.says_nothing) for x, mark in at if mark.state == "measured" and mark.y is not None]
        _join(axes, known, colour)
    for x, mark in at:
        if mark.y is not None:
            _mark(axes, x, mark, mark.y, colour, shape)
    axes.plot([], [], shape, color=colour, markersize=7, label=series.name)
    for x in (x for x, mark in at if mark.y is None):
        edge = axes.get_xaxis_transform()
        axes.plot([x], [0.97 - 0.05 * number], "x", color=colour, markersize=8, markeredgewidth=2, transform=edge)


def _mark(axes: Axes, x: float, mark: Mark, y: float, colour: str, shape: str) -> None:
    """A bar from end to end of the interval; hollow where none is known, small where vacuous; arrows where it goes on.

    A logarithmic axis has no place for 0 and less: a bar that reaches there ends in an arrow at the lower edge, and a
    number that lies there is a hollow arrowhead on it.
    """
    floor = 0.0 if axes.get_yscale() == "log" else -math.inf
    ends = [end for end in (mark.low, y, mark.high) if end is not None]
    if max(ends) > floor:
        axes.plot([x, x], [min(ends), max(ends)], color=colour, linewidth=1.6, solid_capstyle="butt")
    edge = axes.get_xaxis_transform()
    if y > floor:
        solid = mark.state == "measured" and len(ends) > 1 and not mark.says_nothing
        look = {"markersize": 4 if mark.says_nothing else 7, "markerfacecolor": colour if solid else PAPER}
        axes.plot([x], [y], shape, color=colour, **look)
    else:
        axes.plot([x], [0], "v", color=colour, markersize=8, markerfacecolor=PAPER, transform=edge, clip_on=False)
    if max(ends) > floor and (mark.state == "above" or (mark.high is None and mark.low is not None)):
        _arrow(axes, x, max(ends), +1, colour)
    if y > floor >= min(ends):
        axes.annotate(*("", (x, 0), (0, 24), edge, "offset points"), arrowprops=_head("-|>", colour))
    elif min(ends) > floor and (mark.state == "below" or (mark.low is None and mark.high is not None)):
        _arrow(axes, x, min(ends), -1, colour)


def _join(axes: Axes, known: Sequence[tuple[float, float, bool]], colour: str) -> None:
    """Lines between neighbours (x, y, vacuous), dotted where one of them is vacuous."""
    for dotted in (False, True):
        pairs = [pair for pair in itertools.pairwise(known) if dotted == any(vacuous for _, _, vacuous in pair)]
        x = [place for (left, _, _), (right, _, _) in pairs for place in (left, right, math.nan)]
        y = [place for (_, left, _), (_, right, _) in pairs for place in (left, right, math.nan)]
        axes.plot(x, y, color=colour, linewidth=1.2, alpha=0.5, linestyle=_DASHES[1] if dotted else "-")


def _arrow(axes: Axes, x: float, y: float, way: int, colour: str) -> None:
    axes.annotate(
        *("", (x, y), (0, 26 * way), "data", "offset points"),
        arrowprops=_head("<|-", colour),
    )


def _head(style: str, colour: str) -> dict[str, Any]:
    return {"arrowstyle": style, "color": colour, "linewidth": 1.6, "shrinkA": 0, "shrinkB": 0}


def _places(series: Sequence[Series], *, log: bool, apart: bool = True) -> list[list[float]]:
    """Where the marks of each series stand: at their numbers, or words at 0, 1, ...; series a little apart."""
    rank: dict[Any, Any] = {
        word: place for place, word in enumerate(_words([mark.x for each in series for mark in each.marks]))
    }
    plain = [
        [float(rank.get(mark.x, math.nan if mark.x is None else mark.x)) for mark in each.marks] for each in series
    ]
    known = [x for row in plain for x in row if math.isfinite(x) and (x > 0 or not log)] or [1.0]
    gap = 0.012 * apart * (math.log(max(known) / min(known)) if log else max(known) - min(known))
    shifts = [gap * (number - (len(series) - 1) / 2) for number in range(len(series))]
    return [[x * math.exp(shift) if log else x + shift for x in row] for row, shift in zip(plain, shifts, strict=True)]


def _words(values: Sequence[Any]) -> list[str]:
    """The distinct values in order, if they are words."""
    return list(dict.fromkeys(value for value in values if isinstance(value, str)))


def _scales(axes: Axes, figure: Line | Scatter) -> None:
    if figure.log_x:
        _log_ticks(axes, "x")
    if figure.log_y:
        _log_ticks(axes, "y")


def _log_ticks(axes: Axes, which: Literal["x", "y"]) -> None:
    """A logarithmic axis with ticks at 1, 2, 5, 10, ..., or at powers of ten alone, written as plain numbers."""
    axes.set(**{f"{which}scale": "log"})
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_locator(_LogTicks())
    axis.set_major_formatter(_plain)
    axis.set_minor_locator(ticker.NullLocator())


class _LogTicks(ticker.LogLocator):
    """As many ticks as their labels have room for."""

    def tick_values(self, vmin: float, vmax: float) -> Any:
        """Where the ticks of an axis from `vmin` to `vmax` are."""
        self.set_params(subs=(1, 2, 5) if vmax < 200 * vmin else (1,))
        return super().tick_values(vmin, vmax)


def _plain(value: float, _: float | None = None) -> str:
    if value and not 1e-4 <= abs(value) < 1e6:
        return words.power(value).removeprefix("1·")
    return f"{value:,.0f}".replace(",", "\u202f") if abs(value) >= 1000 else f"{value:g}"


def _ticks(axes: Axes, values: Sequence[Any]) -> None:
    """Ticks in plain numbers, at the measured values if these are few and whole, as far as their labels have room."""
    named = _words(values)
    distinct = [] if named else sorted({value for value in values if value is not None})
    if named:
        axes.set_xticks(range(len(named)), named)
    else:
        if 1 <= len(distinct) <= 10 and all(isinstance(value, int) for value in distinct):
            axes.xaxis.set_major_locator(ticker.FixedLocator(_apart(axes, [float(value) for value in distinct])))
        axes.xaxis.set_major_formatter(_plain)
    axes.yaxis.set_major_formatter(_plain)


def _apart(axes: Axes, values: Sequence[float]) -> list[float]:
    """Ascending values, without those whose label would touch the one before."""
    places = axes.transData.transform([(value, axes.get_ylim()[0]) for value in values])[:, 0]
    kept: list[int] = []
    for number, place in enumerate(places):
        if not kept or place - places[kept[-1]] >= 0.07 * axes.bbox.width:
            kept.append(number)
    return [values[number] for number in kept]


def _legend(drawing: Canvas, panels: Collection[Axes], title: str, marks: Sequence[Mark] = ()) -> None:
    """Names above the drawing, in as many columns as their length allows."""
    entries = [zip(*axes.get_legend_handles_labels(), strict=True) for axes in panels]
    named = {label: handle for handle, label in itertools.chain(*entries) if label}
    if any(mark.state in ("above", "below") for mark in marks):
        named["bounded on one side only"] = Line2D([], [], color=MUTED, marker="^", linestyle="")
    if any(mark.says_nothing for mark in marks):
        named["vacuous"] = Line2D(
            *([], []), color=MUTED, marker="o", markersize=4, markerfacecolor=PAPER, linestyle=_DASHES[1]
        )
    if any(axes.get_yscale() == "log" for axes in panels) and any(mark.not_positive for mark in marks):
        named["0 or less"] = Line2D([], [], color=MUTED, marker="v", linestyle="")
    if any(mark.y is None for mark in marks):
        named["no number (see below)"] = Line2D([], [], color=MUTED, marker="x", markeredgewidth=2, linestyle="")
    if named:
        columns = max(1, min(4, int(WIDTH / (6.8 * max(map(len, named)) + 50))))
        about = {"title": title or None, "title_fontsize": 11.5, "alignment": "left"}
        drawing.legend(list(named.values()), list(named), loc="outside upper left", ncols=columns, **about)
        rows = -(-len(named) // columns) + bool(title)
        drawing.set_figheight(drawing.get_figheight() + 18 * rows / 72)  # the axes keep their height
