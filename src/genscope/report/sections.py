"""A declared figure and the records of its study, made into a drawing, notes and tables.

Source: None (house design).
Departures: None.
Guarantee: exact; what a drawing cannot show as a number is named in its notes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from genscope.estimate import wilson
from genscope.lab.figure import Crossing, Curves, Figure, Heatmap, Line, Scatter, Success
from genscope.lab.scaling import Fits, fit_laws
from genscope.lab.threshold import Search
from genscope.report import arrays, charts, reduce, words
from genscope.report.arrays import Bundle
from genscope.report.heatmap import heatmap
from genscope.report.reduce import Mark, Rates, Series


@dataclass(frozen=True)
class Table:
    """Cells in words; the first of a row is its header."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Section:
    """A drawing as SVG text, or none; what to know about it; tables shown beside it, and one folded away."""

    svg: str | None = None
    notes: Sequence[str] = ()
    tables: Sequence[Table] = ()
    data: Table | None = None


def section(figure: Figure, frame: pl.DataFrame, search: Search | None, name: str) -> Section:
    """The drawing of a figure under the id `name`, from the records of its study and the search that chose them."""
    label = f"{figure.title}. The numbers are in the text and tables that follow."
    made = None
    match figure:
        case Line():
            made = _line(figure, reduce.lines(figure, frame, search), name, label)
        case Success():
            made = _success(figure, reduce.success(figure, frame, search), name, label)
        case Curves():
            made = _curves(figure, arrays.curves(figure, frame), name, label)
        case Heatmap():
            made = _heatmap(figure, frame, name, label)
        case Scatter():
            made = _scatter(figure, reduce.points(figure, frame), name, label)
    return made or Section(notes=("No finished trial has what this figure shows.",))


def _line(figure: Line, series: Sequence[Series], name: str, label: str) -> Section | None:
    if not any(each.marks for each in series):
        return None
    fits = [_fit(figure, each) for each in series]
    svg = charts.line(figure, series, fits, name, label)
    by = [figure.label(figure.by)] if figure.by else []
    what = "threshold" if isinstance(figure.y, Crossing) else "value"
    header = [*by, figure.label(figure.x), what, "95 % interval", "trials", "remark"]
    rows = [
        [*([each.name] if by else []), words.value(mark.x), *_cells(mark)] for each in series for mark in each.marks
    ]
    if not any(row[-1] for row in rows):
        header, rows = header[:-1], [row[:-1] for row in rows]
    numbers = Table(charts.reduced_label(figure).capitalize(), header, rows)
    notes = [
        f"{each.name}: {fit.verdict}" if each.name else fit.verdict
        for each, fit in zip(series, fits, strict=True)
        if fit is not None
    ]
    notes += _left_out(sum(mark.missing for each in series for mark in each.marks))
    if isinstance(figure.y, Crossing):  # its table is in sight and has the remarks
        return Section(svg, notes, [numbers, *_laws("".join(by), series, fits)])
    remarks = [_place(figure, each, mark) + mark.words for each in series for mark in each.marks if mark.words]
    return Section(svg, remarks + notes, data=numbers)


def _fit(figure: Line, series: Series) -> Fits | None:
    """The laws, where they were asked for and the horizontal axis has lengths."""
    pairs = [(mark.x, mark.threshold) for mark in series.marks if mark.threshold is not None]
    if not figure.laws or not all(isinstance(x, int | float) and x > 0 for x, _ in pairs):
        return None
    return fit_laws([x for x, _ in pairs], [threshold for _, threshold in pairs])


def _cells(mark: Mark) -> list[str]:
    shown = words.measured(mark.y if mark.state == "measured" else None, mark.low, mark.high)
    if mark.state == "none" and mark.low is not None:
        shown = "none", f"none up to {words.number(mark.low)}"
    remark = "; ".join(filter(None, [mark.words, f"{mark.missing} without a value" if mark.missing else ""]))
    return [*shown, str(mark.trials), remark]


def _place(figure: Line, series: Series, mark: Mark) -> str:
    where = f"{figure.label(figure.x)} = {words.value(mark.x)}"
    return f"{where}, {series.name}: " if series.name else f"{where}: "


def _left_out(missing: int) -> list[str]:
    return [f"Trials without such a value, which are not in the drawing: {missing}."] if missing else []


def _laws(by: str, series: Sequence[Series], fits: Sequence[Fits | None]) -> list[Table]:
    """The fitted laws with their numbers, and how far each is behind the best."""
    header = [*([by] if by else []), "law", "a", "b", "log-likelihood", "behind", "p of the misfit"]
    rows = []
    for each, fit in zip(series, fits, strict=True):
        if fit is None:
            continue
        for law in fit.laws.values():
            numbers = [
                " ".join(words.measured(found["value"], found["low"], found["high"]))
                for found in law.parameters().values()
            ]
            behind = fit.lead(str(fit.best), law.name)
            last = [words.number(value) for value in (law.log_likelihood, behind, law.p_value)]
            rows.append([*([each.name] if by else []), f"{law.name}: {law.formula}", *numbers, *last])
    return [Table("Scaling laws fitted to the thresholds", header, rows)] if rows else []


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
            *(words.number(size), str(won), str(n), *words.measured(won / n, *wilson(won, n))),
        ]
        for each in rates
        for size, won, n in zip(each.sizes, each.successes, each.trials, strict=True)
    ]
    notes = _left_out(sum(each.missing for each in rates))
    return Section(charts.success(figure, rates, name, label), notes, data=Table("Share of successes", header, rows))


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
    return Section(charts.curves(figure, bundles, name, label), notes, data=Table("Where the curves end", header, rows))


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
    data = Table("Marked columns", header, rows) if marked else None
    return Section(heatmap(figure, matrices, marked, name, label), notes, data=data)


def _scatter(figure: Scatter, series: Sequence[Series], name: str, label: str) -> Section | None:
    if not any(each.marks for each in series):
        return None
    notes = _left_out(sum(mark.missing for each in series for mark in each.marks))
    return Section(charts.scatter(figure, series, name, label), notes)
