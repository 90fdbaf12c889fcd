"""The bare search for a threshold."""

import jax.random as jr
import numpy as np
import pytest

import genscope as gs


def logistic(key, size):
    """A run that succeeds with a probability of 0.8 at a size of 100."""
    chance = 1 / (1 + np.exp(-(np.log(size / 100) * 6 + np.log(4))))
    return bool(jr.uniform(key) < chance)


def test_it_finds_a_known_threshold_and_says_how_well():
    asked = []
    found = gs.sample_complexity(lambda key, size: asked.append(size) or logistic(key, size), 10, 1000)
    assert found.state == "crossed"
    assert found.trials == len(asked) <= 400
    assert found.low < found.size < found.high
    assert 70 < found.low < 130  # the interval has a width of some 10 %; how often it covers is tested in tests/lab
    assert max(found.high / found.size, found.size / found.low) <= 1.1 or found.trials > 384
    again = gs.sample_complexity(logistic, 10, 1000)
    assert (again.size, again.trials) == (found.size, found.trials)
    assert gs.sample_complexity(logistic, 10, 1000, seed=1).size != found.size


def test_a_threshold_outside_is_a_bound():
    found = gs.sample_complexity(logistic, 2, 20, trials=64)
    assert (found.state, found.size, found.low) == ("above", None, 20)


def test_a_range_that_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match="Widen the range"):
        gs.sample_complexity(logistic, 20, 10)
