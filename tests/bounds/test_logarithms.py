"""Against exact integers, and at the ends of the range of floats."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genscope.bounds._logarithms import exp, log, log_multisets, log_sum, softplus

SIZES = st.one_of(st.integers(1, 60), st.integers(1, 3000))


@given(st.one_of(SIZES, st.integers(1, 10**120)), SIZES)
def test_multisets_agree_with_exact_binomials(symbols, size):
    exact = math.log(math.comb(symbols + size, size))
    assert log_multisets(math.log(symbols), size) == pytest.approx(exact, rel=3e-13, abs=1e-12)


@given(SIZES, SIZES)
def test_multisets_are_symmetric(symbols, size):
    assert log_multisets(math.log(symbols), size) == pytest.approx(log_multisets(math.log(size), symbols), rel=1e-12)


def test_a_difference_of_log_gammas_would_not_do():
    """The planted error: at 10^100 symbols the textbook formula has lost all its digits."""
    symbols, size = 10**100, 50
    exact = math.log(math.comb(symbols + size, size))
    naive = math.lgamma(float(symbols + size) + 1) - math.lgamma(float(symbols) + 1) - math.lgamma(size + 1)
    assert abs(naive / exact - 1) > 0.01
    assert log_multisets(math.log(symbols), size) == pytest.approx(exact, rel=1e-13)


@pytest.mark.parametrize("log_symbols", [0.0, 1.0, 700.0, 1e5, 1e300])
@pytest.mark.parametrize("size", [0, 1, 7.0, 1e15, 1e300, 1.7e308, 10**400, math.inf])
def test_corners_are_numbers(log_symbols, size):
    value = log_multisets(log_symbols, size)
    assert value >= 0
    assert log_multisets(log_symbols + 1, size) >= value
    assert (value == 0) == (size == 0)


def test_logarithms_of_sums():
    assert log(0) == -math.inf
    assert log(10**400) == pytest.approx(400 * math.log(10))
    assert exp(1e6) == math.inf
    assert exp(-1e6) == 0
    assert softplus(1e300) == 1e300
    assert softplus(-math.inf) == 0
    assert softplus(0.3) == pytest.approx(math.log(1 + math.exp(0.3)))
    assert log_sum([-math.inf, -math.inf]) == -math.inf
    assert log_sum([]) == -math.inf
    assert log_sum([math.inf, 0.0]) == math.inf
    assert log_sum([-1000.0, -1001.0]) == pytest.approx(-1000 + math.log1p(math.exp(-1)))
