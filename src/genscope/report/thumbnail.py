"""A figure as large as a thumb: its marks and lines, without a word."""

from genscope.lab import Figure, Reading
from genscope.report.reduced import reduced
from genscope.report.svg import canvas, inline, styled

_WIDTH, _HEIGHT = 300, 170


@styled
def thumbnail(figure: Figure, reading: Reading, name: str) -> str | None:
    """The first panel of a figure; nothing where there is none worth drawing."""
    found = [each for each in reduced(figure, reading) if not each.lone]
    if not found:
        return None
    drawing = canvas(_HEIGHT, _WIDTH)
    drawing.set_layout_engine("none")
    axes = drawing.add_axes((0.03, 0.05, 0.94, 0.9))
    found[0].sketch(axes)
    for text in [*axes.texts, axes.title, axes.xaxis.label, axes.yaxis.label]:
        if text.get_text():
            text.set_text("")
    axes.tick_params(labelbottom=False, labelleft=False, length=0)
    axes.grid(False)
    return inline(drawing, name, "")
