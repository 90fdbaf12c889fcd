"""Drawings: well-formed, repeatable, themed, and with a mark for everything that was handed over."""

import itertools
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Rectangle

from genscope.lab.plans.figure import (
    Blocks,
    Curves,
    Group,
    Heatmap,
    Level,
    Line,
    Mean,
    Panel,
    Published,
    Reference,
    Scatter,
)
from genscope.lab.results.reading import Reading
from genscope.lab.results.reduction import Mark, ReducedSeries
from genscope.report import charts, svg
from genscope.report.arrays import Bundle
from genscope.report.axes import log_ticks, shade, ticks
from genscope.report.heatmap import heatmap
from genscope.report.looks import looks
from genscope.report.marks import places
from genscope.report.reduced import Reduced
from genscope.report.sections import _sentences, section

SAID = {"title": "A title", "caption": "What one sees."}
MARKS = (
    Mark(10, 5.0, 4.0, 6.0, 20),
    Mark(20, 7.0, None, None, 1),
    Mark(40, 9.0, 9.0, None, 20, "above"),
    Mark(80, 2.0, None, 2.0, 20, "below"),
    Mark(160, None, None, None, 20, "none", words="levels off"),
)


def line(marks=MARKS, name="figure", label="A label", **settings) -> str:
    figure = Line("length", Mean("gap"), **settings, **SAID)
    return svg.inline(charts.line(figure, [ReducedSeries("first", tuple(marks))]), name, label)


def test_a_drawing_is_well_formed_and_repeatable():
    drawn = line(references=[Reference("bound", [10, 160], [1, 2])], published=[Published(30, 6, "a paper")])
    assert ET.fromstring(drawn).tag == "svg"
    assert drawn == line(references=[Reference("bound", [10, 160], [1, 2])], published=[Published(30, 6, "a paper")])
    for word in ("first", "bound", "a paper", "length", "gap"):
        assert f">{word}</text>" in drawn


def test_what_is_known_without_a_bound_is_a_line_with_a_shade_above():
    for settings in ({}, {"log_y": True}):
        plain, drawn = line(**settings), line(trivial=Level(2.0, "best constant"), **settings)
        assert ">best constant; vacuous above</text>" in drawn
        assert "best constant" not in plain
        assert drawn.count("opacity: 0.13") == plain.count("opacity: 0.13") + 1


@pytest.mark.parametrize(("height", "above"), [(0.97, True), (1.03, False)])
def test_the_words_of_a_trivial_value_stand_where_nothing_is_drawn(height, above):
    axes = svg.canvas(360, 544).subplots()
    axes.plot([1, 2, 3], [0.5, height, height], marker="o")
    axes.plot([1, 3], [height, height])
    shade(axes, Level(1.0, "best constant"))
    [note] = axes.texts
    assert (note.get_text(), note.get_verticalalignment()) == (
        "best constant; vacuous above",
        "bottom" if above else "top",
    )


def test_one_trial_above_every_size_is_a_sentence_that_says_so():
    figure = Line("length", Mean("gap"), **SAID)
    series = ReducedSeries("first", (Mark(40, 2000.0, 2000.0, None, 48, "above"),))
    told = _sentences(Reduced(figure, (series,), draw=pytest.fail, sketch=pytest.fail))
    assert told == ["first: more than 2,000 (length = 40)."]


def test_ids_belong_to_the_figure():
    one, other = (set(re.findall(r' id="([^"]+)"', line(name=name))) for name in ("one", "other"))
    assert one
    assert all(found.startswith("one-") for found in one)
    assert not one & other


def test_colours_are_the_pages_own():
    drawn = line()
    assert "var(--series-1, #0067a5)" in drawn
    bare = re.sub(r"var\(--[a-z0-9-]+, #[0-9a-f]{6}\)", "", drawn)
    assert not re.search(r"#[0-9a-f]{6}", bare)
    assert "font-family" not in drawn
    assert "<style" not in drawn
    assert "metadata" not in drawn


