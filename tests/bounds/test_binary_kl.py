"""The divergence of two coins and its inverse: by hand, by another formula, and at the ends."""

import itertools
import math
import sys
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import rel_entr
from scipy.stats import binom

from genscope.bounds.binary_kl import binary_kl, kl_inverse

shares = st.floats(0, 1)
budgets = st.one_of(st.floats(0, 50), st.floats(-30, 2).map(lambda power: 10**power))


@given(shares, shares)
def test_the_divergence_is_the_sum_of_two_relative_entropies(p, q):
    expected = float(rel_entr(p, q) + rel_entr(1 - p, 1 - q))
    assert binary_kl(p, q) == pytest.approx(expected, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("rise", [1e-4, 1e-8, 1e-12])
def test_a_small_divergence_keeps_its_digits(rise):
    """Against four orders of its series in exact numbers; the plain formula loses every digit at 1e-8."""
    p, q = 0.3, 0.3 + rise
    low, d = Fraction(p), Fraction(q) - Fraction(p)
    exact = sum(d**j / j * ((-1) ** j / low ** (j - 1) + 1 / (1 - low) ** (j - 1)) for j in range(2, 6))
    assert binary_kl(p, q) == pytest.approx(float(exact), rel=1e-12)


LEAST = math.ulp(0.0)  # the smallest subnormal number
EXTREMES = [
    0,
    LEAST,
    3 * LEAST,
    1e-320,
    sys.float_info.min,
    1e-200,
    2e-200,
    1e-162,
    1e-100,
    1e-17,
    1e-9,
    0.0099,
    0.0101,
]
EXTREMES += [0.09375, 0.3, 0.5, 0.99, 1 - 2**-53, 1]


def in_decimals(p, q):
    """The divergence by its definition, with 400 digits: enough for 1 - p at the smallest p."""
    with localcontext(prec=400, Emin=-(10**6)):
        pairs = [(a, b) for a, b in ((Decimal(p), Decimal(q)), (1 - Decimal(p), 1 - Decimal(q))) if a]
        return sum(a * (a / b).ln() for a, b in pairs) if all(b for _, b in pairs) else Decimal("inf")


def test_extreme_shares_keep_their_digits():
    """Down to subnormal numbers, where a quotient, a square or a product has few digits or none."""
    assert binary_kl(0.09375, LEAST) == pytest.approx(69.48013, abs=5e-6)
    near = [(p, math.nextafter(p, 0.5)) for p in EXTREMES if p != 0.5]
    for p, q in [*itertools.product(EXTREMES, repeat=2), *near, *(pair[::-1] for pair in near)]:
        assert binary_kl(p, q) == pytest.approx(float(in_decimals(p, q)), rel=1e-13, abs=2 * LEAST), (p, q)


@pytest.mark.parametrize("budget", [1e-300, 1e-200, 1e-20, 1e-3, 1.0, 30.0, 700.0])
def test_the_inverse_at_extreme_shares(budget):
    for p in EXTREMES[1:-1]:
        rise = kl_inverse(p, budget) - p
        if p + rise < 1:
            above, below = min(1.0, p + rise * (1 + 1e-9)), p + rise * (1 - 1e-9)
            above, below = max(above, math.nextafter(p + rise, 1)), max(p, min(below, math.nextafter(p + rise, 0)))
            assert in_decimals(p, below) <= Decimal(budget) <= in_decimals(p, above), p


@pytest.mark.parametrize(
    ("p", "q", "expected"), [(0, 1, math.inf), (1, 0, math.inf), (0, 0, 0), (1, 1, 0), (0.4, 1, math.inf)]
)
def test_the_ends(p, q, expected):
    assert binary_kl(p, q) == expected


@given(shares, budgets)
def test_the_inverse_is_the_largest_within_the_budget(p, budget):
    q = kl_inverse(p, budget)
    assert p <= q <= 1
    if 1 - q > 1e-6:  # nearer to 1 a float has too few digits of 1 - q
        assert binary_kl(p, q) == pytest.approx(budget, rel=1e-6, abs=1e-14)
        assert binary_kl(p, min(1.0, q + 1e-6 * (1 - q) + 1e-12)) > budget


@given(shares, shares, budgets, budgets)
def test_the_inverse_does_not_decrease(p, other, budget, more):
    low, high = sorted([p, other])
    assert kl_inverse(low, budget) <= kl_inverse(high, budget) + 1e-15
    small, large = sorted([budget, more])
    assert kl_inverse(p, small) <= kl_inverse(p, large) + 1e-15


@pytest.mark.parametrize(("p", "budget"), [(0.03, 0.11), (0.5, 1e-6), (1e-9, 0.3), (0.999, 0.01)])
def test_the_inverse_against_a_root_finder(p, budget):
    root = brentq(lambda q: float(rel_entr(p, q) + rel_entr(1 - p, 1 - q)) - budget, p, 1 - 1e-15, xtol=1e-16)
    assert kl_inverse(p, budget) == pytest.approx(root, rel=1e-8)


def test_corners_of_the_inverse():
    tiny = sys.float_info.min
    assert kl_inverse(0.0, 0.0) == 0
    assert kl_inverse(0.0, 1e300) == kl_inverse(0.3, 1e300) == 1
    assert kl_inverse(tiny, 1e-3) == pytest.approx(-math.expm1(-1e-3), rel=1e-9)
    assert kl_inverse(1.0, 0.0) == 1
    assert kl_inverse(1 - 1e-16, 0.5) <= 1


def test_chernoff_covers_and_a_halved_budget_does_not():
    """Exact, no simulation: the chance that the inverse falls below the true mean, over all binomial outcomes."""
    draws, mean, failure = 20, 0.3, 0.2

    def chance(budget):
        below = [k for k in range(draws + 1) if kl_inverse(k / draws, budget) < mean]
        return float(binom.pmf(below, draws, mean).sum())

    budget = math.log(1 / failure) / draws
    assert chance(budget) <= failure
    assert chance(budget / 4) > failure


@pytest.mark.parametrize(("arguments", "advice"), [((1.5, 0.1), "at most 1"), ((0.5, -1.0), "at least 0")])
def test_refusals(arguments, advice):
    with pytest.raises(ValueError, match=advice):
        kl_inverse(*arguments)
