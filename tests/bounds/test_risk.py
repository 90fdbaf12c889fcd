import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import minimize_scalar

from genscope.bounds import Bound, dudley, generalization, head, margin, rademacher, sample_size
from tests.bounds.cases import HEAD


@pytest.mark.parametrize(("capacity", "samples"), [(1.0, 10**6), (30.0, 10**5), (5.0, 3000)])
def test_closed_form_is_the_minimum_over_resolutions(capacity, samples):
    """By SciPy: quadrature of the integral, minimisation over alpha."""

    def value(alpha):
        integral, _ = quad(lambda e: math.sqrt(capacity) / e, alpha, 1.0)
        return 4 * alpha + 12 / math.sqrt(samples) * integral

    best = minimize_scalar(value, bounds=(1e-9, 1.0), method="bounded", options={"xatol": 1e-12})
    least = best.fun  # pyright: ignore[reportAttributeAccessIssue]  # SciPy has no types
    found = rademacher(capacity=capacity, range=1.0, samples=samples).value
    assert found == pytest.approx(min(least, 1.0), rel=1e-6)


@settings(max_examples=15)
@given(st.floats(1e-3, 1e6), st.floats(1e-3, 1e3), st.integers(1, 10**8))
def test_numerical_integral_is_an_upper_sum_within_two_percent(capacity, reach, samples):
    closed = rademacher(capacity=capacity, range=reach, samples=samples).value
    numerical = dudley(lambda epsilon: capacity / epsilon**2, range=reach, samples=samples).value
    assert closed * (1 - 1e-9) <= numerical <= closed * 1.02 + 1e-9 * reach
    assert closed <= reach


@given(st.floats(1e-3, 1e3), st.integers(1, 10**9), st.integers(1, 10**9))
def test_more_samples_never_hurt(capacity, one, other):
    few, many = sorted((one, other))
    least, most = (rademacher(capacity=capacity, range=1.0, samples=m).value for m in (many, few))
    assert least <= most * (1 + 1e-12)
    terms = {"rademacher": 0.1, "confidence": 0.9}
    assert generalization(**terms, samples=many).value <= generalization(**terms, samples=few).value


def test_massart_bounds_a_finite_class_and_dudley_bounds_massart():
    """Truth, exactly: the Rademacher complexity of 8 random sign vectors on 12 points, by all 2^12 signs."""
    class_ = np.random.default_rng(0).choice([-1.0, 1.0], size=(8, 12))
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=12)))
    truth = np.mean(np.max(signs @ class_.T / 12, axis=1))
    found = dudley(lambda epsilon: math.log(8), range=1.0, samples=12)
    assert truth <= found.value
    # Not vacuous for many points: log 8 / m is what matters.
    assert dudley(lambda epsilon: math.log(8), range=1.0, samples=10**6).value < 0.03


def test_vacuous_or_not():
    assert rademacher(capacity=1.0, range=1.0, samples=100).vacuous
    assert rademacher(capacity=1.0, range=1.0, samples=100).value == 1
    assert not rademacher(capacity=1.0, range=1.0, samples=10**6).vacuous
    assert rademacher(capacity=0.0, range=1.0, samples=1).value == 0
    assert generalization(rademacher=0.5, samples=10).vacuous
    assert margin(log_cover=1.0, empirical_error=0.0, samples=3).vacuous


def test_generalization_and_margin_by_hand():
    found = generalization(rademacher=0.1, lipschitz=2.0, range=3.0, samples=1000, confidence=0.99)
    assert found.terms["complexity"] == pytest.approx(0.4)
    assert found.terms["confidence"] == pytest.approx(9 * math.sqrt(math.log(200) / 2000))
    both = generalization(rademacher=0.1, samples=1000, confidence=0.99, two_sided=True)
    assert both.terms["confidence"] == pytest.approx(3 * math.sqrt(math.log(400) / 2000))
    found = margin(log_cover=50.0, empirical_error=0.1, samples=10**4, confidence=0.9)
    assert found.value == pytest.approx(0.1 + math.sqrt(8 / 10**4 * (50 + math.log(20))))


def test_sample_size_is_the_smallest():
    def bound(samples):
        return generalization(rademacher=rademacher(capacity=2.0, range=1.0, samples=samples).value, samples=samples)

    size = sample_size(bound, 0.3)
    assert bound(size).value <= 0.3 < bound(size - 1).value
    assert sample_size(lambda samples: 0.1, 0.3) == 1
    assert sample_size(lambda samples: 0.5, 0.3) is None
    assert sample_size(lambda samples: Bound("x", {"x": 1 / samples}, explicit=True, source=""), 1e-100) > 10**99
    with pytest.raises(ValueError, match=r"target=0: .* Choose a target above 0"):
        sample_size(bound, 0)


def test_from_a_head_to_a_sample_size():
    """Order form at m T points: the capacity grows with log m, and the number of samples is finite."""

    def bound(samples):
        cover = head(**HEAD | {"points": 300 * samples}, form="order")
        found = rademacher(capacity=cover.value * HEAD["epsilon"] ** 2, range=1.0, samples=samples)
        return generalization(rademacher=found.value, samples=samples)

    size = sample_size(bound, 0.1)
    assert bound(size).value <= 0.1 < bound(size - 1).value


@pytest.mark.parametrize("confidence", [0, 1, -0.1, 1.5])
def test_a_confidence_is_inside_the_unit_interval(confidence):
    with pytest.raises(ValueError, match=r"confidence=.* above 0 and below 1. Change confidence"):
        generalization(rademacher=0.1, samples=10, confidence=confidence)