def test_no_mark_is_left_out():
    """Every state has its sign, and the legend explains the signs that occur."""
    full = line()
    assert "limit: the arrow points to the value" in full
    assert "no number (see below)" in full
    plain = line(MARKS[:2])
    assert "limit" not in plain
    assert "no number" not in plain

    def signs(marks) -> int:
        return len(ET.fromstring(line(marks)).findall(".//use"))

    # Without legend entries of their own and with ticks in place, one more mark is at least one more sign.
    doubled = (*MARKS[:2], Mark(20, 6.0, 5.5, 6.5, 9))
    assert signs(doubled) == signs(MARKS[:2]) + 1


@pytest.mark.parametrize("word", ["a $ b", "<b>&amp;", "x\x00y", "日本", "$\\frac{1}{2}$", "–½≤"])
def test_any_words_may_be_labels(word):
    figure = Line("length", Mean("gap"), labels={"length": word}, **SAID)
    drawn = svg.inline(charts.line(figure, [ReducedSeries(word, MARKS)]), "figure", word)
    shown = [element.text for element in ET.fromstring(drawn).iter("text")]
    assert word.replace("\x00", "\ufffd") in shown
    assert ET.fromstring(drawn).get("aria-label") == word.replace("\x00", "\ufffd")


def test_words_may_stand_on_the_horizontal_axis():
    drawn = line([Mark("rnn", 1.0, 0.5, 1.5, 5), Mark("transformer", 2.0, 1.5, 2.5, 5)])
    assert ">transformer</text>" in drawn


@pytest.mark.parametrize("log", [False, True])
def test_one_point_alone_is_drawn(log):
    assert ">50</text>" in line([Mark(50, 2.0, 1.0, 3.0, 5)], log_x=log, log_y=log)


def test_a_legend_says_what_its_colours_tell_apart():
    assert ">tokens N</text>" in line(by="tokens", labels={"tokens": "tokens N"})
    assert ">tokens N</text>" not in line(labels={"tokens": "tokens N"})


def test_published_values_have_the_colour_of_their_series():
    def stars(by: str) -> int:
        return line(MARKS[:1], published=[Published(30, 6, "a paper", by), Published(40, 7, "a paper", by)]).count(
            "var(--series-1"
        )

    assert stars("first") > stars("") == stars("another")


def test_two_measures_of_one_thing_are_held_against_equality():
    marks = (Mark(1.5, 2.5, None, None, 1), Mark(3.5, 2.75, None, None, 1))
    plain, held = (
        svg.inline(
            charts.scatter(Scatter("one", "other", diagonal=diagonal, **SAID), [ReducedSeries("", marks)]),
            "figure",
            "label",
        )
        for diagonal in (False, True)
    )
    assert ">equal</text>" in held
    assert ">equal</text>" not in plain


def test_no_mark_of_a_comparison_is_cut_off_at_the_end_of_an_axis():
    """All lie at one end of the horizontal axis, and at the other of the vertical one."""
    axes = Canvas(figsize=(4, 4)).subplots()
    marks = tuple(Mark(x, y, None, None, 1) for x, y in ((4700.0, 780.0), (5800.0, 800.0)))
    charts.draw_scatter(
        axes, Scatter("one", "other", diagonal=True, log_x=True, log_y=True, **SAID), [ReducedSeries("", marks)]
    )
    places = axes.transAxes.inverted().transform(axes.transData.transform([(mark.x, mark.y) for mark in marks]))
    assert places.min() > 0.03
    assert places.max() < 0.97


@pytest.mark.parametrize("width", [150, 220, 300, 600])
def test_labels_of_a_logarithmic_axis_do_not_touch(width):
    drawing = Canvas(figsize=(width / 72, 4), dpi=72)
    axes = drawing.add_axes((0, 0, 1, 1))
    log_ticks(axes, "x")
    axes.set_xlim(150, 12_000)
    FigureCanvasAgg(drawing).draw()
    boxes = [label.get_window_extent() for label in axes.get_xticklabels() if label.get_text()]
    shown = [box for box in boxes if 0 <= (box.x0 + box.x1) / 2 <= width]
    assert len(shown) >= 1 + (width > 200)
    assert all(left.x1 < right.x0 for left, right in itertools.pairwise(shown))


