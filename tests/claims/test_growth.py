"""Exponents and interactions: values by hand, and intervals that cover at a stated rate, with a planted error."""

import numpy as np
import pytest

from genscope.claims._growth import exponent, interaction


def test_an_exact_power_has_its_exponent():
    x = np.array([1.0, 2.0, 4.0, 8.0])
    found = exponent([(x, 3 * x**1.5), (x, 0.1 * x**1.5)], confidence=0.95)
    assert found.value == pytest.approx(1.5)
    assert found.interval == pytest.approx([1.5, 1.5])
    assert exponent([(np.ones(3), np.ones(3))], confidence=0.95).value is None
    alone = exponent([(x[:2], x[:2])], confidence=0.95)
    assert (alone.value, alone.low) == (pytest.approx(1), None)  # a line through two points


def test_a_product_is_an_interaction_and_a_sum_is_none():
    k, s = (each.ravel() for each in np.meshgrid([1.0, 2.0, 3.0], [2.0, 5.0]))
    assert interaction(k, s, 2 * k * s + k, confidence=0.95).value == pytest.approx(2)
    assert interaction(k, s, 3 * k + s, confidence=0.95).value == pytest.approx(0, abs=1e-12)
    assert interaction(np.ones(6), s, s, confidence=0.95).value is None


def test_intervals_cover():
    """500 studies at 98.75 %, spreads that grow along the axis: fewer than 475 covered has probability below 1e-9."""
    generator, x = np.random.default_rng(3), np.repeat([1.0, 2.0, 3.0, 4.0, 5.0], 5)
    covered = biased = 0
    for _ in range(500):
        values = x**1.2 * np.exp(0.05 * x * generator.normal(size=len(x)))
        found = exponent([(x, values)], confidence=0.9875)
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= 1.2 <= found.high
        biased += found.low <= 1.5 <= found.high
    assert covered >= 475
    assert biased < 475  # the planted error
