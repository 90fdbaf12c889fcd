"""A declared figure and the records of its study, made into a drawing, notes and tables.

Guarantee: exact; what a drawing cannot show as a number is named in its notes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import escape
from matplotlib.figure import Figure as Canvas

from genscope.lab import Crossing, Curves, Figure, Heatmap, Line, Plateau, Reading, Scatter, Success
from genscope.lab.results.reduction import FEW, Mark, Rates, ReducedSeries
from genscope.report import charts, words
from genscope.report.arrays import Bundle
from genscope.report.looks import said
from genscope.report.reduced import Matrices, Reduced, heading, reduced
from genscope.report.svg import PHONE, WIDTH, inline


@dataclass(frozen=True)
class WordTable:
    """Cells in words; the first of a row is its header."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Section:
    """A drawing as SVG text, or none; what to know about it; tables of thresholds and laws, and of what is drawn."""

    heading: str
    svg: str | None = None
    notes: Sequence[str] = ()
    tables: Sequence[WordTable] = ()
    data: Sequence[WordTable] = ()


@dataclass(frozen=True)
class _About:
    """What the text beside a drawing says."""

    notes: Sequence[str] = ()
    tables: Sequence[WordTable] = ()
    data: WordTable | None = None


def section(figure: Figure, reading: Reading, name: str) -> Section:
    """The drawing of a figure under the id `name`, wide and narrow; a sentence where an axis has one value only."""
    return section_of(figure, reduced(figure, reading), name)


def section_of(figure: Figure, found: Sequence[Reduced], name: str) -> Section:
    """The same of a figure whose numbers are there."""
    if not found:
        return Section(figure.title)
    headline = heading(figure, found)
    about = [_about(each) for each in found]
    drawn = [each for each in found if not each.lone]
    told = [sentence for each in found if each.lone for sentence in _sentences(each)]
    prefix = [f"{each.figure.title}: " if len(found) > 1 else "" for each in found]
    notes = [*told, *(f"{start}{note}" for start, each in zip(prefix, about, strict=True) for note in each.notes)]
    return Section(
        *(headline, _drawings(drawn, name) if drawn else None, notes),
        [table for each in about for table in each.tables],
        [each.data for each in about if each.data is not None],
    )


def _drawings(found: Sequence[Reduced], name: str) -> str:
    """One drawing for wide and one for narrow pages; several that stand side by side are narrow on both."""
    if len(found) > 1:
        drawn = (
            _svg(each, each.draw(PHONE), f"{name}{letter}") for each, letter in zip(found, "abcdefgh", strict=False)
        )
        parts = (
            f"<div><p>{_escaped(each.figure.title)}</p>{svg}</div>" for each, svg in zip(found, drawn, strict=False)
        )
        return f'<div class="side">{"".join(parts)}</div>'
    (one,) = found
    wide, narrow = (_svg(one, one.draw(width), f"{name}{mark}") for width, mark in ((WIDTH, ""), (PHONE, "n")))
    return f'<div class="roomy">{wide}</div><div class="tight">{narrow}</div>'


def _svg(each: Reduced, drawing: Canvas, name: str) -> str:
    return inline(drawing, name, f"{each.figure.title}. The numbers are in the text and tables that follow.")


def _escaped(text: str) -> str:
    return str(escape(text))


def _about(each: Reduced) -> _About:
    match each.figure:
        case Line():
            return _line(each.figure, each.numbers)
        case Success():
            return _success(each.figure, each.numbers)
        case Curves():
            return _curves(each.figure, each.numbers)
        case Heatmap():
            return _heatmap(each.figure, each.numbers)
        case Scatter():
            return _scatter(each.figure, each.numbers)
        case _:
            return _About()


def _sentences(each: Reduced) -> list[str]:
    """What a drawing with one place on its horizontal axis would show."""
    figure: Line | Scatter = each.figure  # pyright: ignore[reportAssignmentType]  # no other figure is lone
    told = []
    for series in each.numbers:
        known = [mark for mark in series.marks if mark.y is not None]
        if not known:
            continue
        where = f"{figure.label(figure.x)} = {words.value(known[0].x)}"
        who = f"{said(series.name, figure)}: " if series.name else ""
        told.append(f"{who}{'; '.join(map(_number, known))} ({where}).")
    return told


