"""The report's first picture: the figures that declare an `opening`, side by side, with names where the lines end.

Filled marks are measured here, hollow stars are published values, dashed lines are theory.
Guarantee: exact; a panel has the numbers of its figure, of which it leaves out rival laws and all but one reference.
"""

import itertools
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from genscope.lab import Figure, Group, Line, Reading
from genscope.lab.results.reduction import ReducedSeries
from genscope.papers import PAPERS
from genscope.report.axes import DASHES
from genscope.report.charts import draw_line
from genscope.report.looks import looks, said
from genscope.report.reduced import Reduced, reduced
from genscope.report.svg import INK, MUTED, canvas, inline, styled

KEY = (
    "Filled marks: measured here, with 95 % intervals; where there are fewer than four runs, or small marks next to "
    "a mean, every run is shown. Hollow stars: published values. Dashed: theory."
)
_SIDE, _TALL = 300, 265
_APART = 14.5  # pixels between two names
_BAND = 1.5  # times a law that the axis follows the law's band


@dataclass(frozen=True)
class Opening:
    """A panel: what it asks, what was found, where its section is, and its numbers."""

    words: str
    found: str
    anchor: str
    made: Reduced

    @property
    def paper(self) -> str:
        """The citation key that its source begins with."""
        return self.made.figure.source.partition(",")[0].strip()

    @styled
    def svg(self, name: str) -> str:
        """The panel for a page."""
        drawing = canvas(_TALL, _SIDE)
        axes = drawing.subplots()
        _label(axes, _draw(axes, self.made))
        return inline(drawing, name, f"{self.words}. {self.found}")


def openings(studies: Iterable[tuple[str, Sequence[Figure], Reading]]) -> list[Opening]:
    """The panels of several studies with anchors; of figures with the same words, the first that has numbers."""
    panels: dict[str, Opening] = {}
    for anchor, figures, reading in studies:
        for number, declared in enumerate(figures, start=1):
            for figure in declared.panels if isinstance(declared, Group) else (declared,):
                if figure.opening and isinstance(figure, Line) and figure.opening not in panels:
                    for made in reduced(figure, reading):
                        answer = "" if made.heading == figure.title else made.heading
                        panels[figure.opening] = Opening(figure.opening, answer, f"{anchor}-{number}", made)
    order = [*PAPERS]
    return sorted(panels.values(), key=lambda panel: order.index(panel.paper) if panel.paper in order else len(order))


@styled
def picture(panels: Sequence[Opening]) -> Canvas:
    """All panels in one drawing, for a file."""
    drawing = canvas(_TALL + 85, 350 * len(panels))
    for axes, panel in zip(drawing.subplots(1, len(panels), squeeze=False).ravel(), panels, strict=True):
        names = _draw(axes, panel.made)
        axes.set_title("\n".join(textwrap.wrap(panel.found or panel.words, 38)), fontsize=12.5, pad=10)
        _label(axes, names)
    drawing.supxlabel("\n".join(textwrap.wrap(KEY, 62 * len(panels))), fontsize=10.5, x=0.01, ha="left")
    return drawing


def _draw(axes: Axes, made: Reduced) -> list["Name"]:
    """The panel without names, and the names that it wants."""
    figure: Line = made.figure  # pyright: ignore[reportAssignmentType]  # others have no place in the opening
    series: Sequence[ReducedSeries] = made.numbers
    bare = [replace(each, fits=None) for each in series]
    fitted = any(each.fits is not None and each.fits.laws for each in series)
    draw_line(axes, replace(figure, laws=(), references=(), levels=()), bare, joined=not fitted)
    laws = _laws(axes, figure, series)
    return [*_series(figure, series), *laws, *_references(axes, figure), *_published(figure, series)]


Name = tuple[float, str, str]  # height, words, color


def _series(figure: Line, series: Sequence[ReducedSeries]) -> list[Name]:
    found = looks(figure.by, [each.name for each in series])
    named = []
    for each in series:
        known = [mark for mark in each.marks if mark.y is not None]
        if known:
            named.append((float(known[-1].y or 0), said(each.name, figure), found[each.name].colour))
    return named


def _laws(axes: Axes, figure: Line, series: Sequence[ReducedSeries]) -> list[Name]:
    """The law that fits best, beyond the measured lengths too."""
    found = looks(figure.by, [each.name for each in series])
    named = []
    for each in series:
        if each.fits is None or each.fits.best is None:
            continue
        low, high = axes.get_xlim()
        lengths = np.geomspace(max(low, 1e-9), high, 60)
        law = each.fits.laws[each.fits.best]
        sizes, least, most = zip(*(law.predict(float(length)) for length in lengths), strict=True)
        axes.fill_between(lengths, least, most, color=found[each.name].colour, alpha=0.13, linewidth=0)
        axes.plot(lengths, sizes, color=found[each.name].colour, linewidth=1.2)
        axes.set_xlim(low, high)
        axes.set_ylim(top=_top(axes.get_ylim()[1], max(sizes), max(most)))
        named.append((float(sizes[-1]), f"{each.fits.best} law", found[each.name].colour))
    return named


def _top(top: float, law: float, band: float) -> float:
    """Where an axis with a law and its band ends; a wide band does not make the rest small.

    >>> _top(200, 100, 120), _top(120, 100, 130), _top(120, 100, 1000)
    (200, 133.9, 154.5)
    """
    return max(top, 1.03 * min(band, _BAND * law))


def _references(axes: Axes, figure: Line) -> list[Name]:
    named = []
    low, high = axes.get_xlim()
    for reference in figure.references[:1]:
        axes.plot(reference.x, reference.y, color=MUTED, linewidth=1.4, linestyle=DASHES[0])
        within = [y for x, y in zip(reference.x, reference.y, strict=True) if x <= high]
        named.append((float(within[-1]), reference.name.partition(" (")[0], MUTED))
    axes.set_xlim(low, high)
    return named


def _published(figure: Line, series: Sequence[ReducedSeries]) -> list[Name]:
    """Published values of no series of ours have a name of their own."""
    measured = [each.name for each in series if any(mark.y is not None for mark in each.marks)]
    last = {point.by: point for point in figure.published if point.by not in measured}
    found = looks(figure.by, [*measured, *filter(None, last)])
    named = []
    for by, point in last.items():
        words, colour = (f"{said(by, figure)}, published", found[by].colour) if by else ("published", INK)
        named.append((float(point.y), words, colour))
    return named


def _label(axes: Axes, names: Sequence[Name]) -> None:
    """Names right of the axes at the heights of what they name, as far apart as reading needs."""
    drawing = axes.get_figure(root=True)
    if drawing is not None:
        drawing.draw_without_rendering()  # the layout has to be known before heights are
    for text, height in zip(names, _heights(axes, names), strict=True):
        axes.annotate(
            *(text[1], (1, height)),
            **{"xycoords": "axes fraction", "xytext": (5, 0), "textcoords": "offset points"},
            **{"color": text[2], "fontsize": 11, "va": "center", "annotation_clip": False},
        )


def _heights(axes: Axes, names: Sequence[Name]) -> list[float]:
    bottom = axes.bbox.y0
    wanted = [float(axes.transData.transform((axes.get_xlim()[1], name[0]))[1]) - bottom for name in names]
    order = sorted(range(len(names)), key=lambda number: wanted[number])
    placed = list(wanted)
    for _ in range(40):  # neighbors push each other apart
        for one, other in itertools.pairwise(order):
            overlap = _APART - (placed[other] - placed[one])
            if overlap > 0:
                placed[one] -= overlap / 2
                placed[other] += overlap / 2
    return [place / axes.bbox.height for place in placed]
