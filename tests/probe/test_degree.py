import itertools
import math

import numpy as np
import pytest

from genscope.fourier.walsh import WalshFunction
from genscope.probe import Oracle, degree_at_most, degree_within, find_degree, find_degree_within
from genscope.probe import degree as module
from genscope.probe.degree import differences, survival, trials_needed
from tests.chance import Seldom, assert_mean
from tests.probe.functions import census, degree_of, differences_without_dead_bits, random_sum
from tests.seeds import seed


@pytest.mark.parametrize("blocks", [1, 2, 3])
def test_survival_by_listing_all_labels(blocks):
    for size in range(6):
        labels = itertools.product(range(blocks + 1), repeat=size)
        odd = sum(all(label.count(b) % 2 for b in range(1, blocks + 1)) for label in labels)
        assert survival(blocks, size) == pytest.approx(odd / (blocks + 1) ** size, abs=1e-15)


@pytest.mark.parametrize("blocks", range(1, 8))
def test_survival_grows_from_its_least_value_to_its_limit(blocks):
    values = [survival(blocks, size) for size in range(blocks, 60)]
    assert values[0] == pytest.approx(math.factorial(blocks) / (blocks + 1) ** blocks)
    assert all(later >= earlier - 1e-12 for earlier, later in itertools.pairwise(values))
    assert values[-1] <= 2.0**-blocks + 1e-12


def test_the_mean_square_of_differences():
    """100,000 trials against the sum over S; planted: the formula without the dead label."""
    f = WalshFunction(6, ((0,), (0, 1), (1, 2, 3), (0, 2, 3, 4, 5)), (0.5, 0.4, 0.3, 0.6))
    for blocks in (1, 2):
        squares = differences(Oracle(f, 6), blocks, 100_000, np.random.default_rng(seed(1))) ** 2
        expected = sum(c**2 * survival(blocks, len(s)) for s, c in zip(f.supports, f.coefficients, strict=True))
        undead = sum(c**2 * survival(blocks - 1, len(s)) for s, c in zip(f.supports, f.coefficients, strict=True))
        assert_mean(squares, expected, planted=undead)


def test_differences_of_a_low_degree_vanish():
    f = random_sum(np.random.default_rng(0), 12, 3, 8)
    assert np.abs(differences(Oracle(f, 12), 4, 500, np.random.default_rng(0))).max() < 1e-12


def test_census():
    """The degree of all functions of three bits, by their tables; and all levels by both tests."""
    rng = np.random.default_rng(2)
    for f, coefficients in census():
        degree = degree_of(coefficients)
        found = find_degree(Oracle(f, 3), rng=rng)
        assert found.value == found.at_least == degree
        for level in range(4):
            assert degree_at_most(Oracle(f, 3), level, rng=rng).accepted == (level >= degree)


WRONG = Seldom(400, 0.2, planted=0.9)


def wrong_levels(degree, level):
    """How many of 400 tests of random functions, at confidence 0.8, accept a level below the degree."""
    rng = np.random.default_rng(seed(3))
    functions = [random_sum(rng, 8, degree, 3) for _ in range(WRONG.trials)]
    verdicts = [degree_at_most(Oracle(f, 8), level, rng=rng, confidence=0.8, generic=True) for f in functions]
    return sum(bool(verdict.accepted) for verdict in verdicts)


def test_false_acceptance_stays_below_its_level():
    """Degrees one and two above the level."""
    for degree in (2, 3):
        assert WRONG.explains(wrong_levels(degree, 1))


def test_a_test_without_dead_bits_is_caught(monkeypatch):
    """It accepts every odd function at level 1."""
    monkeypatch.setattr(module, "differences", differences_without_dead_bits)
    assert not WRONG.explains(wrong_levels(3, 1))


def test_the_degree_itself_is_never_rejected():
    rng = np.random.default_rng(4)
    for degree in (1, 2, 3):
        for dim in (3, 8, 64):
            f = random_sum(rng, dim, degree, 1 if dim == 3 else 5)
            for level in (degree, degree + 1):
                for generic in (True, False):
                    assert degree_at_most(Oracle(f, dim), level, rng=rng, confidence=0.9, generic=generic).accepted


