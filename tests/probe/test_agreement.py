import math

import numpy as np
import pytest

from genscope.estimate import clopper_pearson
from genscope.fourier.walsh import WalshFunction
from genscope.probe import Oracle, agree
from genscope.probe.agreement import mean_interval
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


def test_a_difference_of_the_promised_number_of_terms_is_seen():
    """The indicator of a pattern of ten bits has 1024 components and is non-zero on one input in 1024."""
    places = np.random.default_rng(1).permutation(30)[:10]

    def missed(limit):
        answers = [
            compare(
                lambda x: F(x) + (x[:, places] == np.arange(10) % 2).all(axis=1), F, rng=seed(10) + number, limit=limit
            ).reached
            for number in range(100)
        ]
        return clopper_pearson(sum(map(bool, answers)), 100, confidence=1 - 1e-9)[0]

    assert missed(10**6) <= 0.01
    assert missed(1000) > 0.01  # planted: fewer inputs than that takes


def test_an_and_of_all_bits_is_seen_at_the_input_of_ones():
    assert compare(lambda x: F(x) + x.all(axis=1), F).reached is False
    assert compare(lambda x: F(x) + (x[:, 1:] == 0).all(axis=1) * (x[:, 0] == 1), F).reached is False


def test_too_few_queries_are_no_agreement():
    assert compare(F, F, limit=16).reached is None
    assert compare(F, F, limit=1).reached is None


def test_closeness_is_accepted_refuted_or_open():
    def off(amount):
        return WalshFunction(30, (*F.supports, (0, 1, 2, 3), (4, 5)), (*F.coefficients, amount, amount))

    for amount, expected in ((0.05, True), (0.3, False), (0.1, None)):  # mean squares 0.005, 0.18 and 0.02
        assert compare(F, off(amount), tolerance=0.02, bound=4.0, limit=200_000).reached is expected


def test_a_tolerance_too_small_for_a_mean_is_met_point_by_point():
    found = compare(lambda x: F(x) + 1e-6 * (x.sum(axis=1) % 3), F, tolerance=1e-11, bound=4.0, limit=10**5)
    assert found.reached
    assert found.share < 0.001
    assert not compare(lambda x: F(x) + 1e-5 * (x.sum(axis=1) % 3), F, tolerance=1e-11, bound=4.0, limit=10**5).reached


def test_the_interval_of_a_mean_covers_as_it_says():
    """Skewed numbers in [0, 1], 1000 intervals at 90 %; planted: the range is forgotten."""
    rng = np.random.default_rng(seed(20))
    samples = (rng.random((1000, 200)) < 0.01).astype(float)
    for forget, covers in ((1.0, True), (1e-6, False)):
        missed = 0
        for row in samples:
            low, high = mean_interval(row, forget, 0.1)
            missed += not low <= 0.01 <= max(high, row.mean())
        assert (clopper_pearson(missed, 1000, confidence=1 - 1e-9)[0] <= 0.1) == covers


def test_the_interval_by_hand():
    low, high = mean_interval(np.array([0.0, 1.0, 0.0, 1.0]), 1.0, 0.05)
    assert (low, high) == (0.0, 1.0)  # four numbers say nothing
    assert mean_interval(np.array([0.5]), 2.0, 0.05) == (0.0, 2.0)
    many = np.full(10**6, 0.25)
    reach = 7 * math.log(80) / (3 * (10**6 - 1))
    assert mean_interval(many, 1.0, 0.05) == pytest.approx((0.25 - reach, 0.25 + reach))