@pytest.mark.parametrize("limits", [(10, 18), (2.6, 15), (9.5, 11), (700, 1300), (1, 150), (3, 5000)])
def test_a_logarithmic_axis_has_three_ticks_however_short_it_is(limits):
    axes = Canvas(figsize=(6, 4), dpi=72).add_axes((0, 0, 1, 1))
    log_ticks(axes, "y")
    axes.set_ylim(*limits)
    shown = [value for value in axes.get_yticks() if limits[0] <= value <= limits[1]]
    assert 3 <= len(shown) <= 9
    assert len({axes.yaxis.get_major_formatter()(value) for value in shown}) == len(shown)


def test_ticks_that_need_them_are_powers_of_ten():
    drawn = line([Mark(10, 1e-9, 1e-10, 1e-8, 5), Mark(20, 1e9, 1e8, 1e10, 5)], log_y=True)
    assert ">10⁻⁹</text>" in drawn or ">10⁻⁸</text>" in drawn
    assert "e-0" not in drawn


def test_scatter_keeps_what_is_no_number():
    figure = Scatter("degree", "gap", **SAID)
    marks = (
        Mark(1, 0.5, 0.4, 0.6, 1),
        Mark(2, None, None, None, 1, "none", 1),
        Mark(None, None, None, None, 1, "none", 1),
    )
    drawn = svg.inline(charts.scatter(figure, [ReducedSeries("", marks)]), "figure", "label")
    assert "no number (see below)" in drawn


def test_a_curve_that_stops_being_a_number_gets_a_cross():
    steps = np.array([0.0, 1.0, 2.0])
    good, bad = np.array([3.0, 2.0, 1.0]), np.array([3.0, np.nan, np.nan])

    def draw(*values) -> int:
        bundle = Bundle(None, "", tuple((steps, value) for value in values), (steps, good), 0, 0)
        drawn = svg.inline(charts.curves(Curves("step", ["loss"], "loss", **SAID), [bundle]), "figure", "label")
        return len(ET.fromstring(drawn).findall(".//use"))

    assert draw(good, bad) == draw(good, good) + 1
    assert draw(bad) == draw(good) + 1


def heights(drawn: str, colour: int = 1) -> list[float]:
    """Where the lines in a colour of the series bend, in pixels from the top."""
    paths = [
        path for path in ET.fromstring(drawn).iter("path") if f"stroke: var(--series-{colour}" in path.get("style", "")
    ]
    return [float(y) for path in paths for y in re.findall(r"[ML] [0-9.]+ ([0-9.]+)", path.get("d", ""))]


def test_without_a_median_nothing_is_drawn_between_two_runs():
    steps = np.arange(3.0)
    runs = tuple((steps, np.array(y)) for y in ([1.0, 0.0, 0.0], [1.0, 1.0, 0.0]))
    figure = Curves("step", ["loss"], "loss", by="rate", **SAID)

    def drawn(name: str, median) -> str:
        return svg.inline(charts.curves(figure, [Bundle(None, name, runs, median, 0, 0)]), "figure", "label")

    middle = (steps, np.array([1.0, 0.5, 0.0]))
    assert len({round(y) for y in heights(drawn("", None))}) == 2
    assert len({round(y) for y in heights(drawn("", middle))}) == 3
    assert [drawn("a run", median).count(">a run</text>") for median in (None, middle)] == [1, 1]


def test_what_is_vacuous_is_small_on_a_dotted_line_and_in_the_legend():
    marks = [Mark(x, y, y / 2, 2 * y, 4, vacuous=vacuous) for x, y, vacuous in ((10, 9, 4), (20, 5, 3), (40, 2, 0))]
    drawn = line(marks)
    assert ">vacuous</text>" in drawn
    plain = line([replace(mark, vacuous=0) for mark in marks])
    assert ">vacuous</text>" not in plain
    for words, dashed in ((drawn, 1), (plain, 0)):
        styles = [path.get("style", "") for path in ET.fromstring(words).iter("path")]
        assert sum("dasharray" in style and "var(--series-1" in style for style in styles) == dashed


