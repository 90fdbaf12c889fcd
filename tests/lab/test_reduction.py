"""Reductions against values worked out by hand, and against enumeration."""

import itertools
import math

import numpy as np
import polars as pl
import pytest
from scipy import stats

from genscope.lab.plans.figure import Crossing, Curves, Heatmap, Line, Mean, Median, Panel, Scatter, Smallest, Success
from genscope.lab.results import reading
from genscope.lab.results.reading import Reading
from genscope.lab.results.reduction import lines, points, success
from genscope.lab.statistics.estimation import estimate
from genscope.lab.statistics.threshold import Search, Threshold
from genscope.report import arrays

SAID = {"title": "A title", "caption": "What one sees."}


def line(reduction, values, **columns):
    """The one mark of a reduction of one cell."""
    frame = pl.DataFrame({"x": [3] * len(values), "value": values, "seed": range(len(values)), **columns}, strict=False)
    (series,) = lines(Line("x", reduction, **SAID), Reading(frame, (), 0))
    (mark,) = series.marks
    return mark


def test_mean_has_students_interval():
    mark = line(Mean("value"), [1.0, 2.0, 3.0, 4.0])
    half = 3.182446 * math.sqrt((2.25 + 0.25 + 0.25 + 2.25) / 3) / 2  # 97.5 % point of t with 3 degrees of freedom
    assert (mark.y, mark.trials, mark.state, mark.missing) == (2.5, 4, "measured", 0)
    assert mark.low == pytest.approx(2.5 - half, abs=1e-6)
    assert mark.high == pytest.approx(2.5 + half, abs=1e-6)


def test_on_a_logarithmic_axis_the_mean_is_geometric():
    """Student's interval of the logarithms, which never reaches 0."""
    draws = [1.0, 10.0, 100.0, 1000.0]
    frame = pl.DataFrame({"x": [1] * 4, "value": draws})
    (found,) = lines(Line("x", Mean("value"), log_y=True, **SAID), Reading(frame, (), 0))[0].marks
    logs = np.log(draws)
    reach = stats.t.ppf(0.975, 3) * logs.std(ddof=1) / 2
    assert (found.y, found.low, found.high) == pytest.approx(
        np.exp([logs.mean(), logs.mean() - reach, logs.mean() + reach])
    )
    assert found.low > 0
    with_zero = pl.DataFrame({"x": [1] * 4, "value": [0.0, *draws[1:]]})
    (plain,) = lines(Line("x", Mean("value"), log_y=True, **SAID), Reading(with_zero, (), 0))[0].marks
    assert plain.y == pytest.approx(277.5)  # no logarithm: the plain mean


def test_fewer_than_four_draws_have_no_interval_and_are_handed_over():
    few, enough = (line(Mean("value"), [1.0, 2.0, 4.0, 8.0][:n]) for n in (3, 4))
    assert (few.low, few.high, few.draws) == (None, None, (1.0, 2.0, 4.0))
    assert enough.low is not None
    assert line(Mean("value"), [True, False]).draws == ()  # a share has Wilson's interval however few there are


