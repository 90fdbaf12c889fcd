"""What a run found, as facts for JSON and tables: thresholds, the laws they follow, shares of successes, failures.

Source: product.md, Section 5.
Departures: None.
Guarantee: exact; everything is read from the store, whoever computed it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from genscope.lab import Store, Study, preview, threshold
from genscope.lab.design import Where
from genscope.lab.reading import Reading, read
from genscope.lab.runner import Summary
from genscope.lab.scaling import fit_laws
from genscope.lab.study import Point
from genscope.lab.threshold import Threshold

Thresholds = Sequence[tuple[Point, Threshold]]


@dataclass(frozen=True)
class Request:
    """The part of a study that was asked for."""

    budget: str
    where: Where
    seeds: int | None = None
    seed: int | None = None


def expected(study: Study, request: Request, store: Store | None, threads: int | None = None) -> dict[str, Any]:
    """What a run would do, on so many threads or workers."""
    seen = preview(study, store=store, threads=threads, **vars(request))
    return {
        "study": study.name,
        "budget": request.budget,
        "points": seen.points,
        "trials": seen.trials,
        "most": seen.most,
        "stored": seen.stored,
        "seconds": seen.seconds,
        "measured": seen.measured,
    }


def findings(study: Study, request: Request, summary: Summary, store: Store) -> dict[str, Any]:
    """What a run found."""
    reading = read(study, store=store, **vars(request))
    found = _thresholds(study, request, reading)
    fits = _fits(found)
    facts = {
        "study": study.name,
        "trials": summary.trials,
        "new_trials": summary.computed,
        "thresholds": [{**point, **size.as_dict()} for point, size in found],
        "fit": next(iter(fits.values()), None),
    }
    if len(fits) > 1:
        facts["fits"] = fits
    return facts | {
        "points": [] if found else list(_points(study, reading.frame)),
        "stored": len(reading.frame),
        "failed": len(failed := _failed(reading.frame)),
        "error": failed["error"][0] if len(failed) else None,
        "warnings": [*warnings(reading.frame), *summary.stopped],
        "budget": request.budget,
        "seconds": summary.seconds,
        "store": store.url,
    }


def _thresholds(study: Study, request: Request, reading: Reading) -> Thresholds:
    """The thresholds of a search; with values for the searched axis, those that this grid gives."""
    search = study.plan(request.budget).search
    if search is None or len(set(request.where.get(search.axis, ()))) < 2:
        return reading.thresholds
    rows = reading.frame.filter(pl.col("status") == "ok")
    axes = [axis for axis in study.axes() if axis in rows.columns and axis != search.axis]
    found = []
    for values, cell in _cells(rows, axes):
        outcomes = cell.group_by(search.axis).agg(pl.col(search.outcome).sum(), pl.len().alias("number"))
        counts = {size: (successes, number) for size, successes, number in sorted(outcomes.rows())}
        found.append((values, threshold.estimate(search, counts)))
    return found


def _cells(frame: pl.DataFrame, axes: Sequence[str]) -> Iterator[tuple[dict[str, Any], pl.DataFrame]]:
    """The rows of each point, in the order of the frame."""
    if not axes:
        yield {}, frame
    else:
        for values, cell in frame.group_by(axes, maintain_order=True):
            yield dict(zip(axes, values, strict=True)), cell


def _fits(found: Thresholds) -> dict[str, Any]:
    """The laws over the context length (or the one numeric axis that varies), for each choice of the other axes."""
    axis = _law_axis([point for point, _ in found])
    if axis is None:
        return {}
    groups: dict[str, list[tuple[Any, Threshold]]] = {}
    for point, size in found:
        others = ", ".join(str(value) for name, value in point.items() if name != axis)
        groups.setdefault(others, []).append((point[axis], size))
    return {name: fit_laws(*zip(*group, strict=True)).as_dict() for name, group in groups.items()}


def _law_axis(points: Sequence[Point]) -> str | None:
    values: dict[str, set[Any]] = {}
    for point in points:
        for name, value in point.items():
            if type(value) in (int, float):
                values.setdefault(name, set()).add(value)
    lengths = [name for name, seen in values.items() if min(seen) > 0]
    varying = [name for name in lengths if len(values[name]) > 1]
    if "context_length" in lengths:
        return "context_length"
    return varying[0] if len(varying) == 1 else None


def _points(study: Study, frame: pl.DataFrame) -> Iterator[dict[str, Any]]:
    """Per point, the share of each Boolean value and the median of each number."""
    axes = [axis for axis in study.axes() if axis in frame.columns]
    reserved = {*axes, "seed", "seconds", "compile_seconds", "revision"}
    measured = [column for column in frame.get_columns() if column.name not in reserved]
    flags = [column.name for column in measured if column.dtype == pl.Boolean]
    numbers = [column.name for column in measured if column.dtype.is_numeric()]
    for values, cell in _cells(frame, axes):
        yield {
            **values,
            "trials": len(cell),
            "failed": len(_failed(cell)),
            "shares": {name: cell[name].mean() for name in flags},
            "medians": {name: cell[name].median() for name in numbers},
        }


def _failed(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.filter(pl.col("status") == "failed")


def warnings(frame: pl.DataFrame) -> Iterator[str]:
    """What a reader of the numbers should know: trials that raised, diverged or measured no number."""
    failed = _failed(frame)
    if len(failed):
        said = (failed["error"][0] or "").strip().splitlines() or ["nothing"]
        yield (
            f"{len(failed)} of {len(frame)} trials raised an exception; the first says: {said[-1]} "
            "(--retry failed runs them again)"
        )
    if "diverged" in frame.columns and frame.schema["diverged"] == pl.Boolean and (number := frame["diverged"].sum()):
        yield f"{number} of {len(frame)} trials diverged"
    floats = [column for column in frame.get_columns() if column.dtype.is_float()]
    odd = frame.filter(pl.any_horizontal(*(~column.is_finite() for column in floats))) if floats else frame.clear()
    if len(odd):
        yield f"{len(odd)} of {len(frame)} trials measured a number that is not finite"
