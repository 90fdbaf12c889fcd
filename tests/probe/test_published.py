"""Appendix H's testers: survival by listing, what they find, and that they wilt as computed."""

import itertools
import math

import numpy as np
import pytest

from genscope.fourier.walsh import WalshFunction
from genscope.probe import Oracle, find_degree, published_degree, published_sparsity
from genscope.probe import published as module
from genscope.probe.published import containment, trials_of
from genscope.refusal import Refusal
from tests.chance import assert_mean
from tests.probe.functions import random_sum
from tests.seeds import seed


def rng(number=0):
    return np.random.default_rng(seed(number))


@pytest.mark.parametrize("sides", range(1, 5))
def test_containment_by_listing_all_sets(sides):
    for size in range(6):
        inside = [all(bit < size for bit in chosen) for chosen in itertools.combinations(range(6), sides)]
        assert containment(sides, size, 6) == pytest.approx(np.mean(inside))


@pytest.mark.parametrize(("sides", "chance"), [("coordinates", containment(2, 3, 8)), ("directions", 2.0**-2)])
def test_a_component_survives_as_often_as_the_formulas_say(sides, chance):
    """20,000 trials of the character of three bits, whose alternating mean is ±1 or 0; planted: the other reading."""
    f = WalshFunction(8, ((1, 4, 6),), (1.0,))
    drawn = rng(1)
    flips = module._drawn_sides(sides, 2, 20_000, 8, drawn)
    base = drawn.integers(0, 2, (20_000, 8)).astype(bool)
    found = module.alternating_means(Oracle(f, 8), base, flips)
    assert set(np.abs(found).round(12)) == {0.0, 1.0}
    other = containment(2, 3, 8) if sides == "directions" else 0.25
    assert_mean(found**2, chance, planted=other)


def test_coordinates_never_overestimate_and_find_the_degree_with_trials_enough():
    for number, (degree, sparsity) in enumerate([(1, 2), (2, 5), (3, 3)]):
        f = random_sum(rng(number), 9, degree, sparsity)
        fine = published_degree(Oracle(f, 9), proximity=1e-3, rng=rng(9 + number))
        assert (fine.value, fine.at_least) == (degree, degree)
        coarse = published_degree(Oracle(f, 9), proximity=0.5, rng=rng(19 + number))
        assert coarse.value is not None
        assert coarse.value <= degree


def test_a_degree_wilts_where_the_proximity_is_large_and_ours_does_not():
    """One component of degree 4 among 20 bits survives in one of 4,845 sets: 47 trials hardly ever see it."""
    f = random_sum(rng(3), 20, 4, 1)
    found = [published_degree(Oracle(f, 20), proximity=0.1, rng=rng(30 + n)).value for n in range(20)]
    assert sum(value == 4 for value in found) <= 4  # chance 47/4845 each: five of 20 would come once in 10⁶ runs
    assert find_degree(Oracle(f, 20), rng=rng(4), generic=True).value == 4


def test_directions_do_not_know_the_degree():
    """The first level is about the logarithm of the trials to base 2, whether the function has degree 1 or 6."""
    for degree in (1, 6):
        f = random_sum(rng(degree), 20, degree, 1)
        for proximity in (0.5, 0.02):
            levels = [
                published_degree(
                    Oracle(f, 20), proximity=proximity, rng=rng(50 + n), sides="directions", max_degree=16
                ).value
                for n in range(8)
            ]
            assert np.mean([level or 0 for level in levels]) == pytest.approx(
                math.log2(trials_of(proximity, 0.99)), abs=2.5
            )


def test_sparsity_wilts_with_the_proximity_and_is_never_overestimated():
    f = WalshFunction(8, ((0,), (1, 2), (3,), (4, 5)), (0.8, 0.5, 0.3, math.sqrt(1 - 0.98)))
    whole = {p: published_sparsity(Oracle(f, 8), proximity=p, rng=rng()).value for p in (0.0, 0.05, 0.2, 0.5)}
    assert whole == {0.0: 4, 0.05: 3, 0.2: 2, 0.5: 1}  # the whole cube: tails 0, 0.02, 0.11, 0.36 of the energy
    merged = random_sum(rng(7), 40, 1, 20)  # 12 of 40 coordinates hold about six of the 20 bits
    found = published_sparsity(Oracle(merged, 40), proximity=0.0, rng=rng(8))
    assert found.value is not None
    assert found.value == found.at_least < 20


def test_a_limit_of_queries_is_kept():
    f = random_sum(rng(5), 20, 2, 3)
    oracle = Oracle(f, 20, limit=100)
    assert published_degree(oracle, proximity=0.01, rng=rng()).value is None
    assert oracle.queries <= 100
    assert published_sparsity(Oracle(f, 20, limit=100), proximity=0.01, rng=rng()).value is None


@pytest.mark.parametrize(
    "call",
    [
        lambda oracle: published_degree(oracle, proximity=0.0, rng=rng()),
        lambda oracle: published_degree(oracle, proximity=0.1, rng=rng(), max_degree=17),
        lambda oracle: published_degree(oracle, proximity=0.1, rng=rng(), confidence=1.0),
        lambda oracle: published_sparsity(oracle, proximity=1.0, rng=rng()),
        lambda oracle: published_sparsity(oracle, proximity=0.1, rng=rng(), rows=0),
    ],
)
def test_refusals(call):
    with pytest.raises(Refusal, match=r"Give|Correct|Increase"):
        call(Oracle(random_sum(rng(), 6, 1, 1), 6))
