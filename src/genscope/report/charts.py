"""Charts of the declared figures: numbers with their intervals in, a Matplotlib figure of any width out."""

import itertools
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from genscope.lab import Crossing, Curves, Line, Mean, Median, Plateau, Reference, Scatter, Smallest, Success
from genscope.lab.results.reduction import Rates, ReducedSeries
from genscope.lab.statistics.scaling import Fits
from genscope.lab.statistics.threshold import share_of, words_of
from genscope.report import words
from genscope.report.arrays import Bundle
from genscope.report.axes import DASHES, legend, levels, log_ticks, panels, plain, shade, ticks
from genscope.report.layout import ChartLayout
from genscope.report.looks import Look, looks, said
from genscope.report.marks import marks, places
from genscope.report.svg import INK, MUTED, PAPER, WIDTH, canvas, styled


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


@styled
def line(figure: Line, series: Sequence[ReducedSeries], width: float = WIDTH) -> Canvas:
    """Marks with intervals, fitted laws, reference curves and published values against an axis."""
    drawing = canvas(_height(width), width, ChartLayout())
    axes = drawing.subplots()
    draw_line(axes, figure, series)
    legend(drawing, [axes], _title(figure), [mark for each in series for mark in each.marks])
    return drawing


def draw_line(axes: Axes, figure: Line, series: Sequence[ReducedSeries], *, joined: bool = True) -> None:
    """A line figure without its legend."""
    _scales(axes, figure)
    names = dict.fromkeys([*(each.name for each in series), *(point.by for point in figure.published if point.by)])
    found = looks(figure.by, list(names))
    for row, (each, at) in enumerate(zip(series, places(series), strict=True)):
        fit = each.fits
        fitted = fit is not None and bool(fit.laws)
        told = {"name": said(each.name, figure), "joined": joined and not fitted, "runs": figure.runs}
        marks(axes, each, found[each.name], at, **told, row=row)
        if fit is not None and fitted:
            _laws(axes, figure, fit, found[each.name], said(each.name, figure))
    _published(axes, figure, found)
    _references(axes, figure, {mark.x for each in series for mark in each.marks})
    if figure.trivial is not None:
        shade(axes, figure.trivial)
    levels(axes, figure.levels)
    axes.set_xlabel(figure.label(figure.x))
    axes.set_ylabel(reduced_label(figure))
    ticks(axes, [mark.x for each in series for mark in each.marks])
    if not figure.log_y:
        least, most = axes.get_ylim()
        axes.set_ylim(min(0, least), most + 0.05 * max(0, least))  # from 0 on, with room above a lone mark


def _references(axes: Axes, figure: Line, measured: Collection[Any]) -> None:
    """Curves to compare with, as far as the measured and the published values reach."""
    at = [float(x) for x in (*measured, *(point.x for point in figure.published)) if isinstance(x, int | float)]
    for reference, dashes in zip(figure.references, itertools.cycle(DASHES), strict=False):
        x, y = _within(reference, min(at), max(at)) if len({*at}) > 1 else (reference.x, reference.y)
        axes.plot(x, y, color=MUTED, linewidth=1.4, linestyle=dashes, label=reference.name)


