import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genscope.fourier.walsh import WalshFunction
from genscope.probe import Oracle, recover
from genscope.probe import recovery as module
from tests.probe.functions import census, random_sum


def same(found, f, atol=1e-9):
    assert found.supports == f.supports
    np.testing.assert_allclose(found.coefficients, f.coefficients, atol=atol)
    assert found.constant == pytest.approx(f.constant, abs=atol)


@pytest.mark.parametrize(
    ("dim", "degree", "sparsity"), [(20, 5, 20), (32, 10, 5), (64, 5, 20), (64, 2, 60), (400, 3, 8)]
)
def test_round_trip(dim, degree, sparsity):
    f = random_sum(np.random.default_rng(dim + sparsity), dim, degree, sparsity)
    oracle = Oracle(f, dim)
    found = recover(oracle, rng=np.random.default_rng(0))
    assert found.complete
    assert found.at_least == sparsity
    assert found.queries == oracle.queries < 12_000 + 500 * dim
    same(found.function, f)


def test_mixed_degrees_signs_and_a_constant():
    f = WalshFunction(1000, ((0,), tuple(range(500)), (0, 1, 999), (5, 7)), (-1.0, -1e-3, 0.25, 3.0), constant=-7.5)
    found = recover(Oracle(f, 1000), rng=np.random.default_rng(1))
    assert found.complete
    same(found.function, f)


def test_census():
    """Every eighth function of three bits, hidden among 21 bits."""
    rng = np.random.default_rng(2)
    for number, (f, coefficients) in enumerate(census()):
        if number % 8:
            continue
        found = recover(Oracle(lambda x, f=f: f(x[:, 18:]), 21), rng=rng)
        assert found.complete
        expected = {tuple(i + 18 for i in s): c for s, c in coefficients.items()}
        constant = expected.pop((), 0.0)
        same(
            found.function,
            WalshFunction(21, tuple(sorted(expected)), tuple(expected[s] for s in sorted(expected)), constant=constant),
        )


def test_three_components_that_look_like_one_are_told_apart():
    """In one bucket, 0,2,4 less 2,3,4 plus 1,3,4 reads as 0,1,4, and the hash agrees."""
    f = WalshFunction(40, ((0, 2, 4), (1, 3, 4), (2, 3, 4)), (1.0, 1.0, -1.0))
    for seed in range(15):
        found = recover(Oracle(f, 40), rng=np.random.default_rng(seed))
        assert found.complete
        same(found.function, f)


def test_a_wrong_sum_is_never_called_complete(monkeypatch):
    """Planted: half of all components are read with a wrong coefficient."""
    true = module._lonely

    def wrong(residual, noise, resolution):
        supports, coefficients = true(residual, noise, resolution)
        return supports, coefficients * 1.01

    monkeypatch.setattr(module, "_lonely", wrong)
    monkeypatch.setattr(module, "_PEELS", 1)
    f = random_sum(np.random.default_rng(3), 30, 3, 6)
    assert not recover(Oracle(f, 30, limit=20_000), rng=np.random.default_rng(0)).complete


@settings(max_examples=25)
@given(limit=st.integers(1, 20_000), sparsity=st.integers(1, 30), number=st.integers(0, 1000))
def test_no_budget_is_exceeded_and_none_makes_it_wrong(limit, sparsity, number):
    rng = np.random.default_rng(number)
    f = random_sum(rng, 24, 4, sparsity)
    oracle = Oracle(f, 24, limit=limit)
    found = recover(oracle, rng=rng)
    assert oracle.queries <= limit
    assert found.at_least <= sparsity
    if found.complete:
        same(found.function, f)


def test_a_dense_function_is_not_complete_and_its_large_components_are_right():
    """Majority of 41 bits: all sets of odd size; those of one bit have C(40, 20) / 2^40 = 0.1254."""
    found = recover(Oracle(lambda x: 2.0 * (x.sum(axis=-1) > 20) - 1, 41, limit=400_000), rng=np.random.default_rng(4))
    assert found.complete is False
    assert found.at_least > 1000
    assert {s for s in found.function.supports if len(s) == 1} == {(i,) for i in range(41)}
    singles = [c for s, c in zip(found.function.supports, found.function.coefficients, strict=True) if len(s) == 1]
    np.testing.assert_allclose(singles, -math.comb(40, 20) / 2**40, atol=0.02)


def test_noise_within_the_tolerance_is_left_out():
    rng = np.random.default_rng(5)
    f, tail = random_sum(rng, 40, 3, 6), random_sum(rng, 40, 7, 500, energy=0.003)

    def noisy(x):
        return f(x) + tail(x)

    found = recover(Oracle(noisy, 40), rng=rng, tolerance=0.02)
    assert found.complete
    large = {s for s, c in zip(f.supports, f.coefficients, strict=True) if c > 0.1}
    assert large <= set(found.function.supports) <= set(f.supports)
    assert found.agreement.mean_squared_error < 0.02
    strict = recover(Oracle(noisy, 40, limit=60_000), rng=rng, tolerance=0.001)
    assert not strict.complete
