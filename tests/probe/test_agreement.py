import math

import numpy as np
import pytest

from genscope.fourier.walsh import WalshFunction
from genscope.probe import Oracle, agree
from genscope.probe import agreement as module
from genscope.probe.agreement import inputs_needed, mean_interval, variance_interval
from tests.chance import Seldom
from tests.probe.functions import random_sum
from tests.seeds import seed

F = random_sum(np.random.default_rng(0), 30, 3, 6)


def compare(f, g, dim=30, limit=10**6, rng=0, **options):
    oracle = Oracle(f, dim, limit=limit)
    found = agree(oracle, g, rng=np.random.default_rng(rng), **{"confidence": 0.99, **options})
    assert oracle.queries <= limit
    return found


def test_a_function_agrees_with_itself():
    found = compare(F, F)
    assert found.reached
    assert found.terms >= 1024 * 0.999
    assert found.share == pytest.approx(math.log(100) / found.inputs)
    assert found.mean_squared_error < 1e-20


def test_a_difference_of_the_promised_number_of_terms_is_seen(monkeypatch):
    """The indicator of a pattern of ten bits has 1024 components and is non-zero on one input in 1024.

    Planted: a fifth of the inputs, which miss it in 4 of 10 comparisons.
    """
    places = np.random.default_rng(1).permutation(30)[:10]
    rng, law = np.random.default_rng(seed(10)), Seldom(200, 0.01, planted=0.3)

    def missed():
        oracle = Oracle(lambda x: F(x) + (x[:, places] == np.arange(10) % 2).all(axis=1), 30)
        return sum(bool(agree(oracle, F, rng=rng, confidence=0.99).reached) for _ in range(law.trials))

    assert law.explains(missed())
    monkeypatch.setattr(module, "TERMS", 200)
    assert not law.explains(missed())


def test_an_and_of_all_bits_is_seen_at_the_input_of_ones():
    assert compare(lambda x: F(x) + x.all(axis=1), F).reached is False
    assert compare(lambda x: F(x) + (x[:, 1:] == 0).all(axis=1) * (x[:, 0] == 1), F).reached is False


def test_too_few_queries_are_no_agreement():
    enough = inputs_needed(0.99) + 3 + 62  # with the trial of the form, and inputs near zeros and ones
    for limit in (1, 16, 1000, enough - 1):
        assert compare(F, F, limit=limit).reached is None
    assert compare(F, F, limit=enough).reached


def test_closeness_is_accepted_refuted_or_open():
    def off(amount):
        return WalshFunction(30, (*F.supports, (0, 1, 2, 3), (4, 5)), (*F.coefficients, amount, amount))

    bounds = {"bound": 2.0, "other_bound": 2.0}
    for amount, expected in ((0.05, True), (0.3, False), (0.1, None)):  # mean squares 0.005, 0.18 and 0.02
        assert compare(F, off(amount), tolerance=0.02, **bounds, limit=200_000).reached is expected


@pytest.mark.parametrize("scale", [1e-6, 0.01, 1e6])
def test_a_tolerance_is_a_share_of_the_variance(scale):
    """Multiplied by a number, or with another constant, two functions are as close as before."""
    other = WalshFunction(30, (*F.supports, (4, 5)), (*F.coefficients, 0.2))  # a share of 0.04
    for tolerance, expected in ((0.1, True), (0.01, False)):
        found = compare(
            lambda x: scale * (F(x) + 3),
            lambda x: scale * (other(x) + 3),
            tolerance=tolerance,
            bound=5 * scale,
            other_bound=5 * scale,
            limit=300_000,
        )
        assert found.reached is expected
        assert found.left_out == pytest.approx(0.04, rel=0.1)


def test_a_constant_agrees_within_a_tolerance():
    assert compare(lambda x: np.full(len(x), 2.5), lambda x: np.full(len(x), 2.5), tolerance=0.1).reached
    assert compare(lambda x: np.full(len(x), 2.5), lambda x: np.zeros(len(x)), tolerance=0.1).reached is False


def test_a_tolerance_too_small_for_a_mean_is_met_point_by_point():
    close = {"tolerance": 1e-11, "bound": 2.0, "other_bound": 2.0, "limit": 10**5}
    found = compare(lambda x: F(x) + 1e-6 * (x.sum(axis=1) % 3), F, **close)
    assert found.reached
    assert found.share < 0.001
    assert not compare(lambda x: F(x) + 1e-5 * (x.sum(axis=1) % 3), F, **close).reached


def test_the_interval_of_a_mean_covers_as_it_says():
    """Skewed numbers in [0, 1], 1000 intervals at 90 %; planted: the range is forgotten, and 40 % miss."""
    rng, law = np.random.default_rng(seed(20)), Seldom(1000, 0.1, planted=0.3)
    samples = (rng.random((law.trials, 200)) < 0.01).astype(float)
    for forget, covers in ((1.0, True), (1e-6, False)):
        missed = 0
        for row in samples:
            low, high = mean_interval(row, forget, 0.1)
            missed += not low <= 0.01 <= max(high, row.mean())
        assert law.explains(missed) == covers


def test_the_interval_of_a_variance():
    values = np.random.default_rng(21).choice([-1.0, 0.5], 100_001)
    low, high = variance_interval(values, 1.0, 0.01)
    assert 0.54 < low < 0.5625 < high < 0.58
    assert variance_interval(values[:3], 1.0, 0.01) == (0.0, 1.0)


def test_the_interval_by_hand():
    low, high = mean_interval(np.array([0.0, 1.0, 0.0, 1.0]), 1.0, 0.05)
    assert (low, high) == (0.0, 1.0)  # four numbers say nothing
    assert mean_interval(np.array([0.5]), 2.0, 0.05) == (0.0, 2.0)
    many = np.full(10**6, 0.25)
    reach = 7 * math.log(80) / (3 * (10**6 - 1))
    assert mean_interval(many, 1.0, 0.05) == pytest.approx((0.25 - reach, 0.25 + reach))
