"""Array-valued records for curves and heat maps: runs side by side, their median, the matrices of one trial.

Guarantee: exact; a run without the array is counted in `missing`, one with numbers that are not finite in `diverged`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from genscope.lab import Curves, Heatmap
from genscope.lab.results.reduction import column, groups, name_of, shown


@dataclass(frozen=True)
class Bundle:
    """The curves of one facet and one color; `diverged` of them hold a number that is not finite."""

    facet: Any
    name: str
    curves: tuple[tuple[np.ndarray, np.ndarray], ...]
    median: tuple[np.ndarray, np.ndarray] | None
    diverged: int
    missing: int


def curves(figure: Curves, frame: pl.DataFrame) -> list[Bundle]:
    """Curves per facet and color, with their median if asked for, in which a run that ended keeps its last value."""
    found = []
    for facet, rows in groups(figure, shown(figure, frame), figure.facet):
        for name, cell in groups(figure, rows, figure.by):
            for value in figure.y:
                steps = [None] * cell.height if figure.every is not None else column(cell, figure.x)
                pairs = [_curve(figure, x, y) for x, y in zip(steps, column(cell, value), strict=True)]
                drawn = tuple(pair for pair in pairs if pair is not None)
                label = figure.label(value) if len(figure.y) > 1 else name_of(name)
                diverged = sum(not np.isfinite(y).all() for _, y in drawn)
                median = _median_curve(drawn) if figure.median else None
                found.append(Bundle(facet, label, drawn, median, diverged, len(pairs) - len(drawn)))
    return found


def matrices(figure: Heatmap, frame: pl.DataFrame) -> tuple[list[np.ndarray], tuple[int, ...], int] | None:
    """The matrices of one trial, the marked columns and the trial's seed; nothing when no trial has them."""
    frame = shown(figure, frame)
    names = [panel.value for panel in figure.panels]
    if not set(names) <= set(frame.columns):
        return None
    rows = frame.filter(pl.all_horizontal(pl.col(name).is_not_null() for name in names))
    if figure.seed is not None:
        rows = rows.filter(pl.col("seed") == figure.seed)
    if rows.is_empty():
        return None
    row = rows.sort("seed").row(0, named=True)
    marked = row.get(figure.marked) if figure.marked else None
    values = [np.atleast_2d(np.array(row[name], dtype=float)) for name in names]
    return values, tuple(int(column) for column in marked or ()), row["seed"]


def _curve(
    figure: Curves, steps: list[float] | None, values: list[float] | None
) -> tuple[np.ndarray, np.ndarray] | None:
    """Steps and values of one run; nothing if it recorded none."""
    if not values or (steps is None and figure.every is None):
        return None
    y = np.array(values, dtype=float)
    x = np.array(steps, dtype=float) if steps is not None else np.arange(len(y)) * (figure.every or 1)
    return x[: len(y)], y[: len(x)]


def _median_curve(curves: Sequence[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Median at every recorded step, each run keeping its last value; runs that are no number there do not enter."""
    if not curves:
        return np.zeros(0), np.zeros(0)
    steps = np.unique(np.concatenate([x for x, _ in curves]))
    held = np.full((len(curves), len(steps)), np.nan)
    for row, (x, y) in zip(held, curves, strict=True):
        last = np.searchsorted(x, steps, side="right") - 1
        row[last >= 0] = y[last[last >= 0]]
    held[~np.isfinite(held)] = np.nan
    known = ~np.isnan(held).all(axis=0)
    return steps[known], np.nanmedian(held[:, known], axis=0)
