"""A declared figure and the records of its study, made into a drawing, notes and tables.

Guarantee: exact; what a drawing cannot show as a number is named in its notes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from genscope.lab import Crossing, Curves, Figure, Heatmap, Line, Plateau, Reading, Scatter, Success
from genscope.lab.results.reduction import Mark, Rates, Series, lines, points, success
from genscope.report import arrays, charts, words
from genscope.report.arrays import Bundle
from genscope.report.heatmap import heatmap


@dataclass(frozen=True)
class WordTable:
    """Cells in words; the first of a row is its header."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Section:
    """A drawing as SVG text, or none; what to know about it; tables shown beside it, and one folded away."""

    svg: str | None = None
    notes: Sequence[str] = ()
    tables: Sequence[WordTable] = ()
    data: WordTable | None = None


def section(figure: Figure, reading: Reading, name: str) -> Section:
    """The drawing of a figure under the id `name`."""
    label = f"{figure.title}. The numbers are in the text and tables that follow."
    made = None
    match figure:
        case Line():
            made = _line(figure, lines(figure, reading), name, label)
        case Success():
            made = _success(figure, success(figure, reading), name, label)
        case Curves():
            made = _curves(figure, arrays.curves(figure, reading.frame), name, label)
        case Heatmap():
            made = _heatmap(figure, reading.frame, name, label)
        case Scatter():
            made = _scatter(figure, points(figure, reading.frame), name, label)
    return made or Section(notes=("No finished trial has what this figure shows.",))


def _line(figure: Line, series: Sequence[Series], name: str, label: str) -> Section | None:
    if not any(each.marks for each in series):
        return None
    svg = charts.line(figure, series, name, label)
    by = [figure.label(figure.by)] if figure.by else []
    what = "threshold" if isinstance(figure.y, Crossing) else "plateau" if isinstance(figure.y, Plateau) else "value"
    header = [*by, figure.label(figure.x), what, "95 % interval", "trials", "remark"]
    rows = [
        [*([each.name] if by else []), words.value(mark.x), *_cells(mark)] for each in series for mark in each.marks
    ]
    if not any(row[-1] for row in rows):
        header, rows = header[:-1], [row[:-1] for row in rows]
    numbers = WordTable(charts.reduced_label(figure).capitalize(), header, rows)
    notes = [
        f"{each.name}: {each.fits.verdict}" if each.name else each.fits.verdict
        for each in series
        if each.fits is not None
    ]
    notes += [*_silent(series), *_off_axis(figure, series)]
    notes += _left_out(sum(mark.missing for each in series for mark in each.marks))
    if isinstance(figure.y, Crossing | Plateau):  # its table is in sight and has the remarks
        return Section(svg, notes, [numbers, *_laws("".join(by), series)])
    remarks = [_place(figure, each, mark) + mark.words for each in series for mark in each.marks if mark.words]
    return Section(svg, remarks + notes, data=numbers)


def _cells(mark: Mark) -> list[str]:
    shown = words.measured(mark.y if mark.state == "measured" else None, mark.low, mark.high)
    if mark.state == "none" and mark.low is not None:
        shown = "none", f"none up to {words.number(mark.low)}"
    vacuous = "vacuous" if mark.says_nothing else f"{mark.vacuous} of {mark.trials} vacuous" if mark.vacuous else ""
    remark = "; ".join(filter(None, [mark.words, vacuous, f"{mark.missing} without a value" if mark.missing else ""]))
    return [*shown, str(mark.trials), remark]


def _place(figure: Line, series: Series, mark: Mark) -> str:
    where = f"{figure.label(figure.x)} = {words.value(mark.x)}"
    return f"{where}, {series.name}: " if series.name else f"{where}: "


def _left_out(missing: int) -> list[str]:
    return [f"Trials without such a value, which are not in the drawing: {missing}."] if missing else []


def _silent(series: Sequence[Series]) -> list[str]:
    marks = [mark for each in series for mark in each.marks]
    vacuous = sum(mark.says_nothing for mark in marks)
    said = f"Vacuous, saying no more than is known without them: {vacuous} of {len(marks)}, small and on dotted lines."
    return [said] if vacuous else []


def _off_axis(figure: Line | Scatter, series: Sequence[Series]) -> list[str]:
    """What a logarithmic axis has no place for."""
    marks = [mark for each in series for mark in each.marks if mark.y is not None]
    low = sum(mark.not_positive for mark in marks) if figure.log_y else 0
    left = sum(isinstance(mark.x, int | float) and mark.x <= 0 for mark in marks) if figure.log_x else 0
    reach = f"Numbers or intervals that reach 0 or less, with an arrowhead at the lower edge: {low}."
    absent = f"Points that are not in the drawing because {figure.label(figure.x)} is not positive: {left}."
    return [*([reach] if low else []), *([absent] if left else [])]


def _laws(by: str, series: Sequence[Series]) -> list[WordTable]:
    """The fitted laws with their numbers, and how far each is behind the best."""
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
            rows.append([*([each.name] if by else []), f"{law.name}: {law.formula}", *numbers, *last])
    return [WordTable("Scaling laws fitted to the thresholds", header, rows)] if rows else []


def _success(figure: Success, rates: Sequence[Rates], name: str, label: str) -> Section | None:
    if not rates:
        return None
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
            *([each.name] if by else []),
            *(words.number(size), str(won), str(n), *words.measured(*share)),
        ]
        for each in rates
        for size, won, n, share in zip(each.sizes, each.successes, each.trials, each.shares, strict=True)
    ]
    notes = _left_out(sum(each.missing for each in rates))
    return Section(
        charts.success(figure, rates, name, label), notes, data=WordTable("Share of successes", header, rows)
    )


def _curves(figure: Curves, bundles: Sequence[Bundle], name: str, label: str) -> Section | None:
    if not any(each.curves for each in bundles):
        return None
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
    return Section(
        charts.curves(figure, bundles, name, label), notes, data=WordTable("Where the curves end", header, rows)
    )


def _heatmap(figure: Heatmap, frame: pl.DataFrame, name: str, label: str) -> Section | None:
    found = arrays.matrices(figure, frame)
    if found is None:
        return None
    matrices, marked, seed = found
    notes = [f"One trial is shown, that of seed {seed}."]
    header = ["panel", *(f"mean at {column}" for column in marked), "sum over these, mean", "mean elsewhere"]
    rows = []
    for panel, matrix in zip(figure.panels, matrices, strict=True):
        inside = matrix[:, list(marked)]
        outside = np.delete(matrix, list(marked), axis=1)
        numbers = [*inside.mean(axis=0), inside.sum(axis=1).mean(), outside.mean() if outside.size else np.nan]
        rows.append([panel.label, *(words.number(float(value)) for value in numbers)])
    data = WordTable("Marked columns", header, rows) if marked else None
    return Section(heatmap(figure, matrices, marked, name, label), notes, data=data)


def _scatter(figure: Scatter, series: Sequence[Series], name: str, label: str) -> Section | None:
    if not any(each.marks for each in series):
        return None
    notes = [*_off_axis(figure, series), *_left_out(sum(mark.missing for each in series for mark in each.marks))]
    return Section(charts.scatter(figure, series, name, label), notes)
