import numpy as np
import pytest

from genscope.probe import Oracle, find_sparsity, sparsity_at_most
from genscope.probe.sparsity import rows_and_repeats
from tests.chance import Seldom
from tests.probe.functions import census, random_sum, sparsity_of
from tests.seeds import seed


def test_census():
    """The sparsity of all functions of three bits, by their tables."""
    rng = np.random.default_rng(1)
    for f, coefficients in census():
        for generic in (True, False):
            found = find_sparsity(Oracle(f, 3), rng=rng, max_sparsity=8, generic=generic)
            assert found.value == found.at_least == sparsity_of(coefficients)


WRONG = Seldom(300, 0.2, planted=0.6)


def wrong(sparsity=6, dim=30, **options):
    """How many of 300 searches at confidence 0.8 miss the sparsity."""
    rng = np.random.default_rng(seed(2))
    functions = [random_sum(rng, dim, 3, sparsity) for _ in range(WRONG.trials)]
    options |= {"rng": rng, "max_sparsity": sparsity, "confidence": 0.8, "generic": True}
    answers = [find_sparsity(Oracle(f, dim), **options).value == sparsity for f in functions]
    return answers.count(False)


def test_errors_stay_below_their_level():
    assert WRONG.explains(wrong())


def test_restrictions_that_are_too_small_are_caught():
    """21 pairs in 16 buckets: at least one meets in three of four restrictions."""
    assert not WRONG.explains(wrong(rows=4, repeats=1))


def test_restrictions_to_coordinates_wilt():
    """As in the paper: with r = 12 the count falls below the sparsity, the more so the more bits there are.

    Means of 20 counts are 18.5 and 8.7, with standard errors of 0.2 and 0.3; affine counts are wrong once in 10^9 runs.
    """
    rng = np.random.default_rng(seed(3))
    means = []
    for dim in (20, 64):
        functions = [random_sum(rng, dim, 3, 20) for _ in range(20)]
        options = {"rng": rng, "max_sparsity": 20, "generic": True}
        counts = [
            find_sparsity(Oracle(f, dim), kind="coordinate", rows=12, repeats=3, **options).at_least for f in functions
        ]
        assert max(counts) <= 20
        assert all(find_sparsity(Oracle(f, dim), confidence=1 - 1e-11, **options).value == 20 for f in functions)
        means.append(np.mean(counts))
    assert means[1] < means[0] - 3 < 17
    assert not WRONG.explains(wrong(sparsity=20, dim=64, kind="coordinate", rows=8, repeats=3))


def test_sizes_follow_from_the_collisions():
    for sparsity in (1, 2, 5, 20, 100):
        for confidence in (0.5, 0.99, 1 - 1e-9):
            rows, repeats = rows_and_repeats(sparsity, confidence)
            merged = sparsity * (sparsity + 1) / 2 / 2**rows
            assert 1 / 8 < merged <= 1 / 4
            assert merged**repeats <= 1 - confidence < (merged ** (repeats - 1) if repeats > 1 else 1) + 1e-12


def test_more_than_the_most_is_said():
    f = random_sum(np.random.default_rng(0), 40, 3, 50)
    found = find_sparsity(Oracle(f, 40), rng=np.random.default_rng(1), generic=True)
    assert found.value is None
    assert 32 < found.at_least <= 50
    assert find_sparsity(Oracle(f, 40), rng=np.random.default_rng(1)).value == 50


def test_too_few_queries_are_no_answer():
    f = random_sum(np.random.default_rng(0), 40, 3, 5)
    for limit in (1, 100, 5000):
        oracle = Oracle(f, 40, limit=limit)
        found = find_sparsity(oracle, rng=np.random.default_rng(1), generic=True)
        assert found.value is None
        assert found.at_least <= 5
        assert found.queries == oracle.queries <= limit
        assert find_sparsity(Oracle(f, 40, limit=limit), rng=np.random.default_rng(1)).value is None


def test_a_constant_has_no_components():
    for generic in (True, False):
        assert find_sparsity(Oracle(lambda x: 2.5, 10), rng=np.random.default_rng(0), generic=generic).value == 0


@pytest.mark.parametrize("scale", [1.0, 0.01, 1e6])
@pytest.mark.parametrize(("sparsity", "accepted"), [(3, True), (2, False)])
def test_components_within_a_tolerance(sparsity, accepted, scale):
    """Three components of energy 1/3 each and a tail of 0.01, in any unit."""
    rng = np.random.default_rng(4)
    f, tail = random_sum(rng, 25, 3, 3), random_sum(rng, 25, 5, 20, energy=0.01)
    equal = type(f)(25, f.supports, (3**-0.5,) * 3)
    bound = sum(map(abs, (*equal.coefficients, *tail.coefficients)))
    verdict = sparsity_at_most(
        Oracle(lambda x: scale * (equal(x) + tail(x)), 25, limit=150_000),
        sparsity,
        tolerance=0.1,
        bound=scale * bound,
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
        (lambda o, rng: find_sparsity(o, rng=rng, max_sparsity=0), "Give 1 or more"),
        (lambda o, rng: find_sparsity(o, rng=rng, confidence=0.0), "for example, 0.99"),
        (lambda o, rng: sparsity_at_most(o, 1, tolerance=0.0, bound=1.0, rng=rng), "Use find_sparsity"),
    ],
)
def test_requests_that_make_no_sense(call, advice):
    with pytest.raises(ValueError, match=advice):
        call(Oracle(lambda x: x[:, 0], 4), np.random.default_rng(0))
