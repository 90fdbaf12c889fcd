"""One figure of a store as a file: SVG, PNG or PDF, in the colors of a white page.

Guarantee: exact; the same store gives the same SVG, and letters stay letters in SVG and PDF.
"""

import os
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.figure import Figure as Canvas

from genscope.files import draft, picture_kind
from genscope.lab import Figure, Reading, Selection, Store
from genscope.lab.results.cautions import cautions
from genscope.lab.results.mixtures import codes
from genscope.lab.results.reading import largest
from genscope.refusal import Refusal
from genscope.report.opening import openings, picture
from genscope.report.reduced import Reduced, heading, reduced
from genscope.report.svg import MUTED, PHONE, WIDTH, canvas, save, styled


class FigureFile(NamedTuple):
    """A figure that was written: where, what it says, and of which trials."""

    path: Path
    heading: str
    selection: str
    trials: int
    others: Sequence[str]
    warnings: Sequence[str]


def chosen(
    store: Store, study: str, budget: str | None, where: Sequence[str] = ()
) -> tuple[Selection, Reading, list[Selection]]:
    """Of the selections of a study the largest complete one, at `budget` if there is one; its reading; the others.

    With `where`, options of `genscope run` such as "context_length=100,200", one that was asked for by all of them.
    """
    selections = store.selections(study)
    asked = [each for each in selections if {("where", text) for text in where} <= set(_options(each))]
    if not asked:
        raise Refusal(
            f"got --where {' --where '.join(where)}: the store holds {study} with "
            f"{'; '.join(each.title for each in selections)}. Choose among these, or run it first."
        )
    selection, reading = largest(store, [each for each in asked if each.budget == budget] or asked)
    return selection, reading, [each for each in selections if each.id != selection.id]


def _options(selection: Selection) -> list[tuple[str, str]]:
    return [] if selection.request is None else selection.request.options


def declared(manifest: Mapping[str, Any]) -> list[Figure]:
    """The figures of a manifest; one that a newer genscope declared is an empty place."""
    found = []
    for facts in manifest.get("figures", ()):
        try:
            found.append(Figure.from_manifest(facts))
        except ValueError:
            found.append(Figure(title=str(facts.get("title", ""))))
    return found


def write_figure(
    store: Store,
    out: str | os.PathLike[str],
    *,
    study: str | None = None,
    number: int = 1,
    budget: str | None = None,
    where: Sequence[str] = (),
) -> FigureFile:
    """Draw the figure of that number of a study, or without a study the report's opening picture."""
    path = Path(out)
    kind = picture_kind(path)
    if study is None:
        drawing, found, readings = _opening(store, budget)
        warnings = [f"{name}: {caution}" for name, reading in readings.items() for caution in cautions(reading)]
        written = FigureFile(path, found, "", 0, (), warnings)
        notes = [f"{name}: {told}" for name, reading in readings.items() for told in _codes(reading)]
    else:
        selection, reading, others = _selected(store, study, budget, where)
        drawing, found = _figure(store, study, number, reading)
        titles, warnings = [each.title for each in others], [*cautions(reading)]
        written = FigureFile(path, found, selection.title, len(reading.frame), titles, warnings)
        notes = _codes(reading)
    if notes:
        _note(drawing, notes)
    with draft(path) as beside:
        save(drawing, beside, kind, cut="tight" if notes else None)
    return written


def _codes(reading: Reading) -> list[str]:
    return [*codes(reading.frame, reading.origins)]


def _note(drawing: Canvas, notes: Sequence[str]) -> None:
    """Say under a drawing, outside of its layout, what must not be seen without it."""
    wide = int(drawing.get_figwidth() * 72 / 5)  # pixels of a letter
    lines = [line for note in notes for line in textwrap.wrap(f"Note: {note}.", wide)]
    drawing.text(0.01, -0.01, "\n".join(lines), fontsize=9, va="top", color=MUTED)


def _opening(store: Store, budget: str | None) -> tuple[Canvas, str, dict[str, Reading]]:
    manifests = store.manifests()
    readings = {name: chosen(store, name, budget)[1] for name in manifests}
    panels = openings((name, declared(facts), readings[name]) for name, facts in manifests.items())
    if not panels:
        raise Refusal(
            f"the store holds {', '.join(manifests) or 'no study yet'}, none of which the opening picture shows. "
            "Run genscope reproduce --budget quick, or name a study."
        )
    shown = {panel.anchor.rpartition("-")[0]: None for panel in panels}
    return (
        picture(panels),
        "; ".join(panel.found or panel.words for panel in panels),
        {name: readings[name] for name in shown},
    )


def _selected(
    store: Store, study: str, budget: str | None, where: Sequence[str]
) -> tuple[Selection, Reading, list[Selection]]:
    manifests = store.manifests()
    if study not in manifests:
        raise Refusal(
            f"got the study {study}: the store holds {', '.join(manifests) or 'none yet'}. Choose one of these, or "
            "run it first."
        )
    return chosen(store, study, budget, where)


def _figure(store: Store, study: str, number: int, reading: Reading) -> tuple[Canvas, str]:
    figures = declared(store.manifests()[study])
    listed = "; ".join(f"{place} ({figure.title})" for place, figure in enumerate(figures, start=1))
    if not 1 <= number <= len(figures):
        raise Refusal(
            f"got --number {number}: the figures of {study} are {listed or 'none'}. Choose one of these numbers."
        )
    found = reduced(figures[number - 1], reading)
    if not found:
        raise Refusal(f"figure {number} of {study} has no finished trial to show. Run genscope run {study} first.")
    return _drawn(found), heading(figures[number - 1], found)


def _drawn(found: Sequence[Reduced]) -> Canvas:
    """One figure as wide as a page; those of a group side by side."""
    if len(found) == 1:
        return found[0].draw(WIDTH)
    return _side_by_side(found)


@styled
def _side_by_side(found: Sequence[Reduced]) -> Canvas:
    """The panels of a group in one drawing, each with its own legend."""
    drawing = canvas(360, PHONE * len(found))
    for axes, each in zip(drawing.subplots(1, len(found), squeeze=False).ravel(), found, strict=True):
        each.sketch(axes)
        axes.set_title(each.figure.title)
        by = getattr(each.figure, "by", None)
        axes.legend(fontsize=9, title=each.figure.label(by) if by else None, title_fontsize=9, alignment="left")
    return drawing