def _number(mark: Mark) -> str:
    """A number with its interval, or the single draws."""
    if 1 < len(mark.draws) < FEW:
        return ", ".join(map(words.number, sorted(mark.draws)))
    if mark.state == "above":  # the budget ended below the threshold, and y is where it is drawn
        return f"more than {words.number(mark.low)}"
    shown, interval = words.measured(mark.y, mark.low, mark.high)
    return shown if interval == "unknown" else f"{shown} {interval}"


def _line(figure: Line, series: Sequence[ReducedSeries]) -> _About:
    by = [figure.label(figure.by)] if figure.by else []
    what = "threshold" if isinstance(figure.y, Crossing) else "plateau" if isinstance(figure.y, Plateau) else "value"
    header = [*by, figure.label(figure.x), what, "95 % interval", "trials", "remark"]
    rows = [
        [*([said(each.name, figure)] if by else []), words.value(mark.x), *_cells(mark)]
        for each in series
        for mark in each.marks
    ]
    if not any(row[-1] for row in rows):
        header, rows = header[:-1], [row[:-1] for row in rows]
    numbers = WordTable(_capital(charts.reduced_label(figure)), header, rows)
    notes = [
        f"{said(each.name, figure)}: {each.fits.verdict}" if each.name else each.fits.verdict
        for each in series
        if each.fits is not None
    ]
    notes += [*_silent(series), *_off_axis(figure, series)]
    notes += _left_out(sum(mark.missing for each in series for mark in each.marks))
    if isinstance(figure.y, Crossing | Plateau):  # its table has the remarks
        return _About(notes, [numbers, *_laws(figure, series)])
    remarks = [_place(figure, each, mark) + mark.words for each in series for mark in each.marks if mark.words]
    return _About(remarks + notes, data=numbers)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _cells(mark: Mark) -> list[str]:
    shown = words.measured(mark.y if mark.state == "measured" else None, mark.low, mark.high)
    if mark.state == "none" and mark.low is not None:
        shown = "none", f"none up to {words.number(mark.low)}"
    elif shown[1] == "unknown" and 1 < len(mark.draws) < FEW:
        shown = shown[0], f"none; draws {', '.join(map(words.number, mark.draws))}"
    elif shown[1] == "unknown":
        shown = shown[0], "none"
    vacuous = "vacuous" if mark.says_nothing else f"{mark.vacuous} of {mark.trials} vacuous" if mark.vacuous else ""
    remark = "; ".join(filter(None, [mark.words, vacuous, f"{mark.missing} without a value" if mark.missing else ""]))
    return [*shown, str(mark.trials), remark]


def _place(figure: Line, series: ReducedSeries, mark: Mark) -> str:
    where = f"{figure.label(figure.x)} = {words.value(mark.x)}"
    return f"{where}, {said(series.name, figure)}: " if series.name else f"{where}: "


def _left_out(missing: int) -> list[str]:
    return [f"Trials without such a value, which are not in the drawing: {missing}."] if missing else []


def _silent(series: Sequence[ReducedSeries]) -> list[str]:
    marks = [mark for each in series for mark in each.marks]
    vacuous = sum(mark.says_nothing for mark in marks)
    told = f"Vacuous: {vacuous} of {len(marks)}, drawn small, on dotted lines."
    return [told] if vacuous else []


def _off_axis(figure: Line | Scatter, series: Sequence[ReducedSeries]) -> list[str]:
    """What a logarithmic axis has no place for."""
    marks = [mark for each in series for mark in each.marks if mark.y is not None]
    low = sum(mark.not_positive for mark in marks) if figure.log_y else 0
    left = sum(isinstance(mark.x, int | float) and mark.x <= 0 for mark in marks) if figure.log_x else 0
    reach = f"Numbers or intervals that reach 0 or less, with an arrowhead at the lower edge: {low}."
    absent = f"Points that are not in the drawing because {figure.label(figure.x)} is not positive: {left}."
    return [*([reach] if low else []), *([absent] if left else [])]


