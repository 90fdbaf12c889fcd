"""What a run found, as facts for JSON and tables: thresholds, the laws they follow, shares of successes, failures.

Guarantee: exact; everything is read from the store, whoever computed it.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from genscope.lab import BUDGETS, Preview, Selection, Store, Study, Summary, Trial, preview, read, select
from genscope.lab.results.again import again
from genscope.lab.results.cautions import cautions
from genscope.lab.results.mixtures import failed_trials
from genscope.lab.results.raised import own_line
from genscope.lab.statistics.threshold import words_of


def expected(selection: Selection, alone: Preview, workers: int) -> dict[str, Any]:
    """What a run would do on so many workers, by its preview for one."""
    seconds = None if alone.seconds is None else alone.seconds / workers
    facts = {name: getattr(alone, name) for name in ("points", "trials", "most", "stored")}
    measured = {"seconds": seconds, "measured": alone.measured}
    return {"study": selection.study, "budget": selection.budget, **facts, **measured}


def findings(study: Study, selection: Selection, summary: Summary, store: Store) -> dict[str, Any]:
    """What a run found."""
    reading = read(store, selection)
    found = reading.thresholds
    first = selection.search or selection.grid
    fits = {}
    for (name, level), fit in reading.laws.items():
        others = "" if first is None or level == first.levels[0] else f" at {words_of(level)}"
        fits[f"{name}{others}".strip()] = {**fit.as_dict(), "level": level}
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
        "failed": len(failed := failed_trials(reading.frame)),
        "error": failed["error"][0] if len(failed) else None,
        "failures": list(_failures(selection, failed, reading.failed)),
        "warnings": [*cautions(reading), *summary.remarks],
        "budget": selection.budget,
        "seconds": summary.seconds,
        "store": store.url,
    }


def next_step(
    study: Study, selection: Selection, thresholds: Sequence[Mapping[str, Any]], store: Store
) -> dict[str, Any] | None:
    """What resolves thresholds that are known from one side only: the next budget, and about how long it takes."""
    later = BUDGETS[BUDGETS.index(selection.budget) + 1 :] if selection.budget in BUDGETS else ()
    if not later or all(row["state"] in ("crossed", "plateau") for row in thresholds):
        return None
    command = selection.command.replace(f"--budget {selection.budget}", f"--budget {later[0]}", 1)
    if command == selection.command:
        return None
    whole = not any(option in command for option in ("--where", "--seed"))
    return {"command": command, "seconds": preview(store, select(study, later[0])).seconds if whole else None}


def _failures(selection: Selection, failed: pl.DataFrame, trials: Mapping[str, Trial]) -> Iterator[dict[str, Any]]:
    """Each error once: how many trials it ended, its whole text, and the command that meets the first of them again."""
    lines = pl.Series("_line", [own_line(text or "") for text in failed["error"]], pl.String)
    for (line,), group in failed.with_columns(lines).group_by("_line", maintain_order=True):
        name, text = group["id"][0], group["error"][0]
        said = {"error": line, "trials": group.height, "traceback": text}
        yield {**said, "again": f"{again(selection, trials.get(name), text)} --traceback"}


def _cells(frame: pl.DataFrame, axes: Sequence[str]) -> Iterator[tuple[dict[str, Any], pl.DataFrame]]:
    """The rows of each point, in the order of the frame."""
    if not axes:
        yield {}, frame
    else:
        for values, cell in frame.group_by(axes, maintain_order=True):
            yield dict(zip(axes, values, strict=True)), cell


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
            "failed": len(failed_trials(cell)),
            "shares": {name: cell[name].mean() for name in flags},
            "medians": {name: cell[name].median() for name in numbers},
        }
