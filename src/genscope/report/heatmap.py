"""Heat maps as vector graphics: shades are degrees of opacity of one color, so that a map suits light and dark pages.

Departures: Values are drawn in 24 shades of each sign; the tables and the store keep the numbers.
Guarantee: exact up to the shades; an entry that is not a number is drawn as a cross.
"""

import itertools
from collections.abc import Sequence

import numpy as np
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path

from genscope.lab import Blocks, Heatmap
from genscope.report.svg import INK, MUTED, SERIES, WIDTH, canvas, styled

_SHADES = 24  # more than the eye tells apart, few enough to keep the file small


@styled
def heatmap(figure: Heatmap, matrices: Sequence[np.ndarray], marked: Sequence[int], width: float = WIDTH) -> Canvas:
    """The matrices side by side on one scale, below each other where there is no room; marked columns pointed at."""
    largest = _largest(matrices)
    signed = any((matrix[np.isfinite(matrix)] < 0).any() for matrix in matrices)
    rows = max(matrix.shape[0] for matrix in matrices)
    across = len(matrices) if width > 500 else 1
    down = -(-len(matrices) // across)
    tall = 0.62 * width if figure.blocks else min(620, max(250, 130 + 9 * rows)) * min(1.0, 0.6 + 0.4 / down)
    drawing = canvas(down * tall, width)
    widths = [1.0] * across + [0.03 * across if width > 500 else 0.06]
    grid = drawing.add_gridspec(down, across + 1, width_ratios=widths)
    panels = [drawing.add_subplot(grid[number // across, number % across]) for number in range(len(matrices))]
    for axes, matrix, panel in zip(panels, matrices, figure.panels, strict=True):
        draw_matrix(axes, matrix, largest)
        _point_out(axes, marked)
        axes.set_title(panel.label, pad=34 if marked else 8)
        axes.xaxis.set_major_locator(ticker.MaxNLocator(6, integer=True))
        axes.yaxis.set_major_locator(ticker.MaxNLocator(6, integer=True))
        if figure.blocks is not None:
            _name_blocks(axes, matrix, figure.blocks)
        for spine in axes.spines.values():
            spine.set_visible(True)
    for axes in panels[::across]:
        axes.set_ylabel(figure.rows)
    drawing.supxlabel(figure.columns, fontsize=12.5)
    _scale(drawing.add_subplot(grid[:, across]), largest, signed)
    return drawing


def _largest(matrices: Sequence[np.ndarray]) -> float:
    finite = np.concatenate([np.abs(matrix[np.isfinite(matrix)]) for matrix in matrices])
    return float(finite.max(initial=0)) or 1.0


def draw_matrix(axes: Axes, matrix: np.ndarray, largest: float | None = None) -> None:
    """The cells of one matrix, shaded against the largest entry."""
    _shades(axes, matrix, _largest([matrix]) if largest is None else largest)
    _missing(axes, matrix)
    axes.set_xlim(-0.5, matrix.shape[1] - 0.5)
    axes.set_ylim(matrix.shape[0] - 0.5, -0.5)
    axes.grid(False)


def _name_blocks(axes: Axes, matrix: np.ndarray, blocks: Blocks) -> None:
    """Square cells, thin lines between the parts, their names as ticks, and a frame around one block."""
    axes.set_aspect("equal")
    down, right = blocks.edges(matrix.shape[0]), blocks.edges(matrix.shape[1])
    for edge in right[1:-1]:
        axes.axvline(edge - 0.5, color=MUTED, linewidth=0.8)
    for edge in down[1:-1]:
        axes.axhline(edge - 0.5, color=MUTED, linewidth=0.8)
    axes.set_xticks([(low + high - 1) / 2 for low, high in itertools.pairwise(right)], blocks.names)
    axes.set_yticks([(low + high - 1) / 2 for low, high in itertools.pairwise(down)], blocks.names)
    axes.tick_params(length=0)
    if blocks.outlined:
        row, column = blocks.outlined
        corner = right[column] - 0.5, down[row] - 0.5
        sides = right[column + 1] - right[column], down[row + 1] - down[row]
        axes.add_patch(Rectangle(corner, *sides, fill=False, edgecolor=SERIES[1], linewidth=2))
        axes.set_title(blocks.label, color=SERIES[1])


def _shades(axes: Axes, matrix: np.ndarray, largest: float) -> None:
    """One path for all cells of a shade, neighbors in a row joined."""
    levels = np.round(np.nan_to_num(matrix, posinf=largest, neginf=-largest) / largest * _SHADES).astype(int)
    for level in np.unique(levels[levels != 0]).tolist():
        boxes = [_box(i, start, stop) for i, row in enumerate(levels == level) for start, stop in _runs(row)]
        shape = Path.make_compound_path(*boxes)
        axes.add_patch(_patch(shape, level))


def _patch(shape: Path, level: int) -> PathPatch:
    """Not smoothed at the edges, where neighbors would show a seam."""
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
