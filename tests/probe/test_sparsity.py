import numpy as np
import pytest

from genscope.estimate import clopper_pearson
from genscope.probe import Oracle, find_sparsity, sparsity_at_most
from genscope.probe.sparsity import rows_and_repeats
from tests.probe.functions import census, random_sum, sparsity_of
from tests.seeds import seed


def test_census():
    """The sparsity of all functions of three bits; wrong once in 10^6 runs of the whole census."""
    rng = np.random.default_rng(seed(1))
    for f, coefficients in census():
        found = find_sparsity(Oracle(f, 3), rng=rng, max_sparsity=8, confidence=1 - 1e-6 / 256)
        assert found.value == found.at_least == sparsity_of(coefficients)


def wrong(sparsity=6, dim=30, **options):
    """Lower limit, at 1e-9, of the share of 300 searches that miss the sparsity."""
    rng = np.random.default_rng(seed(2))
    functions = [random_sum(rng, dim, 3, sparsity) for _ in range(20)]
    answers = [
        find_sparsity(Oracle(f, dim), rng=rng, max_sparsity=sparsity, **options).value == sparsity
        for f in functions * 15
    ]
    return clopper_pearson(answers.count(False), 300, confidence=1 - 1e-9)[0]


def test_errors_stay_below_their_level():
    assert wrong(confidence=0.8) <= 0.2


def test_restrictions_that_are_too_small_are_caught():
    assert wrong(confidence=0.8, rows=5, repeats=1) > 0.2


def test_restrictions_to_coordinates_wilt():
    """As in the paper: with r = 12 the count falls below the sparsity, the more so the more bits there are."""
    rng = np.random.default_rng(seed(3))
    means = []
    for dim in (20, 64):
        functions = [random_sum(rng, dim, 3, 20) for _ in range(4)]
        options = {"rng": rng, "max_sparsity": 20, "rows": 12, "repeats": 3}
        counts = [find_sparsity(Oracle(f, dim), kind="coordinate", **options).at_least for f in functions]
        assert max(counts) <= 20
        assert all(find_sparsity(Oracle(f, dim), **options).value == 20 for f in functions)
        means.append(np.mean(counts))
    assert means[1] < means[0] < 20
    assert wrong(sparsity=20, dim=64, confidence=0.8, kind="coordinate", rows=8, repeats=3) > 0.2


def test_sizes_follow_from_the_collisions():
    for sparsity in (1, 2, 5, 20, 100):
        for confidence in (0.5, 0.99, 1 - 1e-9):
            rows, repeats = rows_and_repeats(sparsity, confidence)
            merged = sparsity * (sparsity + 1) / 2 / 2**rows
            assert 1 / 8 < merged <= 1 / 4
            assert merged**repeats <= 1 - confidence < (merged ** (repeats - 1) if repeats > 1 else 1) + 1e-12


def test_more_than_the_most_is_said():
    found = find_sparsity(Oracle(random_sum(np.random.default_rng(0), 40, 3, 50), 40), rng=np.random.default_rng(1))
    assert found.value is None
    assert 32 < found.at_least <= 50


def test_too_few_queries_are_no_answer():
    f = random_sum(np.random.default_rng(0), 40, 3, 5)
    for limit in (1, 100, 5000):
        oracle = Oracle(f, 40, limit=limit)
        found = find_sparsity(oracle, rng=np.random.default_rng(1))
        assert found.value is None
        assert found.at_least <= 5
        assert found.queries == oracle.queries <= limit


def test_a_constant_has_no_components():
    assert find_sparsity(Oracle(lambda x: 2.5, 10), rng=np.random.default_rng(0)).value == 0


@pytest.mark.parametrize(("sparsity", "accepted"), [(3, True), (2, False)])
def test_components_within_a_tolerance(sparsity, accepted):
    """Three components of energy 1/3 each and a tail of 0.01."""
    rng = np.random.default_rng(4)
    f, tail = random_sum(rng, 25, 3, 3), random_sum(rng, 25, 5, 20, energy=0.01)
    equal = type(f)(25, f.supports, (3**-0.5,) * 3)
    bound = sum(map(abs, (*equal.coefficients, *tail.coefficients)))
    verdict = sparsity_at_most(
        Oracle(lambda x: equal(x) + tail(x), 25, limit=150_000),
        sparsity,
        tolerance=0.1,
        bound=bound,
        rng=rng,
        confidence=0.9,
        rows=6,
    )
    assert verdict.accepted is accepted


def test_a_tolerance_at_the_limit_or_a_small_budget_is_open():
    rng = np.random.default_rng(5)
    f = random_sum(rng, 25, 3, 3)
    smallest = min(f.coefficients) ** 2
    oracle = Oracle(f, 25, limit=30_000)
    verdict = sparsity_at_most(oracle, 2, tolerance=smallest * 1.01, bound=2.0, rng=rng)
    assert verdict.accepted is None
    assert oracle.queries <= 30_000
    assert sparsity_at_most(Oracle(f, 25, limit=9), 2, tolerance=0.1, bound=2.0, rng=rng).accepted is None


@pytest.mark.parametrize(
    ("call", "advice"),
    [
        (lambda o, rng: find_sparsity(o, rng=rng, max_sparsity=0), "Give such a number"),
        (lambda o, rng: find_sparsity(o, rng=rng, confidence=0.0), "such as 0.99"),
        (lambda o, rng: sparsity_at_most(o, 1, tolerance=0.0, bound=1.0, rng=rng), "Use find_sparsity"),
    ],
)
def test_requests_that_make_no_sense(call, advice):
    with pytest.raises(ValueError, match=advice):
        call(Oracle(lambda x: x[:, 0], 4), np.random.default_rng(0))
