import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from equinox import Module
from jaxtyping import Array

from genscope.tasks import SparseAnd
from genscope.train import Validation
from genscope.train.loss import correct

TASK = SparseAnd.at([0, 2, 5], context_length=8)


class Rule(Module):
    """Predicts the task, except where `exception` says so."""

    exception: Array


def oracle(model, x):
    truth = jnp.where(jnp.all(x[:, TASK.support], axis=1), 1.0, -1.0)
    pattern = x.astype(jnp.int32) @ (2 ** jnp.arange(8))
    return jnp.where(pattern == model.exception, -truth, truth)


def validation(size=2000, chunk=200):
    return Validation(TASK, key=jr.key(0), predict=oracle, size=size, chunk=chunk)


def test_a_right_model_is_perfect_and_a_rare_mistake_is_found():
    held_out = validation()
    assert held_out.perfect(Rule(jnp.array(-1)))
    assert held_out.accuracy(Rule(jnp.array(-1))) == 1
    # the mistake on one input of 256: its expected share is p^ones (1-p)^zeros
    accuracies = [held_out.accuracy(Rule(jnp.array(pattern))) for pattern in range(256)]
    assert np.sum(1 - np.array(accuracies)) == pytest.approx(1)  # each example has exactly one pattern
    for pattern in range(256):
        assert held_out.perfect(Rule(jnp.array(pattern))) == (accuracies[pattern] == 1)


def test_screened_and_full_verdicts_rest_on_the_same_examples():
    held_out = validation()
    assert held_out.accuracy(Rule(jnp.array(255))) == held_out.accuracy(Rule(jnp.array(255)))
    assert held_out.screen(Rule(jnp.array(255))) != held_out.accuracy(Rule(jnp.array(255)))


def test_a_bad_model_is_refused_after_a_glance():
    seen = []

    def wrong(model, x):
        seen.append(len(x))
        return -oracle(model, x)

    held_out = Validation(TASK, key=jr.key(0), predict=wrong, size=2000, chunk=500)
    assert not held_out.perfect(Rule(jnp.array(-1)))
    assert seen == [250]


def test_chunks_may_be_smaller_than_a_glance():
    assert validation(size=100, chunk=50).perfect(Rule(jnp.array(-1)))
    assert not validation(size=100, chunk=50).perfect(Rule(jnp.array(255)))


def test_nan_is_never_right():
    assert not correct(jnp.full(2, jnp.nan), jnp.array([0.0, 1.0])).any()


def test_sizes_must_be_whole_chunks():
    with pytest.raises(ValueError, match="multiple"):
        validation(size=150, chunk=100)


def test_accuracy_on_other_examples_ignores_the_padding():
    held_out = validation(size=200, chunk=100)
    for size in (30, 100, 250):
        examples = TASK.sample(jr.key(size), size)
        pattern = np.asarray(examples.x[0]).astype(int) @ (2 ** np.arange(8))
        share = np.mean(np.asarray(examples.x).astype(int) @ (2 ** np.arange(8)) == pattern)
        assert held_out.accuracy_on(Rule(jnp.array(pattern, jnp.int32)), examples) == pytest.approx(1 - share)
