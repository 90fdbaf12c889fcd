"""The posterior against a dense sum over the same prior, and its parts against formulas written down again."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit

from genscope.lab.statistics import success_curve
from genscope.lab.statistics.success_curve import Curve, posterior

LEVEL, LOWEST, HIGHEST = 0.8, 8, 2000


def link(skew, z):
    return 1 - (1 + skew * np.exp(z)) ** (-1 / skew)


def dense(counts, sizes=260, slopes=70, bends=40):
    """Quantiles of the log threshold given one, and the log odds of levelling off, by brute force.

    Bend by bend; the offset and the stretch of a link come from a root search and a difference
    quotient instead of formulas.
    """
    low, high = math.log(LOWEST) - success_curve.REACH, math.log(HIGHEST) + success_curve.REACH
    theta = low + (np.arange(sizes) + 0.5) / sizes * (high - low)
    least, most = np.log(success_curve.SLOPES)
    log_slopes = np.linspace(least, most, 2 * slopes + 1)[1::2]
    bend = (np.arange(bends) + 0.5) / bends
    x, won, n = (np.array(of, float) for of in zip(*((math.log(m), k, t) for m, (k, t) in counts.items()), strict=True))

    def weight(p):
        p = np.clip(p, 1e-13, 1 - 1e-13)
        return np.exp(np.tensordot(won, np.log(p), 1) + np.tensordot(n - won, np.log1p(-p), 1))

    slope, middle = np.exp(log_slopes)[:, None], theta[theta < math.log(HIGHEST)]
    prior = slope**-success_curve.TILT
    crossing, levelling = np.zeros(sizes), 0.0
    for b in bend:
        height = 1 - (1 - LEVEL) * b**2
        for skew in success_curve.SKEWS:
            z = brentq(lambda z, skew=skew, height=height: height * link(skew, z) - LEVEL, -40, 40)
            steepness = (link(skew, z + 1e-5) - link(skew, z - 1e-5)) / 2e-5 * height / (LEVEL * (1 - LEVEL))
            with np.errstate(over="ignore"):
                p = height * link(skew, slope / steepness * (x[:, None, None] - theta) + z)
            crossing += (prior * weight(p)).sum(axis=0) / len(success_curve.SKEWS)
        p = LEVEL * (1 - b**2) * expit(slope * (x[:, None, None] - middle))
        levelling += (prior * weight(p)).sum() / len(middle) * success_curve.LEVELLING
    cell = (high - low) / sizes
    reached = np.concatenate([[0], np.cumsum(crossing) / crossing.sum()])
    quantiles = np.interp([0.025, 0.5, 0.975], reached, np.linspace(low, high, sizes + 1))
    return quantiles, math.log(levelling) - math.log(crossing.sum() * cell)


@pytest.mark.parametrize(
    "counts",
    [
        {40: (5, 20), 60: (12, 20), 90: (17, 20), 150: (20, 20)},
        {30: (0, 16), 60: (1, 16), 72: (12, 16), 90: (16, 16)},
        {40: (0, 12), 80: (6, 12), 120: (10, 12), 400: (11, 12), 1000: (9, 12)},
        {20: (0, 40), 300: (24, 40), 2000: (25, 40)},
        {50: (4, 8)},
    ],
)
def test_quantiles_and_odds_agree_with_brute_force(counts):
    expected, odds = dense(counts)
    known = posterior(LEVEL, LOWEST, HIGHEST, counts)
    found = known.quantile([0.025, 0.5, 0.975], given_crossing=True)
    assert math.log(known.levels_off / (1 - known.levels_off)) == pytest.approx(odds, abs=0.5)
    if odds < 0:  # thresholds given one are nobody's question where there is probably none
        assert found == pytest.approx(expected, abs=0.1 * (expected[2] - expected[0]))


@pytest.mark.parametrize("skew", success_curve.SKEWS)
def test_a_crossing_curve_crosses_with_its_slope(skew):
    kind = success_curve._Kind(True, LEVEL, ((0.0, 9.0), (-1.0, 9.0), (0.0, 1.0)))
    curve = kind.curves(np.array(0.6), np.array(skew), np.array(4.0), np.array(math.log(5.0)))
    assert curve(4.0) == pytest.approx(LEVEL)
    assert curve(50.0) == pytest.approx(1 - 0.2 * 0.36)
    p = np.array([float(curve(4 - 1e-5)), float(curve(4 + 1e-5))])
    assert np.diff(np.log(p / (1 - p))) / 2e-5 == pytest.approx(5.0, rel=1e-4)


def test_links_are_logistic_or_nearly_log_log():
    z = np.linspace(-4, 3, 50)
    assert Curve(1.0, 1.0, 0.0, 0.0, 1.0)(z) == pytest.approx(expit(z))
    assert Curve(1.0, 1.0, 0.0, 0.0, 1e-6)(z) == pytest.approx(-np.expm1(-np.exp(z)), abs=1e-4)


def test_logarithms_are_those_of_the_probabilities_and_finite():
    curve = Curve(0.9, 7.0, 4.0, 0.3, 4.0)
    x = np.linspace(3, 5, 9)
    success, failure = curve.logarithms(x)
    assert np.exp(success) == pytest.approx(curve(x))
    assert np.exp(failure) == pytest.approx(1 - curve(x))
    for parts in Curve(1.0, 1e4, 4.0, 0.0, 0.15).logarithms(np.array([0.0, 9.0])):
        assert np.isfinite(parts).all()


def test_much_data_pin_the_threshold():
    sizes = (30, 45, 60, 70, 80, 90, 105, 130, 200, 400)
    counts = {m: (round(20_000 * 0.95 * float(expit(6 * math.log(m / 70)))), 20_000) for m in sizes}
    known = posterior(LEVEL, LOWEST, HIGHEST, counts)
    truth = math.log(70) + math.log(0.8 / 0.15) / 6
    low, middle, high = known.quantile([0.025, 0.5, 0.975])
    assert middle == pytest.approx(truth, abs=0.01)
    assert high - low < 0.03
    assert known.levels_off < 1e-9


def test_curves_of_the_ensemble_carry_the_posterior():
    known = posterior(LEVEL, LOWEST, HIGHEST, {40: (5, 20), 60: (12, 20), 90: (17, 20), 150: (16, 20)})
    weights, thresholds, success = known.ensemble(np.log([40.0, 150.0]))
    assert weights.sum() == pytest.approx(1)
    assert weights[np.isinf(thresholds)].sum() == pytest.approx(known.levels_off, abs=0.02)
    assert (success[1] >= success[0]).all()
    assert (success @ weights) == pytest.approx([0.25, 0.85], abs=0.1)
    assert known.beyond(math.log(150)) == pytest.approx(
        weights[(thresholds > math.log(150)) & np.isfinite(thresholds)].sum(), abs=0.03
    )
