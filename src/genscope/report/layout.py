"""Where the axes of a chart stand: margins from the lengths of the labels, which are measured and not drawn.

Matplotlib's own layout draws every tick twice to measure it, a third of the time that a page took.

Departures: heat maps and panels with names beside them have Matplotlib's own.
Guarantee: estimate; the letters are a browser's, which Matplotlib's font is a little wider than.
"""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure as Canvas
from matplotlib.font_manager import FontProperties
from matplotlib.layout_engine import LayoutEngine
from matplotlib.textpath import text_to_path

_PAD = 4.3  # pixels around everything
_TICK = 7.0  # a tick and the gap to its label
_LINE = 1.17  # height of a line of text, in sizes of its letters
_LETTERS = FontProperties(size=12)
_HEADING = 30.0  # a heading above all, with its gaps
_NAME = _LINE * 12.5 + 6  # a label of an axis, or a title, and the gap beside it


class ChartLayout(LayoutEngine):
    """A grid of equally large axes that share their scales, with `above` pixels for a legend."""

    _adjust_compatible = True
    _colorbar_gridspec = True

    def __init__(self, above: float = 0.0) -> None:
        super().__init__()
        self.above = above

    def execute(self, fig: Canvas) -> None:
        """Place the axes."""
        every = [axes for axes in fig.axes if axes.get_visible()]
        width, height = 72 * fig.get_figwidth(), 72 * fig.get_figheight()
        headed = _HEADING if fig.get_suptitle() else 0.0
        for legend in fig.legends:
            legend.set_bbox_to_anchor((0, 1 - headed / height))
        for _ in range(2):  # how many ticks there are depends on how long the axes are
            longest = max((long for axes in every for _, long in _labels(axes.yaxis)), default=0.0)
            left = _PAD + _NAME + longest + _TICK
            right = _PAD + max(_beyond(axes, fig.dpi / 72) for axes in every)
            top = _PAD + headed + self.above + (_NAME if any(axes.get_title("left") for axes in every) else _LINE * 6)
            bottom = _TICK + _LINE * 12 + _NAME
            _place(every, (left, right, top, bottom), width, height)


def _place(every: Sequence[Axes], margins: tuple[float, ...], width: float, height: float) -> None:
    left, right, top, bottom = margins
    spec: Any = every[0].get_subplotspec()
    rows, columns = spec.get_gridspec().get_geometry()
    aside, between = 2.5 * _PAD, _TICK + _LINE * 12 + _NAME + 2 * _PAD
    wide = (width - left - right - (columns - 1) * aside) / columns
    tall = (height - top - bottom - (rows - 1) * between) / rows
    for axes in every:
        place: Any = axes.get_subplotspec()
        row, column = place.rowspan.start, place.colspan.start
        x, y = left + column * (wide + aside), height - top - row * (tall + between) - tall
        axes.set_position((x / width, y / height, wide / width, tall / height))


def _labels(axis: Axis) -> list[tuple[float, float]]:
    """Where the ticks of an axis are, and how long their labels are."""
    places = [float(place) for place in axis.get_majorticklocs()]
    texts = axis.get_major_formatter().format_ticks(places)
    return [
        (place, text_to_path.get_text_width_height_descent(text, _LETTERS, False)[0])
        for place, text in zip(places, texts, strict=True)
    ]


def _beyond(axes: Axes, pixel: float) -> float:
    """How far the label of a tick reaches beyond the right end of the axes, in pixels of the page."""
    low, high = axes.get_xlim()
    most = 0.0
    for place, long in _labels(axes.xaxis):
        if low <= place <= high:
            x, _ = axes.transData.transform((place, axes.get_ylim()[0]))
            most = max(most, (x - axes.bbox.x1) / pixel + long / 2)
    return most