def test_mean_of_truth_values_has_wilsons_interval():
    mark = line(Mean("value"), [True] * 8 + [False] * 2)
    n, p, z = 10, 0.8, 1.959964
    middle = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * math.sqrt(p * (1 - p) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    assert mark.y == 0.8
    assert (mark.low, mark.high) == pytest.approx((middle - half, middle + half), abs=1e-6)


def test_one_trial_has_no_interval():
    mark = line(Mean("value"), [2.0])
    assert (mark.y, mark.low, mark.high, mark.trials) == (2.0, None, None, 1)


def test_a_bound_is_vacuous_where_all_of_its_trials_are():
    frame = pl.DataFrame({"x": [1, 1, 2, 2, 3], "bound": [0.3, 0.4, 0.2, 0.3, 0.1]})
    frame = frame.with_columns(vacuous=pl.Series([True, True, False, True, None]))
    (series,) = lines(Line("x", Mean("bound"), vacuous="vacuous", **SAID), Reading(frame, (), 0))
    assert [(mark.vacuous, mark.says_nothing) for mark in series.marks] == [(2, True), (1, False), (0, False)]
    (unasked,) = lines(Line("x", Mean("bound"), **SAID), Reading(frame, (), 0))
    assert not any(mark.vacuous for mark in unasked.marks)


def test_what_is_no_number_is_counted():
    mark = line(Mean("value"), [1.0, None, math.nan, math.inf, 3.0])
    assert (mark.y, mark.trials, mark.missing) == (2.0, 2, 3)
    nothing = line(Mean("value"), [None, math.nan])
    assert (nothing.y, nothing.state, nothing.missing, nothing.words) == (
        None,
        "none",
        2,
        "no trial has a finite number",
    )


def test_a_censored_mean_is_a_lower_limit():
    mark = line(Mean("value", reached="reached"), [100, 200, 300], reached=[True, True, False])
    assert (mark.y, mark.high, mark.state) == (200, None, "above")
    assert mark.words == "1 of 3 stopped at their budget"


def test_median_between_the_second_and_the_ninth_of_ten():
    mark = line(Median("value"), [4, 9, 1, 7, 3, 10, 2, 8, 5, 6])
    assert (mark.y, mark.low, mark.high) == (5.5, 2, 9)
    assert line(Median("value"), [1, 2, 3, 4, 5]).low is None  # five values enclose the median with 93.75 % only


@pytest.mark.parametrize("n", range(6, 13))
def test_the_interval_of_the_median_covers_it(n):
    """Over all ways in which n values fall below or above the median, each equally likely."""
    mark = line(Median("value"), list(range(1, n + 1)))
    k = mark.low  # the k-th smallest value is k
    covered = [k <= sum(below) <= n - k for below in itertools.product((0, 1), repeat=n)]
    wider = [k + 1 <= sum(below) <= n - k - 1 for below in itertools.product((0, 1), repeat=n)]
    assert mark.high == n + 1 - k
    assert np.mean(covered) >= 0.95 > np.mean(wider)


def test_a_censored_value_lies_above_everything():
    reached = [True, True, False]
    assert line(Median("value", reached="reached"), [10, 500, 100], reached=reached).y == 500
    mark = line(Median("value", reached="reached"), [10, 90, 100], reached=[True, False, False])
    assert (mark.y, mark.low, mark.high, mark.state) == (90, 90, None, "above")


def cell(outcomes):
    """Sizes with their outcomes as columns."""
    rows = [(size, won) for size, several in outcomes.items() for won in several]
    return {"values": [None] * len(rows), "size": [size for size, _ in rows], "solved": [won for _, won in rows]}


def test_smallest_size_that_reaches_the_level():
    outcomes = {10: [True, False], 20: [True, True, True, True, False], 40: [True]}
    mark = line(Smallest("size", "solved", 0.8), **cell(outcomes))
    assert (mark.y, mark.low, mark.high, mark.trials, mark.state) == (20, 10, 20, 8, "measured")
    first = line(Smallest("size", "solved", 0.5), **cell(outcomes))
    assert (first.y, first.low, first.high, first.state) == (10, None, 10, "below")


def test_a_level_that_is_not_reached_is_censored():
    mark = line(Smallest("size", "solved", 0.8), **cell({10: [False], 20: [True, False]}))
    assert (mark.low, mark.high, mark.state, mark.words) == (
        20,
        None,
        "above",
        "not reached by any size that was tried",
    )


def test_a_trial_without_outcome_is_neither_success_nor_failure():
    mark = line(Smallest("size", "solved", 1.0), **cell({10: [True, None]}))
    assert (mark.y, mark.trials, mark.missing) == (10, 1, 1)


def shares(**won_of_20):
    """A cell with 20 trials at each size, of which so many are successes."""
    return cell({int(size[1:]): [True] * won + [False] * (20 - won) for size, won in won_of_20.items()})


CROSSING = Crossing("size", "solved", 0.8)


def test_a_crossing_is_the_estimate_of_a_search_over_the_sizes_tried():
    mark = line(CROSSING, **shares(m20=0, m40=10, m80=19, m160=20))
    search = Search("size", "solved", 0.8, lowest=20, highest=160)
    expected = estimate(search, {20: (0, 20), 40: (10, 20), 80: (19, 20), 160: (20, 20)})
    assert mark.threshold == expected
    assert (mark.y, mark.low, mark.high) == (expected.size, expected.low, expected.high)
    assert (mark.state, mark.trials, mark.words) == ("measured", 80, "")
    assert 20 < mark.low < mark.y < mark.high < 160


@pytest.mark.parametrize(
    ("found", "drawn", "word"),
    [
        (Threshold(None, 80.0, None, 60, "above"), (80, 80, None, "above"), "above all sizes that were tried"),
        (Threshold(None, None, 20.0, 60, "below"), (20, None, 20, "below"), "below all sizes that were tried"),
        (Threshold(None, 80.0, None, 60, "plateau"), (None, 80, None, "none"), "levels off below 80 %"),
        (
            Threshold(None, 40.0, None, 60, "unresolved"),
            (40, 40, None, "above"),
            "too few trials to bound it from above",
        ),
        (
            Threshold(None, None, 40.0, 60, "unresolved"),
            (40, None, 40, "below"),
            "too few trials to bound it from below",
        ),
        (Threshold(None, None, None, 60, "unresolved"), (None, None, None, "none"), "too few trials to tell"),
    ],
)
def test_a_threshold_without_a_size_keeps_what_is_known_and_says_why(found, drawn, word, monkeypatch):
    monkeypatch.setattr(reading, "_estimate", lambda *_: found)
    mark = line(CROSSING, **shares(m20=1))
    assert (mark.y, mark.low, mark.high, mark.state) == drawn
    assert word in mark.words
    assert mark.threshold is found


def test_thresholds_are_those_of_the_studys_own_search():
    columns = shares(m20=2, m40=10, m80=19)
    frame = pl.DataFrame({"x": [3] * 60, **{name: columns[name] for name in ("size", "solved")}})
    wide = Search("size", "solved", 0.5, lowest=1, highest=10_000)
    (series,) = lines(Line("x", CROSSING, **SAID), Reading(frame, (), 0, wide))
    again = Search("size", "solved", 0.8, lowest=1, highest=10_000)
    assert series.marks[0].threshold == estimate(again, {20: (2, 20), 40: (10, 20), 80: (19, 20)})
    (rates,) = success(Success(CROSSING, panel="x", **SAID), Reading(frame, (), 0, wide))
    assert rates.threshold == series.marks[0].threshold
    assert (rates.panel, rates.sizes, rates.successes, rates.trials) == (3, (20, 40, 80), (2, 10, 19), (20, 20, 20))


def frame_of_two():
    return pl.DataFrame(
        {
            "preset": ["b", "a", "b", "a"],
            "length": [20, 10, 10, 20],
            "seed": [0, 0, 0, 0],
            "gap": [4.0, 1.0, 3.0, 2.0],
        }
    )


def test_series_and_marks_are_in_order_whatever_the_rows_are():
    found = lines(Line("length", Mean("gap"), "preset", **SAID), Reading(frame_of_two(), (), 0))
    assert [(each.name, [(mark.x, mark.y) for mark in each.marks]) for each in found] == [
        ("a", [(10, 1.0), (20, 2.0)]),
        ("b", [(10, 3.0), (20, 4.0)]),
    ]


def test_where_selects_and_orders():
    figure = Line("length", Mean("gap"), "preset", where={"preset": ["b", "a"], "length": 10}, **SAID)
    found = lines(figure, Reading(frame_of_two(), (), 0))
    assert [(each.name, [mark.y for mark in each.marks]) for each in found] == [("b", [3.0]), ("a", [1.0])]
    assert (
        lines(Line("length", Mean("gap"), where={"absent": 1}, **SAID), Reading(frame_of_two(), (), 0))[0].marks == ()
    )


def curves(rows, **settings):
    frame = pl.DataFrame(rows, strict=False)
    (bundle,) = arrays.curves(Curves("step", ["loss"], "loss", **settings, **SAID), frame)
    return bundle


def test_a_run_that_ended_early_keeps_its_last_value_in_the_median():
    bundle = curves({"step": [[0, 10, 20], [0, 10], [0, 10, 20]], "loss": [[3, 2, 1], [5, 0.5], [4, 4, 4]]})
    assert bundle.median[0].tolist() == [0, 10, 20]
    assert bundle.median[1].tolist() == [4, 2, 1]
    assert (bundle.diverged, bundle.missing) == (0, 0)


def test_a_median_is_made_only_where_it_is_asked_for():
    """Two runs that jump at different times: between them the median is at a height that neither has."""
    frame = pl.DataFrame({"loss": [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]]})
    with_median, without = (
        arrays.curves(Curves("step", ["loss"], "loss", every=1, median=median, **SAID), frame)[0]
        for median in (True, False)
    )
    assert with_median.median is not None
    assert with_median.median[1].tolist() == [1, 0.5, 0]
    assert without.median is None
    assert [y.tolist() for _, y in without.curves] == [[1, 0, 0], [1, 1, 0]]


