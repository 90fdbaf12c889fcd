import numpy as np
import pytest

from genscope.fourier.walsh import WalshFunction
from genscope.probe import Oracle, heavy_components
from genscope.probe.heavy import _grow
from tests.probe.functions import random_sum, spectrum

F = WalshFunction(18, ((0, 5, 17), (3,), (4, 5, 6, 7, 8)), (0.6, -0.5, 0.4), constant=0.45)


def test_components_are_found_in_a_noiseless_function():
    found = heavy_components(Oracle(F, 18), 0.35, bound=2.0, rng=np.random.default_rng(0), samples=20_000)
    assert found.function.supports == F.supports
    reach = 6 * found.sem
    np.testing.assert_allclose(found.function.coefficients, F.coefficients, atol=reach)
    assert found.function.constant == pytest.approx(F.constant, abs=reach)
    assert found.confidence is None  # a smaller sample than the guarantee's
    assert found.queries <= (2 * 5 + 1) * 20_000 + 5


def test_components_are_found_in_noise():
    """A hidden key hashes each input to a noise of standard deviation 0.3: a function, but a rough one."""
    mix = np.random.default_rng(1).integers(1, 2**61, 18)

    def noisy(x):
        return F(x) + 0.3 * np.sqrt(12) * ((x @ mix * 2654435761 % 2**31) / 2**31 - 0.5)

    found = heavy_components(Oracle(noisy, 18), 0.35, bound=3.0, rng=np.random.default_rng(2), samples=20_000)
    assert found.function.supports == F.supports


def test_the_guaranteed_sample_keeps_what_is_large_and_nothing_small():
    rng = np.random.default_rng(3)
    f = WalshFunction(8, ((0, 1), (2, 3), (4,)), (0.7, 0.2, 0.1))
    found = heavy_components(Oracle(f, 8, limit=10**7), 0.6, bound=1.0, rng=rng, confidence=0.99)
    assert found.confidence == 0.99
    assert found.function.supports == ((0, 1),)


def test_weights_of_a_level_are_sums_of_squares():
    """One level over the whole cube of four bits: the transform gives every squared coefficient."""
    table = np.random.default_rng(4).normal(size=16) / 2
    oracle = Oracle(lambda x: table[x @ (1 << np.arange(4))], 4)
    rng = np.random.default_rng(5)
    expected = {s for s, c in spectrum(table.tolist(), 4).items() if c**2 > 0.015}
    unsure = {s for s, c in spectrum(table.tolist(), 4).items() if 0.005 < c**2 <= 0.015}
    grown = _grow(oracle, np.zeros((1, 4), bool), 0, 4, 200_000, np.sqrt(0.02), rng)
    found = {tuple(np.flatnonzero(row).tolist()) for row in grown}
    assert expected <= found <= expected | unsure


def test_too_few_queries_are_no_answer():
    oracle = Oracle(F, 18, limit=1000)
    assert heavy_components(oracle, 0.3, bound=2.0, rng=np.random.default_rng(0)) is None
    assert oracle.queries == 0


def test_nothing_large_is_an_answer():
    f = random_sum(np.random.default_rng(6), 12, 3, 60)
    found = heavy_components(Oracle(f, 12), 0.9, bound=1.5, rng=np.random.default_rng(0), samples=5000)
    assert found.function.sparsity == 0


@pytest.mark.parametrize("threshold", [0.0, 3.0])
def test_thresholds_that_make_no_sense(threshold):
    with pytest.raises(ValueError, match="between 0 and the bound"):
        heavy_components(Oracle(F, 18), threshold, bound=2.0, rng=np.random.default_rng(0))