@pytest.mark.parametrize(
    ("mark", "leaves"),
    [
        (Mark(20, 5.0, 4.0, 6.0, 5), False),
        (Mark(20, 5.0, -1.0, 11.0, 5), True),
        (Mark(20, 5.0, 0.0, 10.0, 5), True),
        (Mark(20, -1.0, -3.0, 1.0, 5), True),
        (Mark(20, -1.0, None, None, 1), True),
        (Mark(20, -1.0, -1.0, None, 5, "above"), True),
    ],
)
def test_a_bar_that_leaves_a_logarithmic_axis_gets_an_arrowhead(mark, leaves):
    figure = Scatter("length", "gap", log_y=True, **SAID)
    others = (Mark(10, 2.0, 1.0, 4.0, 5), Mark(40, 3.0, 2.0, 5.0, 5))
    drawn = svg.inline(charts.scatter(figure, [ReducedSeries("first", (*others, mark))]), "figure", "label")
    assert (">0 or less</text>" in drawn) == leaves
    heads = [path for path in ET.fromstring(drawn).iter("path") if "fill: var(--series-1" in path.get("style", "")]
    assert len(heads) == (leaves and mark.y > 0)
    linear = svg.inline(
        charts.scatter(replace(figure, log_y=False), [ReducedSeries("first", (*others, mark))]), "figure", "label"
    )
    assert ">0 or less</text>" not in linear
    found = section(figure, Reading(pl.DataFrame({"length": [1, 2], "gap": [mark.y, 3.0]}), (), 0), "figure").notes
    assert any("reach 0 or less" in note for note in found) == (mark.y <= 0)


def test_a_mark_below_a_logarithmic_axis_is_drawn_at_its_edge():
    """An arrowhead on the axis, whatever else is there: with no positive number at all, too."""

    def signs(*values: float) -> int:
        marks = tuple(Mark(10 * (number + 1), y, None, None, 1) for number, y in enumerate(values))
        figure = Scatter("length", "gap", log_y=True, **SAID)
        return len(
            ET.fromstring(svg.inline(charts.scatter(figure, [ReducedSeries("", marks)]), "figure", "label")).findall(
                ".//use"
            )
        )

    assert signs(2.0, 3.0, -1.0) == signs(2.0, 3.0) + 3  # the mark, its tick, and the legend's sign
    assert signs(-1.0)


def test_a_point_left_of_a_logarithmic_axis_is_counted():
    figure = Scatter("length", "gap", log_x=True, **SAID)
    found = section(figure, Reading(pl.DataFrame({"length": [0, 1, 2], "gap": [1.0, 2.0, 3.0]}), (), 0), "figure")
    assert "Points that are not in the drawing because length is not positive: 1." in found.notes


def test_labels_of_ticks_do_not_touch():
    marks = [Mark(x, 5.0, 4.0, 6.0, 20) for x in (8192, 10_000, 100_000, 10**10)]
    drawn = line(marks, log_x=True)
    assert ">8,192</text>" in drawn
    assert ">10,000</text>" not in drawn
    assert ">100,000</text>" in drawn


def test_whole_numbers_have_whole_ticks():
    axes = Canvas(figsize=(3.2, 2.4)).subplots()
    axes.plot([2, 12], [0, 1])
    ticks(axes, [4, 8])  # published values reach further than the measured ones
    assert all(float(place).is_integer() for place in axes.get_xticks())
    ticks(axes, [4.5, 8.5])
    assert [text.get_text() for text in axes.get_xticklabels()]