def test_a_diverged_run_is_kept_and_counted():
    rows = {"loss": [[2.0, math.nan, math.nan], [1.0, 1.0, 1.0], None]}
    bundle = curves(rows, every=5)
    assert bundle.diverged == 1
    assert bundle.missing == 1
    assert len(bundle.curves) == 2
    assert bundle.median[0].tolist() == [0, 5, 10]
    assert bundle.median[1].tolist() == [1.5, 1, 1]


def test_a_heat_map_shows_one_trial():
    rows = {"seed": [1, 0, 2], "best": [[[1.0]], None, [[2.0, 3.0]]], "support": [[0], None, [1]]}
    frame = pl.DataFrame(rows)
    figure = Heatmap([Panel("best", "best head")], "example", "position", marked="support", **SAID)
    matrices, marked, seed = arrays.matrices(figure, frame) or pytest.fail("no matrices")
    assert (matrices[0].tolist(), marked, seed) == ([[1.0]], (0,), 1)
    other = Heatmap([Panel("best", "best head")], "example", "position", seed=2, **SAID)
    matrices, marked, seed = arrays.matrices(other, frame) or pytest.fail("no matrices")
    assert (matrices[0].tolist(), marked, seed) == ([[2.0, 3.0]], (), 2)
    absent = Heatmap([Panel("worst", "worst head")], "example", "position", **SAID)
    assert arrays.matrices(absent, frame) is None


def test_scatter_has_one_mark_per_trial_with_two_standard_errors():
    frame = pl.DataFrame({"degree": [1, 2], "gap": [0.5, math.nan], "gap_sem": [0.1, 0.1]})
    (series,) = points(Scatter("degree", "gap", sem="gap_sem", **SAID), frame)
    good, bad = series.marks
    assert (good.low, good.high) == pytest.approx((0.5 - 0.1959964, 0.5 + 0.1959964), abs=1e-6)
    assert (bad.x, bad.y, bad.missing) == (2, None, 1)
