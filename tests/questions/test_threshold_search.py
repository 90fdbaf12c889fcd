"""The bare search for a threshold."""

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import genscope as gs
from genscope.questions import threshold_search
from genscope.refusal import Refusal


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


@pytest.mark.parametrize("given", [True, 1, np.True_, jnp.array(True), np.float32(1.0)])
def test_success_may_be_said_by_any_library(given):
    assert gs.sample_complexity(lambda key, size: given, 2, 20).state == "below"


@pytest.mark.parametrize("given", ["no", None, 0.3, float("nan"), [True], jnp.ones(2)])
def test_a_trial_that_says_neither_is_refused(given):
    with pytest.raises(Refusal, match="Return True or False"):
        gs.sample_complexity(lambda key, size: given, 2, 20)


def test_numbers_that_make_no_sense_are_refused():
    with pytest.raises(Refusal, match=r"trials=0: it must be a whole number of at least 1\. Change it"):
        gs.sample_complexity(logistic, 2, 20, trials=0)
    for name, value in {"low": 1.5, "trials": 2.5, "seed": "a"}.items():
        with pytest.raises(Refusal, match=f"{name}=.*: it must be a whole number"):
            threshold_search._whole(**{name: value})
    assert threshold_search._whole(low=np.int64(2), trials=1) == [2, 1]


def test_a_range_that_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match="Widen the range"):
        gs.sample_complexity(logistic, 20, 10)
