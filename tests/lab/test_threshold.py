"""The estimator on simulated success curves with known truth."""

import math

import numpy as np
import pytest
from scipy import stats

from genscope.lab.threshold import Search, estimate, first_reaching, next_round

SEARCH = Search(start=60)
CURVES = [
    ("logit", 3, 1.0),
    ("logit", 5, 1.0),
    ("logit", 5, 0.95),
    ("logit", 10, 1.0),
    ("logit", 30, 1.0),
    ("probit", 4, 1.0),
]


def success(kind, slope, log_threshold, height, level=0.8):
    """p(m) with p = level at the threshold and logit (or probit) slope per e-fold of m."""
    link, inverse = (stats.norm.cdf, stats.norm.ppf) if kind == "probit" else (lambda z: 1 / (1 + np.exp(-z)), None)
    at = inverse(level / height) if inverse else math.log((level / height) / (1 - level / height))
    return lambda size: height * float(link(at + slope * (math.log(size) - log_threshold)))


def play(search, probability, rng):
    counts = {}
    while (asked := next_round(search, counts)) is not None:
        for size, number in asked.items():
            won, tried = counts.get(size, (0, 0))
            counts[size] = won + int(rng.binomial(number, probability(size))), tried + number
    return counts


def covers(found, truth):
    return (found.low is None or found.low <= truth) and (found.high is None or truth <= found.high)


def shrunken(found, truth, factor):
    if found.size is None or found.low is None or found.high is None:
        return True
    low, high = (math.log(found.size) + factor * math.log(end / found.size) for end in (found.low, found.high))
    return low <= math.log(truth) <= high


def coverage(curves, studies, seed):
    rng = np.random.default_rng(seed)
    covered = planted = 0
    for number in range(studies):
        truth = math.exp(math.log(80) + rng.uniform(-0.5, 0.5))
        found = estimate(SEARCH, play(SEARCH, success(*_at(curves[number % len(curves)], truth)), rng))
        covered += covers(found, truth)
        planted += shrunken(found, truth, 0.35)
    return covered, planted


def _at(curve, truth):
    kind, slope, height = curve
    return kind, slope, math.log(truth), height


def test_intervals_cover_on_steep_curves():
    # binomial limits with a false-alarm rate of 1e-6 at a true coverage of 0.93 (95 % nominal, less what stopping at a
    # narrow interval costs); intervals of a third of the length must fail
    covered, planted = coverage([("logit", 10, 1.0), ("logit", 30, 1.0)], 80, seed=0)
    least = stats.binom.ppf(1e-6, 80, 0.93)
    assert covered >= least
    assert planted < least


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_intervals_cover_in_a_thousand_studies():
    covered, planted = coverage(CURVES, 1000, seed=1)
    print(f"coverage {covered / 1000:.3f}")
    assert covered >= stats.binom.ppf(1e-6, 1000, 0.95) - 10  # one point for the stopping rule
    assert planted < stats.binom.ppf(1e-6, 1000, 0.93)


@pytest.mark.parametrize("height", [0.5, 0.7])
def test_a_curve_that_levels_off_has_no_threshold(height):
    rng = np.random.default_rng(2)
    for _ in range(6):

        def probability(size):
            return height / (1 + math.exp(-8 * math.log(size / 60)))

        found = estimate(SEARCH, play(SEARCH, probability, rng))
        assert found.state in ("plateau", "above", "unresolved")
        assert found.size is None


def test_limits_of_the_search_are_censored_observations():
    search = Search(lowest=20, highest=200, start=60)
    rng = np.random.default_rng(3)
    always, never = (estimate(search, play(search, lambda size, p=p: p, rng)) for p in (1.0, 0.0))
    assert (always.state, always.size, always.low, always.high) == ("below", None, None, 20)
    assert never.size is None
    assert never.low == 200
    assert never.high is None


def test_the_same_counts_give_the_same_answer():
    counts = {50: (8, 16), 70: (12, 16), 100: (16, 16)}
    assert next_round(SEARCH, counts) == next_round(SEARCH, dict(reversed(counts.items())))
    assert estimate(SEARCH, counts) == estimate(SEARCH, counts)


def test_rounds_are_whole_batches_within_the_limits():
    counts = play(SEARCH, success("logit", 5, math.log(80), 1.0), np.random.default_rng(4))
    assert all(number % SEARCH.batch == 0 for _, number in counts.values())
    assert all(SEARCH.lowest <= size <= SEARCH.highest for size in counts)
    assert sum(number for _, number in counts.values()) <= SEARCH.trials


def test_the_adaptive_design_needs_a_third_of_the_trials_of_an_even_one():
    # the even design: equal numbers at 20 sizes evenly spaced in the logarithm, from a tenth to ten times the truth
    rng, truth = np.random.default_rng(5), 80
    for slope in (10, 30):  # benchmarks/threshold_design.py measures the ratio for flatter curves too
        probability = success("logit", slope, math.log(truth), 1.0)
        widths, used = [], []
        for _ in range(9):
            found = estimate(SEARCH, play(SEARCH, probability, rng))
            widths.append(math.log(found.high / found.low))
            used.append(found.trials)
        sizes = np.unique(np.geomspace(truth / 10, truth * 10, 20).round().astype(int))
        wide = Search(lowest=1, highest=4000)
        number = math.ceil(3 * np.mean(used) / len(sizes))
        even = []
        for _ in range(9):
            counts = {int(size): (int(rng.binomial(number, probability(size))), number) for size in sizes}
            found = estimate(wide, counts)
            even.append(math.log(found.high / found.low) if found.high and found.low else math.inf)
        assert np.median(widths) < np.median(even)


def test_the_papers_reading_of_a_grid():
    assert first_reaching({40: (7, 10), 60: (8, 10), 80: (10, 10)}) == 60
    assert first_reaching({40: (7, 10)}) is None


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        ({"level": 1.0}, "Choose between"),
        ({"lowest": 10, "highest": 5}, "Widen the range"),
        ({"start": 5000}, "leave it out"),
        ({"width": 0.0}, "a width is positive"),
        ({"batch": 3}, "multiple of the batch"),
    ],
)
def test_impossible_searches_are_refused(arguments, advice):
    with pytest.raises(ValueError, match=advice):
        Search(**arguments)


def test_impossible_counts_are_refused():
    with pytest.raises(ValueError, match="Count again"):
        estimate(SEARCH, {50: (5, 4)})