def test_a_heat_map_covers_every_cell_that_is_not_zero():
    """The area of each shade, by the shoelace formula, is the number of its cells."""
    figure = Heatmap([Panel("best", "best head")], "example", "position", **SAID)
    matrix = np.array([[1.0, 1.0, 0.0, -1.0], [0.5, 1.0, np.nan, 1.0]])
    root = ET.fromstring(svg.inline(heatmap(figure, [matrix], [1]), "figure", "label"))
    areas: dict[tuple[str, str], float] = {}
    for path in root.iter("path"):
        found = re.search(r"fill: var\(--series-(\d)[^;]*(?:; opacity: ([0-9.]+))?", path.get("style", ""))
        if found:
            colour, shade = found[1], found[2] or "1"
            rings = [
                np.array(re.findall(r"(-?[0-9.]+) (-?[0-9.]+)", ring), float) for ring in path.get("d", "").split("z")
            ]
            area = sum(
                abs(np.sum(r[:, 0] * np.roll(r[:, 1], -1) - r[:, 1] * np.roll(r[:, 0], -1))) / 2
                for r in rings
                if len(r)
            )
            areas.setdefault((colour, shade), area)  # the first is the map, the second the scale beside it
    whole, half, negative = areas["1", "1"], areas["1", "0.5"], areas["2", "1"]
    assert whole / half == pytest.approx(4, rel=1e-3)
    assert negative / half == pytest.approx(1, rel=1e-3)


def test_an_empty_map_and_a_map_of_nothing_but_holes():
    figure = Heatmap([Panel("best", "best head")], "example", "position", **SAID)
    for matrix in (np.zeros((2, 2)), np.full((2, 2), np.nan)):
        assert ET.fromstring(svg.inline(heatmap(figure, [matrix], []), "figure", "label")).tag == "svg"


def test_every_series_has_its_own_colour_and_shape():
    assert len(set(svg.SERIES)) == len(svg.SERIES)
    figure = Line("length", Mean("gap"), **SAID)
    many = [ReducedSeries(str(number), MARKS[:1]) for number in range(9)]
    drawn = svg.inline(charts.line(figure, many), "figure", "label")
    assert all(f"--series-{number}" in drawn for number in range(1, 7))


def test_a_thing_looks_the_same_whatever_else_is_there():
    alone, beside = looks("architecture", ["ffn"]), looks("architecture", ["gru", "transformer", "ffn"])
    assert alone["ffn"] == beside["ffn"]
    assert looks("architecture", ["gru-128", "gru"])["gru-128"].colour == beside["gru"].colour
    for axis, names in (("architecture", ["gru", "gru-128", "own", "ffn"]), (None, list("abcdefghijkl"))):
        found = looks(axis, names)
        assert len({*found.values()}) == len(names)


def test_a_published_series_has_its_colour_though_nothing_was_measured():
    marks = (Mark(2, 5.0, 4.0, 6.0, 5), Mark(4, 6.0, 5.0, 7.0, 5))
    figure = Line("N", Mean("gap"), "architecture", published=[Published(2, 6, "published gru", "gru")], **SAID)
    drawn = svg.inline(charts.line(figure, [ReducedSeries("transformer", marks)]), "figure", "label")
    assert "var(--series-3" in drawn  # the GRU's
    assert ">published GRU</text>" in drawn


def test_few_draws_are_drawn_one_by_one():
    def signs(draws: tuple[float, ...], low: float | None = None) -> int:
        marks = [Mark(10, 5.0, low, low and 9.0, len(draws), draws=draws), Mark(20, 5.0, 4.0, 6.0, 9)]
        return len(ET.fromstring(line(marks)).findall(".//use"))

    assert signs((4.0, 5.0, 6.0)) == signs((5.0,)) + 2
    assert signs((1.0, 2.0, 3.0, 4.0, 5.0), 1.0) == signs(
        (1.0, 2.0, 3.0, 4.0, 5.0, 6.0), 1.0
    )  # an interval stands for them


