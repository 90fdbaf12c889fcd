"""Pictures: the same numbers by matplotlib and by plotly, vectors with text that stays text, and refusals."""

import itertools

import numpy as np
import pytest
from matplotlib.axes import Axes

from genscope import bounds, plot
from genscope.fourier import from_expression
from genscope.lab import Search
from genscope.lab.statistics.estimation import estimate
from genscope.refusal import Refusal

COUNTS = {8: (1, 20), 16: (6, 20), 32: (17, 20), 64: (20, 20)}
THRESHOLD = estimate(Search(lowest=8, highest=64), COUNTS)


def _bound():
    norms = {"weight_norm": 1.0, "input_norm": 1.0, "epsilon": 0.1}
    return plot.bound_curve(bounds.linear_cover, vary="points", values=[10.0, 100.0, 1000.0], **norms)


PICTURES = {
    "success": lambda: plot.success_curve(THRESHOLD, COUNTS),
    "scaling": lambda: plot.scaling([10, 20, 40], [THRESHOLD] * 3),
    "bound": _bound,
    "level": lambda: plot.spectrum(from_expression("maj(x0,x1,x2)")),
    "component": lambda: plot.spectrum(from_expression("maj(x0,x1,x2)"), by="component"),
}


@pytest.mark.parametrize("name", PICTURES)
def test_both_libraries_draw_the_same_numbers(name, tmp_path):
    picture = PICTURES[name]()
    axes, figure = picture.matplotlib(), picture.plotly()
    assert isinstance(axes, Axes)
    assert len(figure.data) == len(picture.series)
    for each, trace in zip(picture.series, figure.data, strict=True):
        assert list(trace.y) == pytest.approx(list(each.y))
    lines = [line.get_ydata() for line in axes.lines]
    for each in picture.series:
        if each.kind == "bars":
            assert [bar.get_height() for bar in axes.containers[0]] == pytest.approx(list(each.y))
        else:
            assert any(len(line) == len(each.y) and np.allclose(line, each.y) for line in lines)
    assert axes.get_xscale() == ("log" if picture.log_x else axes.get_xscale())


def test_a_success_curve_crosses_its_level_at_the_threshold():
    picture = PICTURES["success"]()
    fitted, measured = picture.series
    crossing = np.interp(picture.levels["80 %"], fitted.y, fitted.x)
    assert crossing == pytest.approx(THRESHOLD.size, rel=0.1)
    assert list(measured.y) == [0.05, 0.3, 0.85, 1.0]
    assert all(low <= y <= high for low, y, high in zip(measured.low, measured.y, measured.high, strict=True))


def test_a_bound_curve_has_the_values_of_the_bound():
    told = bounds.linear_cover(weight_norm=1.0, input_norm=1.0, epsilon=0.1, points=100.0)
    assert _bound().series[0].y[1] == told.value


def test_level_weights_of_a_majority_are_those_of_the_textbook():
    """Of three bits with values 0 and 1: 1/4 for the mean, three times 1/16 for single bits, 1/16 for all three."""
    assert plot.spectrum(from_expression("maj(x0,x1,x2)")).series[0].y == pytest.approx([1 / 4, 3 / 16, 0, 1 / 16])


def test_the_mean_is_a_component_too():
    bars = plot.spectrum(from_expression("x0 & x1"), by="component").series[0]
    assert dict(zip(bars.x, bars.y, strict=True)) == {"constant": 0.25, "x0": -0.25, "x1": -0.25, "x0 x1": 0.25}


@pytest.mark.parametrize("width", ["column", "text"])
@pytest.mark.parametrize("expression", ["maj(x0,x1,x2,x3,x4)", "x0&x1", "x0&x1&x2"])
def test_names_of_bars_do_not_touch(expression, width):
    figure = plot.spectrum(from_expression(expression), by="component").figure(width)
    figure.canvas.draw()
    boxes = [label.get_window_extent() for label in figure.axes[0].get_xticklabels()]
    assert all(left.x1 < right.x0 for left, right in itertools.pairwise(boxes))


@pytest.mark.parametrize(("sizes", "least"), [((7.0, 17.0), 2), ((10.0, 90.0), 3), ((3.0, 3000.0), 3)])
def test_a_logarithmic_axis_has_several_ticks(sizes, least):
    picture = plot.Picture("", "T", "samples", [plot.Series("m", [16, 128], sizes)], log_x=True, log_y=True)
    axes = picture.matplotlib()
    low, high = axes.get_ylim()
    shown = [text.get_text() for text in axes.get_yticklabels() if low <= text.get_position()[1] <= high]
    assert len(shown) >= least
    if sizes[1] < 100:
        assert all(float(each) > 1 for each in shown)  # plain numbers


def test_files_hold_vectors_with_text(tmp_path):
    picture = PICTURES["success"]()
    picture.save(tmp_path / "f.svg")
    text = (tmp_path / "f.svg").read_text()
    assert ">share of trials</text>" in text
    assert "<image" not in text
    picture.save(tmp_path / "f.pdf", width="text")
    assert (tmp_path / "f.pdf").read_bytes()[:5] == b"%PDF-"
    assert b"/Subtype /Type3" not in (tmp_path / "f.pdf").read_bytes()
    assert picture._repr_svg_().startswith("<?xml")


def test_a_figure_is_as_wide_as_a_column():
    assert PICTURES["level"]().figure("column").get_figwidth() == 3.25
    assert PICTURES["level"]().figure(5).get_figwidth() == 5


@pytest.mark.parametrize(
    "ask",
    [
        lambda: PICTURES["level"]().save("f.gif"),
        lambda: PICTURES["level"]().figure("wide"),
        lambda: PICTURES["level"]().figure(0),
        lambda: plot.spectrum(from_expression("x0"), by="size"),
        lambda: plot.success_curve(estimate(Search(), {})),
        lambda: plot.scaling([10], [estimate(Search(), {})]),
    ],
)
def test_what_cannot_be_drawn_is_refused(ask):
    with pytest.raises(Refusal):
        ask()
