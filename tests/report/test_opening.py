"""The opening picture: the panels that figures declare, in the order of the papers, with names where lines end."""

import itertools
from dataclasses import replace

import polars as pl
import pytest
from matplotlib.text import Annotation

from genscope.lab import Group, Line, Mean, Published, Reading, Reference
from genscope.report import opening

FRAME = pl.DataFrame({"length": [10, 20] * 2, "gap": [1.0, 3.0, 2.0, 2.1], "net": ["ffn", "ffn", "own", "own"]})
FIGURE = Line(
    *("length", Mean("gap"), "net"),
    title="Gap",
    answer="The FFN ends at {last ffn}",
    opening="Gap against length",
    source="lintilhac2026, Figure 1",
    references=[Reference("ideal learner (20 %)", [10, 20], [0.5, 0.5]), Reference("another", [10, 20], [9, 9])],
    published=[Published(15, 2.5, "a paper")],
)


def panels(*figures):
    return opening.openings([("study-1", figures, Reading(FRAME, (), 0))])


def test_panels_are_those_that_figures_declare_in_the_order_of_the_papers():
    first = Line("length", Mean("gap"), title="Other", opening="Another", source="edelman2022, Figure 2")
    plain = Line("length", Mean("gap"), title="No opening")
    hidden = Group(title="Both", panels=[FIGURE])
    found = panels(plain, hidden, first)
    assert [(each.words, each.found, each.anchor) for each in found] == [
        ("Another", "", "study-1-3"),
        ("Gap against length", "The FFN ends at 3", "study-1-2"),
    ]
    assert len(panels(FIGURE, FIGURE)) == 1  # of those with the same words the first
    absent = Line("length", Mean("absent"), title="", opening="Not measured", where={"net": "none"})
    assert panels(absent) == []


def test_names_stand_apart_where_lines_end():
    (axes,) = opening.picture(panels(FIGURE)).axes
    names = {text.get_text(): text.xy[1] for text in axes.texts if isinstance(text, Annotation)}
    assert {*names} == {"FFN", "own", "ideal learner", "published"}  # one reference, without its parenthesis
    heights = sorted(names.values())
    gaps = [(high - low) * axes.bbox.height for low, high in itertools.pairwise(heights)]
    assert min(gaps) == pytest.approx(14.5, abs=1.5) or min(gaps) > 14.5


def test_published_values_of_what_was_not_measured_have_its_name():
    values = [
        Published(10, 2, "a paper", "gru"),
        Published(20, 5, "a paper", "gru"),
        Published(20, 3, "a paper", "ffn"),
    ]
    (axes,) = opening.picture(panels(replace(FIGURE, published=values))).axes
    names = {text.get_text() for text in axes.texts if isinstance(text, Annotation)}
    assert names == {"FFN", "own", "ideal learner", "GRU, published"}


def test_a_panel_is_an_svg_with_its_answer_as_label():
    (panel,) = panels(FIGURE)
    drawn = panel.svg("opening-1")
    assert drawn.startswith("<svg")
    assert 'aria-label="Gap against length. The FFN ends at 3"' in drawn