def test_find_degree_on_long_inputs():
    rng = np.random.default_rng(6)
    for degree, dim in ((1, 20), (3, 64), (4, 1000)):
        for generic in (True, False):
            found = find_degree(Oracle(random_sum(rng, dim, degree, 5), dim), rng=rng, generic=generic)
            assert found.value == degree
            assert found.queries < 60_000
            assert ("general position" in found.guarantee) == generic


def test_queries_are_declared_and_kept():
    f = random_sum(np.random.default_rng(7), 16, 2, 4)
    declared = trials_needed(2, confidence=0.99) * 8
    for limit in (4, 50, declared - 1, declared + 5):
        oracle = Oracle(f, 16, limit=limit)
        verdict = degree_at_most(oracle, 2, rng=np.random.default_rng(0), generic=True)
        assert verdict.accepted is (True if limit > declared else None)
        assert verdict.queries == oracle.queries <= min(limit, declared + 5)
    for generic in (True, False):
        oracle = Oracle(f, 16, limit=100)
        found = find_degree(oracle, rng=np.random.default_rng(0), generic=generic)
        assert found.value is None
        assert found.queries == oracle.queries <= 100
        assert "Cannot tell" in found.guarantee


def test_without_a_witness_the_levels_that_are_rejected_are_certain():
    """Majority of 41 bits: more components than can be found."""
    oracle = Oracle(lambda x: x.sum(axis=-1) > 20, 41, limit=300_000)
    found = find_degree(oracle, rng=np.random.default_rng(0), max_degree=3)
    assert (found.value, found.at_least) == (None, 4)
    assert degree_at_most(Oracle(oracle._function, 41), 3, rng=np.random.default_rng(0)).accepted is False


def tailed(tail):
    rng = np.random.default_rng(8)
    low, high = random_sum(rng, 12, 2, 3), random_sum(rng, 12, 5, 40, energy=tail)
    return lambda x: low(x) + high(x), sum(map(abs, (*low.coefficients, *high.coefficients)))


@pytest.mark.parametrize("scale", [1.0, 0.01, 1e6])
@pytest.mark.parametrize(("tail", "accepted"), [(0.01, True), (0.8, False)])
def test_a_small_tail_is_tolerated_and_a_large_one_is_not(tail, accepted, scale):
    """Of an energy of 1 and the tail, in any unit."""
    f, bound = tailed(tail)
    oracle = Oracle(lambda x: scale * f(x), 12)
    options = {"tolerance": 0.3, "bound": scale * bound, "rng": np.random.default_rng(0), "confidence": 0.9}
    assert degree_within(oracle, 2, **options).accepted is accepted


def test_a_tail_at_the_limit_or_a_small_budget_is_open():
    f, bound = tailed(0.4)  # a share of 0.29
    options = {"tolerance": 0.3, "bound": bound, "rng": np.random.default_rng(0)}
    oracle = Oracle(f, 12, limit=50_000)
    assert degree_within(oracle, 2, **options).accepted is None
    assert oracle.queries <= 50_000
    assert degree_within(Oracle(f, 12, limit=5), 2, **options).accepted is None


def test_find_degree_within():
    f, bound = tailed(0.01)
    found = find_degree_within(Oracle(f, 12), tolerance=0.4, bound=bound, rng=np.random.default_rng(0), confidence=0.9)
    assert (found.value, found.at_least) == (2, 2)


@pytest.mark.parametrize(
    ("call", "advice"),
    [
        (lambda o, rng: degree_at_most(o, -1, rng=rng), "Use recover instead"),
        (lambda o, rng: find_degree(o, rng=rng, max_degree=99), "Use recover instead"),
        (lambda o, rng: degree_at_most(o, 1, rng=rng, confidence=1.0), "Give, for example, 0.99"),
        (lambda o, rng: degree_within(o, 1, tolerance=0.0, bound=1.0, rng=rng), "Use degree_at_most"),
        (lambda o, rng: degree_within(o, 1, tolerance=1.0, bound=1.0, rng=rng), "a share between 0 and 1"),
    ],
)
def test_requests_that_make_no_sense(call, advice):
    with pytest.raises(ValueError, match=advice):
        call(Oracle(lambda x: x[:, 0], 4), np.random.default_rng(0))