def test_numbers_stand_where_they_are():
    """No sideways shift on a numeric axis, however many series meet there."""
    series = [ReducedSeries(name, (Mark(8, 1.0, None, None, 5), Mark(16, 2.0, None, None, 5))) for name in "abc"]
    assert places(series) == [[8.0, 16.0]] * 3
    words = [ReducedSeries(name, (Mark("rnn", 1.0, None, None, 5),)) for name in "ab"]
    assert len({place for (place,) in places(words)}) == 2


def test_references_end_where_the_data_do():
    far = Reference("bound", [1, 10_000], [1, 5])
    drawn = charts.line(Line("length", Mean("gap"), references=[far], **SAID), [ReducedSeries("", MARKS[:3])])
    (axes,) = drawn.axes
    assert axes.get_xlim()[1] < 60
    (curve,) = [found for found in axes.lines if found.get_label() == "bound"]
    assert np.asarray(curve.get_xdata())[-1] == 40


def test_an_axis_with_one_value_is_a_sentence():
    frame = pl.DataFrame({"length": [8, 8], "gap": [1.5, 2.5]})
    figure = Line("length", Mean("gap"), labels={"length": "tokens N"}, **SAID)
    found = section(figure, Reading(frame, (), 0), "figure")
    assert found.svg is None
    assert "1.5, 2.5 (tokens N = 8)." in found.notes
    published = replace(figure, published=[Published(16, 2, "a paper")])
    assert section(published, Reading(frame, (), 0), "figure").svg is not None


def test_panels_of_a_group_stand_beside_each_other():
    frame = pl.DataFrame({"length": [8, 16], "gap": [1.5, 2.5], "error": [1.0, 3.0]})
    panels = [
        Line("length", Mean(value), title=f"The {value} & more", answer="{last} at last") for value in ("gap", "error")
    ]
    found = section(Group(panels=panels, **SAID), Reading(frame, (), 0), "figure")
    assert found.heading == "2.5 at last"
    assert found.svg.count("<svg") == 2
    assert "The gap &amp; more" in found.svg
    missing = [panels[0], replace(panels[1], y=Mean("absent"), where={"length": 99})]
    assert (
        section(Group(panels=missing, **SAID), Reading(frame, (), 0), "figure").svg.count("<svg") == 2
    )  # wide and narrow


def test_blocks_of_a_matrix_are_named_and_framed():
    blocks = Blocks(("token", "own", "asked"), (2, None, None), outlined=(2, 1), label="its block")
    assert blocks.edges(10) == [0, 2, 6, 10]
    figure = Heatmap([Panel("m", "matrix")], "query", "key", blocks=blocks, **SAID)
    drawing = heatmap(figure, [np.eye(10)], [])
    (frame,) = [patch for patch in drawing.axes[0].patches if isinstance(patch, Rectangle)]
    assert (frame.get_x(), frame.get_y(), frame.get_width(), frame.get_height()) == (1.5, 5.5, 4, 4)
    assert drawing.axes[0].get_aspect() == 1
    with pytest.raises(ValueError, match="2 names and 1 sizes"):
        Blocks(("a", "b"), (1,))


@pytest.mark.parametrize("width", [svg.WIDTH, svg.PHONE])
@svg.styled
def test_labels_are_inside_the_drawing_and_below_its_legend(width):
    """By Matplotlib's own measure of what was drawn."""
    marks = (Mark(10, 5e3, None, None, 9), Mark(10**5, 7e5, None, None, 9))
    figure = Line("length", Mean("gap"), by="network", log_x=True, **SAID)
    drawing = charts.line(figure, [ReducedSeries(name, marks) for name in ("transformer", "mlp", "own")], width)
    heading = drawing.suptitle("A heading")
    drawing.draw_without_rendering()
    (axes,), (names,) = drawing.axes, drawing.legends
    box, above = axes.get_tightbbox(), names.get_window_extent()
    assert box is not None
    assert box.x0 >= 0
    assert box.x1 <= drawing.bbox.x1
    assert box.y0 >= 0
    assert box.y1 <= above.y0
    assert above.y1 <= heading.get_window_extent().y0
