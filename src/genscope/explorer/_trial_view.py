"""One trial for the eye: its numbers, its curves and its matrices, and the command that repeats it.

Departures: long curves are thinned and large matrices cut for the page, and say so; the store keeps everything.
Guarantee: exact for what is shown.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from genscope.lab import Curves, Figure, Heatmap, Selection, Trial
from genscope.lab.results.again import again
from genscope.report import words

LONGEST = 2000  # points of a curve
WIDEST = 400  # rows and columns of a matrix
SHORT = 12  # entries of a list that is written rather than drawn, unless a figure draws it


def facts(row: Mapping[str, Any], manifest: Mapping[str, Any], selection: Selection) -> dict[str, Any]:
    """The trial's values by what they look like; `selection` knows how its study is called."""
    axes = [axis for axis in manifest["axes"] if axis in row]
    point = {axis: row[axis] for axis in axes}
    own = ("seed", "status", "error", "seconds", "compile_seconds", "finished", "id", "provenance", "study", "revision")
    measured = {name: value for name, value in row.items() if name not in {*axes, *own}}
    figures = [figure for facts in manifest.get("figures", ()) if (figure := _figure(facts)) is not None]
    drawn = {name for figure in figures if isinstance(figure, Curves) for name in figure.y}
    lists = {name for name, value in measured.items() if _depth(value) == 1}
    curves = [name for name in lists if name in drawn or len(measured[name]) > SHORT]
    plain = {name: value for name, value in measured.items() if _depth(value) == 0 or name in lists.difference(curves)}
    return {
        "id": row["id"],
        "status": row["status"],
        "error": row["error"],
        "point": [(axis.replace("_", " "), words.value(value)) for axis, value in point.items()],
        "seed": row["seed"],
        "values": [(name.replace("_", " "), words.value(value)) for name, value in plain.items()],
        "time": f"{words.duration(row['seconds'])}, and {words.duration(row['compile_seconds'])} compiling",
        "curves": [_curve(name, measured[name], measured, figures) for name in measured if name in curves],
        "matrices": [_matrix(name, value, measured, figures) for name, value in measured.items() if _depth(value) == 2],
        "others": [name.replace("_", " ") for name, value in measured.items() if _depth(value) > 2],
        "command": again(selection, Trial(selection.study, selection.revision, point, row["seed"]), row["error"]),
    }


def _figure(facts: Mapping[str, Any]) -> Figure | None:
    try:
        return Figure.from_manifest(facts)
    except ValueError:  # a figure of a newer genscope
        return None


def _depth(value: Any) -> int:
    return 1 + max((_depth(each) for each in value[:1]), default=0) if isinstance(value, list) else 0


def _curve(name: str, y: Sequence[Any], row: Mapping[str, Any], figures: Sequence[Figure]) -> dict[str, Any]:
    """A curve against the steps that a figure of the study names, else against its place in the list."""
    figure = next((each for each in figures if isinstance(each, Curves) and name in each.y), None)
    x, along = list(range(len(y))), "place in the list"
    if figure is not None:
        steps = row.get(figure.x)
        if figure.every is not None:
            x, along = [figure.every * place for place in x], figure.label(figure.x)
        elif isinstance(steps, list) and len(steps) >= len(y):
            x, along = steps[: len(y)], figure.label(figure.x)
    stride = -(-len(y) // LONGEST) or 1
    return {
        "name": name.replace("_", " "),
        "x": list(x[::stride]),
        "y": list(y[::stride]),
        "along": along,
        "note": f"One in {stride} of {len(y)} values is drawn." if stride > 1 else "",
    }


def _matrix(name: str, rows: Sequence[Any], row: Mapping[str, Any], figures: Sequence[Figure]) -> dict[str, Any]:
    for figure in figures:
        if isinstance(figure, Heatmap):
            label = next((panel.label for panel in figure.panels if panel.value == name), None)
            if label is not None:
                marked = row.get(figure.marked) if figure.marked else None
                return _cells(label, rows, figure.rows, figure.columns, marked or [])
    return _cells(name.replace("_", " "), rows, "row", "column", [])


def _cells(name: str, rows: Sequence[Any], down: str, across: str, marked: Sequence[int]) -> dict[str, Any]:
    wide = max(len(cells) for cells in rows)
    cut = len(rows) > WIDEST or wide > WIDEST
    return {
        "name": name,
        "z": [cells[:WIDEST] for cells in rows[:WIDEST]],
        "rows": down,
        "columns": across,
        "marked": [column for column in marked if column < WIDEST],
        "note": f"The first {WIDEST} rows and columns of {len(rows)} by {wide} are drawn." if cut else "",
    }