def _laws(figure: Line, series: Sequence[ReducedSeries]) -> list[WordTable]:
    """The fitted laws with their numbers, and how far each is behind the best."""
    by = figure.label(figure.by) if figure.by else ""
    header = [*([by] if by else []), "law", "a", "b", "log-likelihood", "behind", "p of the misfit"]
    rows = []
    for each, fit in ((each, each.fits) for each in series if each.fits is not None):
        for law in fit.laws.values():
            numbers = [
                " ".join(words.measured(found["value"], found["low"], found["high"]))
                for found in law.parameters().values()
            ]
            behind = fit.lead(str(fit.best), law.name)
            last = [words.number(value) for value in (law.log_likelihood, behind, law.p_value)]
            rows.append([*([said(each.name, figure)] if by else []), f"{law.name}: {law.formula}", *numbers, *last])
    return [WordTable("Scaling laws fitted to the thresholds", header, rows)] if rows else []


def _success(figure: Success, rates: Sequence[Rates]) -> _About:
    panel = figure.label(figure.panel) if figure.panel else ""
    by = figure.label(figure.by) if figure.by else ""
    header = [
        *filter(None, [panel, by]),
        figure.label(figure.crossing.axis),
        "successes",
        "trials",
        "share",
        "95 % interval",
    ]
    rows = [
        [
            *([words.value(each.panel)] if panel else []),
            *([said(each.name, figure)] if by else []),
            *(words.number(size), str(won), str(n), *words.measured(*share)),
        ]
        for each in rates
        for size, won, n, share in zip(each.sizes, each.successes, each.trials, each.shares, strict=True)
    ]
    notes = _left_out(sum(each.missing for each in rates))
    return _About(notes, data=WordTable("Share of successes", header, rows))


def _curves(figure: Curves, bundles: Sequence[Bundle]) -> _About:
    facet = figure.label(figure.facet) if figure.facet else ""
    rows = []
    for each in bundles:
        ends = [y[np.isfinite(y)][-1] for _, y in each.curves if np.isfinite(y).any()]
        cells = [words.number(float(end)) for end in (min(ends), np.median(ends), max(ends))] if ends else ["none"] * 3
        rows.append(
            [
                *([words.value(each.facet)] if facet else []),
                each.name or figure.quantity,
                str(len(each.curves)),
                *cells,
                str(each.diverged),
            ]
        )
    header = [
        *filter(None, [facet]),
        "curve",
        "runs",
        "lowest last value",
        "median last value",
        "highest last value",
        "diverged",
    ]
    diverged = sum(each.diverged for each in bundles)
    notes = (
        [f"Curves that end in numbers that are not finite: {diverged}; a cross marks the last finite one."]
        if diverged
        else []
    )
    notes += _left_out(sum(each.missing for each in bundles))
    return _About(notes, data=WordTable("Where the curves end", header, rows))


def _heatmap(figure: Heatmap, found: Matrices) -> _About:
    matrices, marked = found.values, found.marked
    notes = [f"One trial is shown, that of seed {found.seed}."]
    header = ["panel", *(f"mean at {column}" for column in marked), "sum over these, mean", "mean elsewhere"]
    rows = []
    for panel, matrix in zip(figure.panels, matrices, strict=True):
        inside = matrix[:, list(marked)]
        outside = np.delete(matrix, list(marked), axis=1)
        numbers = [*inside.mean(axis=0), inside.sum(axis=1).mean(), outside.mean() if outside.size else np.nan]
        rows.append([panel.label, *(words.number(float(value)) for value in numbers)])
    data = WordTable("Marked columns", header, rows) if marked else None
    return _About(notes, data=data)


def _scatter(figure: Scatter, series: Sequence[ReducedSeries]) -> _About:
    notes = [*_off_axis(figure, series), *_left_out(sum(mark.missing for each in series for mark in each.marks))]
    return _About(notes)
