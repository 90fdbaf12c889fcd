"""Heat maps as vector graphics: shades are degrees of opacity of one colour, so that a map suits light and dark pages.

Departures: Values are drawn in 24 shades of each sign; the tables and the store keep the numbers.
Guarantee: exact up to the shades; an entry that is not a number is drawn as a cross.
"""

from collections.abc import Sequence

import numpy as np
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.patches import PathPatch
from matplotlib.path import Path

from genscope.lab import Heatmap
from genscope.report.svg import INK, MUTED, SERIES, canvas, inline, styled

_SHADES = 24  # more than the eye tells apart, few enough to keep the file small


@styled
def heatmap(figure: Heatmap, matrices: Sequence[np.ndarray], marked: Sequence[int], name: str, label: str) -> str:
    """The matrices side by side on one scale, marked columns pointed at from above."""
    finite = np.concatenate([np.abs(matrix[np.isfinite(matrix)]) for matrix in matrices])
    largest = float(finite.max(initial=0)) or 1.0
    signed = any((matrix[np.isfinite(matrix)] < 0).any() for matrix in matrices)
    rows = max(matrix.shape[0] for matrix in matrices)
    drawing = canvas(min(620, max(250, 130 + 9 * rows)))
    *panels, scale = drawing.subplots(
        *(1, len(matrices) + 1), gridspec_kw={"width_ratios": [1] * len(matrices) + [0.03 * len(matrices)]}
    )
    for axes, matrix, panel in zip(panels, matrices, figure.panels, strict=True):
        _shades(axes, matrix, largest)
        _missing(axes, matrix)
        _point_out(axes, marked)
        axes.set_title(panel.label, pad=34 if marked else 8)
        axes.set_xlim(-0.5, matrix.shape[1] - 0.5)
        axes.set_ylim(matrix.shape[0] - 0.5, -0.5)
        axes.xaxis.set_major_locator(ticker.MaxNLocator(6, integer=True))
        axes.yaxis.set_major_locator(ticker.MaxNLocator(6, integer=True))
        axes.grid(False)
        for spine in axes.spines.values():
            spine.set_visible(True)
    panels[0].set_ylabel(figure.rows)
    drawing.supxlabel(figure.columns, fontsize=12.5)
    _scale(scale, largest, signed)
    return inline(drawing, name, label)


def _shades(axes: Axes, matrix: np.ndarray, largest: float) -> None:
    """One path for all cells of a shade, neighbours in a row joined."""
    levels = np.round(np.nan_to_num(matrix, posinf=largest, neginf=-largest) / largest * _SHADES).astype(int)
    for level in np.unique(levels[levels != 0]).tolist():
        boxes = [_box(i, start, stop) for i, row in enumerate(levels == level) for start, stop in _runs(row)]
        shape = Path.make_compound_path(*boxes)
        axes.add_patch(_patch(shape, level))


def _patch(shape: Path, level: int) -> PathPatch:
    """Not smoothed at the edges, where neighbours would show a seam."""
    look = {"facecolor": SERIES[0] if level > 0 else SERIES[1], "alpha": abs(level) / _SHADES}
    return PathPatch(shape, **look, linewidth=0, antialiased=False)


def _runs(row: np.ndarray) -> list[tuple[int, int]]:
    """First and last-but-one index of each stretch of true entries."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], row, [False]]).astype(int)))
    return [(int(start), int(stop)) for start, stop in edges.reshape(-1, 2)]


def _box(row: int, start: int, stop: int) -> Path:
    left, right, top, bottom = start - 0.5, stop - 0.5, row - 0.5, row + 0.5
    return Path([(left, top), (right, top), (right, bottom), (left, bottom), (left, top)], closed=True)


def _missing(axes: Axes, matrix: np.ndarray) -> None:
    rows, columns = np.nonzero(np.isnan(matrix))
    if rows.size:
        axes.plot(columns, rows, "x", color=MUTED, markersize=4)


def _point_out(axes: Axes, marked: Sequence[int]) -> None:
    for column in marked:
        axes.annotate(
            *(str(column), (column, 1), (0, 13), ("data", "axes fraction"), "offset points"),
            **{"ha": "center", "fontsize": 11.5, "fontweight": "bold", "color": SERIES[1]},
        )
        axes.plot(
            [column], [1.02], "v", color=SERIES[1], markersize=7, transform=axes.get_xaxis_transform(), clip_on=False
        )


def _scale(axes: Axes, largest: float, signed: bool) -> None:
    """The shades beside their values."""
    steps = range(-_SHADES if signed else 0, _SHADES + 1)
    for level in steps:
        axes.add_patch(_patch(_box(level, 0, 1), level))
    axes.set_xlim(-0.5, 0.5)
    axes.set_ylim(steps[0] - 0.5, steps[-1] + 0.5)
    ends = [-_SHADES, 0, _SHADES] if signed else [0, _SHADES // 2, _SHADES]
    axes.set_yticks(ends, [f"{largest * level / _SHADES:.2g}" for level in ends])
    axes.yaxis.tick_right()
    axes.set_xticks([])
    axes.grid(False)
    for spine in axes.spines.values():
        spine.set(visible=True, color=INK, linewidth=0.6)
