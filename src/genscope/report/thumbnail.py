"""A figure as large as a thumb: its marks and lines, without a word."""

from collections.abc import Sequence

from genscope.report.reduced import Reduced
from genscope.report.svg import canvas, inline, styled

_WIDTH, _HEIGHT = 300, 170


@styled
def thumbnail(found: Sequence[Reduced], name: str) -> str | None:
    """The first panel of a figure that is worth drawing; nothing where there is none."""
    shown = next((each for each in found if not each.lone), None)
    if shown is None:
        return None
    drawing = canvas(_HEIGHT, _WIDTH)
    drawing.set_layout_engine("none")
    axes = drawing.add_axes((0.03, 0.05, 0.94, 0.9))
    shown.sketch(axes)
    for text in axes.texts:
        text.set_text("")
    axes.xaxis.set_visible(False)
    axes.yaxis.set_visible(False)
    return inline(drawing, name, "")
