"""Runs that share a sample: what a group of them is worth, and thresholds from such groups on simulated curves."""

import math

import numpy as np
import pytest

from genscope.lab.statistics.clusters import counts_of, worth
from genscope.lab.statistics.estimation import estimate
from genscope.lab.statistics.threshold import Search
from tests.chance import Seldom
from tests.lab.test_threshold import covers
from tests.seeds import seed


def groups(rng, probability, number, runs=6, correlation=0.4):
    """Shares of groups whose outcomes are correlated: each group has a probability of its own, from a Beta law."""
    own = rng.beta(*((1 / correlation - 1) * p for p in (probability, 1 - probability)), number)
    return (rng.binomial(runs, own) / runs).tolist()


def test_outcomes_alone_are_worth_one_each_exactly():
    shares = {20: [0, 0, 1, 0, 0], 40: [1, 0, 1, 1], 60: [1, 1, 1]}
    assert worth(shares) == pytest.approx(1, rel=1e-12)
    assert counts_of({20: [False, True], 10: [True]}) == {10: (1, 1), 20: (1, 2)}


def test_groups_are_worth_what_their_correlation_leaves():
    rng = np.random.default_rng(1)
    for correlation in (0.01, 0.3, 0.9):
        shares = {size: groups(rng, p, 4000, correlation=correlation) for size, p in ((20, 0.2), (40, 0.5), (60, 0.9))}
        assert worth(shares) == pytest.approx(6 / (1 + 5 * correlation), rel=0.05)
    assert worth({20: [0.5, 0.5], 40: [0.5]}) == 1  # too few to tell
    assert worth({20: [1.0] * 20}) == 1
    assert worth({20: [0.5] * 20}) == pytest.approx(10)  # at most


@pytest.mark.slow
def test_intervals_cover_for_runs_that_share_samples():
    # 5 % miss. Counted as if all runs were independent, the intervals are 1/√3 as long, and a quarter misses.
    law, rng = Seldom(600, 0.055, planted=0.2), np.random.default_rng(seed(31))
    missed = np.zeros(2, int)
    search = Search(level=0.5, lowest=16, highest=600)
    for _ in range(law.trials):
        truth = 70 * math.exp(rng.uniform(-0.3, 0.3))
        shares = {
            size: groups(rng, 0.95 / (1 + (0.45 / 0.5) * (truth / size) ** 4), 16) for size in (40, 52, 68, 88, 115)
        }
        alone = {size: (round(6 * sum(values)), 6 * len(values)) for size, values in shares.items()}
        missed += [not covers(estimate(search, counts), truth) for counts in (counts_of(shares), alone)]
    assert law.explains(missed[0])
    assert not law.explains(missed[1])


def test_shares_beyond_0_and_1_are_refused():
    with pytest.raises(ValueError, match="Let the trial return one of these"):
        counts_of({20: [0.5, 1.5]})