def _within(reference: Reference, low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    """The part of a curve between two places, with its values there, between which it is straight in log x."""
    x, y = np.array(reference.x, dtype=float), np.array(reference.y, dtype=float)
    bend = np.log if x.min() > 0 and low > 0 else np.asarray
    ends = np.clip([low, high], x.min(), x.max())
    inside = (x > ends[0]) & (x < ends[1])
    places_ = np.concatenate([ends[:1], x[inside], ends[1:]])
    return places_, np.interp(bend(places_), bend(x), y)


def _published(axes: Axes, figure: Line, found: dict[str, Look]) -> None:
    """Hollow stars, in the color of their series."""
    for name, points in itertools.groupby(figure.published, key=lambda point: point.label):
        drawn = list(points)
        colour = found[drawn[0].by].colour if drawn[0].by in found else INK
        look = {"color": colour, "markerfacecolor": PAPER, "markersize": 11, "linestyle": DASHES[1], "linewidth": 1}
        told = name.replace(drawn[0].by, said(drawn[0].by, figure)) if drawn[0].by else name
        axes.plot([point.x for point in drawn], [point.y for point in drawn], marker="*", label=told, zorder=5, **look)


@styled
def scatter(figure: Scatter, series: Sequence[ReducedSeries], width: float = WIDTH) -> Canvas:
    """One mark per trial."""
    drawing = canvas(_height(width), width, ChartLayout())
    axes = drawing.subplots()
    draw_scatter(axes, figure, series)
    legend(drawing, [axes], _title(figure), [mark for each in series for mark in each.marks])
    return drawing


def draw_scatter(axes: Axes, figure: Scatter, series: Sequence[ReducedSeries]) -> None:
    """A scatter without its legend."""
    _scales(axes, figure)
    found = looks(figure.by, [each.name for each in series])
    for row, (each, at) in enumerate(zip(series, places(series), strict=True)):
        marks(axes, each, found[each.name], at, name=said(each.name, figure), joined=False, row=row)
    if figure.diagonal:
        ends = _shared_ends(axes)
        axes.plot(ends, ends, color=MUTED, linewidth=1.2, linestyle=DASHES[0], label="equal", zorder=1)
        axes.set(xlim=ends, ylim=ends)  # a line to the corners, and no second margin
    axes.set_xlabel(figure.label(figure.x))
    axes.set_ylabel(figure.label(figure.y))
    ticks(axes, [mark.x for each in series for mark in each.marks])


def _shared_ends(axes: Axes) -> tuple[float, float]:
    """Limits that serve both axes, with room around marks of which all lie at one end of the other axis."""
    scale = axes.xaxis.get_transform()
    low, high = scale.transform(
        [min(axes.get_xlim()[0], axes.get_ylim()[0]), max(axes.get_xlim()[1], axes.get_ylim()[1])]
    )
    room = 0.04 * (high - low)
    first, last = scale.inverted().transform([low - room, high + room])
    return float(first), float(last)


@styled
def success(figure: Success, rates: Sequence[Rates], width: float = WIDTH) -> Canvas:
    """Success rates with Wilson intervals, the fitted curve, the level, and the threshold with its interval."""
    across = 3 if width > _NARROW else 2
    drawing, every = panels(
        [each.panel for each in rates], figure, figure.panel, width=width, height=190, columns=across
    )
    names = list(dict.fromkeys(each.name for each in rates))
    found = looks(figure.by, names)
    level, of_plateau = share_of(figure.crossing.level)
    for axes in every.values():
        if not of_plateau:
            axes.axhline(level, color=MUTED, linewidth=1, linestyle=DASHES[1])
        axes.set_ylim(-0.04, 1.04)
        axes.yaxis.set_major_locator(ticker.FixedLocator(sorted({0, 0.5, level, 1})))
        axes.yaxis.set_major_formatter(ticker.PercentFormatter(1, 0))
        if figure.log_x:
            log_ticks(axes, "x")
    for each in rates:
        draw_rates(every[each.panel], each, found[each.name], names.index(each.name), said(each.name, figure))
    drawing.supxlabel(figure.label(figure.crossing.axis), fontsize=12.5)
    drawing.supylabel(figure.label(figure.crossing.outcome), fontsize=12.5, x=4 / width)
    legend(drawing, every.values(), _title(figure))
    return drawing


def draw_rates(axes: Axes, each: Rates, look: Look, row: int, name: str = "") -> None:
    """The shares of one panel and one color, with the threshold in words."""
    colour, found = look.colour, each.threshold
    shares, ends = [share for share, *_ in each.shares], [end for _, *end in each.shares]
    if found.size is not None:
        low, high = found.low or min(each.sizes), found.high or max(each.sizes)
        axes.axvspan(low, high, color=colour, alpha=0.14, linewidth=0)
        axes.axvline(found.size, color=colour, linewidth=1)
    sizes = np.geomspace(min(each.sizes), max(each.sizes), 80)
    axes.plot(sizes, found.probability(sizes), color=colour, linewidth=1.4)
    axes.vlines(each.sizes, *zip(*ends, strict=True), color=colour, linewidth=1.1)
    axes.plot(each.sizes, shares, look.marker, color=colour, markersize=4.5, label=name)
    shown, ends = words.measured(found.size, found.low, found.high)
    told = f"{shown} {ends}" if found.size is not None else "no threshold" if found.state == "plateau" else ends
    spot = {"xy": (1, 0.06 + 0.13 * row), "xycoords": "axes fraction", "ha": "right"}
    axes.annotate(told, **spot, color=colour, fontsize=11)


@styled
def curves(figure: Curves, bundles: Sequence[Bundle], width: float = WIDTH) -> Canvas:
    """Every run thin, the median bold if there is one, named levels; a cross where a run stopped being a number."""
    across = 2 if width > _NARROW else 1
    drawing, every = panels(
        [each.facet for each in bundles], figure, figure.facet, width=width, height=270, columns=across
    )
    found = looks(figure.by, list(dict.fromkeys(each.name for each in bundles)))
    for each in bundles:
        draw_bundle(every[each.facet], each, found[each.name])
    for axes in every.values():
        axes.margins(x=0.02)
        if figure.log_x:
            log_ticks(axes, "x")
        axes.xaxis.set_major_formatter(plain)
        levels(axes, figure.levels)
    drawing.supxlabel(figure.label(figure.x), fontsize=12.5)
    drawing.supylabel(figure.quantity, fontsize=12.5, x=4 / width)
    legend(drawing, every.values(), _title(figure))
    return drawing


def draw_bundle(axes: Axes, each: Bundle, chosen: Look) -> None:
    """The curves of one facet and one color."""
    colour = chosen.colour
    look: dict[str, Any] = {"linewidth": 1.1} if each.median is None else {"linewidth": 0.8, "alpha": 0.45}
    for number, (x, y) in enumerate(each.curves):
        if each.median is None or len(each.curves) > 1:
            named = each.median is None and number == 0
            axes.plot(x, y, color=colour, label=said(each.name) if named else "", **look)
        ended = np.flatnonzero(~np.isfinite(y))
        if ended.size and ended[0] > 0:
            axes.plot(x[ended[0] - 1], y[ended[0] - 1], "x", color=colour, markersize=7, markeredgewidth=1.8)
    if each.median is not None:
        axes.plot(*each.median, color=colour, linewidth=2.2, label=said(each.name))


_NARROW = 500  # pixels, below which panels go below each other


def _height(width: float) -> float:
    return 390 if width > _NARROW else 300


def _title(figure: Line | Scatter | Success | Curves) -> str:
    """What the colors tell apart, in words; nothing where the series have no axis in common."""
    return figure.label(figure.by) if figure.by else ""


def _scales(axes: Axes, figure: Line | Scatter) -> None:
    if figure.log_x:
        log_ticks(axes, "x")
    if figure.log_y:
        log_ticks(axes, "y")


def _laws(axes: Axes, figure: Line, fit: Fits, look: Look, name: str) -> None:
    """The best law with the band of its interval; its rivals dashed, with what they are behind."""
    low, high = min(fit.lengths), max(fit.lengths)
    lengths = np.geomspace(low, high, 60) if figure.log_x else np.linspace(low, high, 60)
    prefix = f"{name}: " if name else ""
    for law, dashes in zip(sorted(figure.laws, key=lambda law: law != fit.best), ("-", *DASHES), strict=False):
        sizes, least, most = zip(*(fit.laws[law].predict(length) for length in lengths), strict=True)
        if law == fit.best:
            axes.fill_between(lengths, least, most, color=look.colour, alpha=0.13, linewidth=0)
        behind = "best fit" if law == fit.best else f"{fit.lead(str(fit.best), law):.1f} behind"
        style = {"linewidth": 1.5 if law == fit.best else 1.1, "linestyle": dashes}
        axes.plot(lengths, sizes, color=look.colour, label=f"{prefix}{law} law, {behind}", **style)
