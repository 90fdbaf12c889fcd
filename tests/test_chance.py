"""The statistical helpers of the tests: they fail as seldom as they say, and refuse to be without power."""

import contextlib

import numpy as np
import pytest
from scipy.stats import binom, norm

from genscope.estimate import Estimate
from tests import chance
from tests.chance import (
    NoPowerError,
    Seldom,
    assert_at_least,
    assert_at_most,
    assert_count,
    assert_estimate,
    assert_mean,
)


def fails(check):
    """Whether a check fails for what it found; that one has no power is an error of its own."""
    with contextlib.suppress(AssertionError):
        check()
        return False
    return True


@pytest.mark.parametrize(
    ("found", "failing"), [(0.0, False), (4.7, False), (4.9, True), (-6.0, False), (-6.2, True), (10.9, True)]
)
def test_an_estimate_by_hand(found, failing):
    """Of standard error 1: limits at 6.11 about the truth and about what is planted, 4.75 farther away."""
    assert fails(lambda: assert_estimate(Estimate(found, 1.0), 0.0, planted=10.9)) == failing
    with pytest.raises(NoPowerError):
        assert_estimate(Estimate(found, 1.0), 0.0, planted=10.8)


def test_rates_of_a_mean_by_simulation(monkeypatch):
    """With rates that can be seen: a tenth of false alarms, and a twentieth of planted errors missed."""
    monkeypatch.setattr(chance, "FALSE_ALARM", 0.1)
    monkeypatch.setattr(chance, "MISS", 0.05)
    rng = np.random.default_rng(0)
    least = (norm.isf(0.05) + norm.isf(0.05)) / np.sqrt(1000) * 1.1  # above the error that is needed
    draws = rng.normal(size=(2000, 1000))
    alarms = sum(fails(lambda row=row: assert_mean(row, 0.0, planted=10.0)) for row in draws)
    missed = sum(not fails(lambda row=row: assert_mean(row, least, planted=2 * least)) for row in draws)
    assert 0.08 < alarms / 2000 < 0.12
    assert 0.01 < missed / 2000 < 0.05


@pytest.mark.parametrize(("mean", "failing"), [(-50.0, False), (5.9, False), (6.1, True)])
def test_one_side_by_hand(mean, failing):
    """A thousand samples of standard error 1: the limit is 6.00, and 4.75 beyond for what is planted."""
    samples = mean + np.sqrt(999) * np.tile([-1, 1], 500)
    assert fails(lambda: assert_at_most(samples, 0.0, planted=10.8)) == failing
    assert fails(lambda: assert_at_least(-samples, 0.0, planted=-10.8)) == failing
    with pytest.raises(NoPowerError):
        assert_at_most(samples, 0.0, planted=10.7)


def test_counts_by_the_exact_law():
    accepted = [k for k in range(1001) if not fails(lambda k=k: assert_count(k, 1000, 0.3, planted=0.5))]
    assert binom.pmf(accepted, 1000, 0.3).sum() > 1 - 1e-9
    assert binom.pmf(accepted, 1000, 0.5).sum() < 1e-6
    assert binom.pmf([*accepted[1:-1]], 1000, 0.3).sum() < 1 - 1e-10  # and none could be left out on both sides
    with pytest.raises(NoPowerError):
        assert_count(300, 1000, 0.3, planted=0.4)


def test_what_happens_seldom():
    seldom = Seldom(100, 0.01, planted=0.4)
    assert binom.sf(seldom.most, 100, 0.01) <= 1e-9 < binom.sf(seldom.most - 1, 100, 0.01)
    assert seldom.explains(seldom.most)
    assert not seldom.explains(seldom.most + 1)
    with pytest.raises(NoPowerError):
        Seldom(100, 0.01, planted=0.2)


def test_few_samples_are_no_normal_law():
    with pytest.raises(AssertionError, match="too few"):
        assert_mean(np.zeros(999), 0.0, planted=1.0)
