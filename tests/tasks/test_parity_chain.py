"""Parity with its steps: running parities by hand and by brute force, and the prompts of a chain."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from genscope.fourier import points
from genscope.tasks.parity_chain import ParityChain, prompts


def test_running_parities_by_hand():
    task = ParityChain.at([0, 1, 3], context_length=4)
    assert task.target(jnp.asarray([1, 1, 1, 1], bool)).tolist() == [1, 0, 0, 1]
    assert task.target(jnp.asarray([0, 1, 1, 0], bool)).tolist() == [0, 1, 1, 1]


def test_the_last_one_is_the_parity():
    x = jnp.asarray(points(6).astype(bool))
    for task, support in (
        (ParityChain.draw(jr.key(0), context_length=6), slice(None)),
        (ParityChain.at([5, 2], context_length=6), [2, 5]),
    ):
        answers = np.asarray(jax.vmap(task.target)(x))[:, -1]
        np.testing.assert_array_equal(answers, np.asarray(x)[:, support].sum(axis=1) % 2)


def test_prompts_hold_what_was_written_before_each_step():
    task = ParityChain.draw(jr.key(0), context_length=3)
    x = jnp.asarray([[1, 1, 0], [0, 1, 1]], bool)
    assert prompts(x, jax.vmap(task.target)(x)).astype(int).tolist() == [[1, 1, 0, 0, 1, 0], [0, 1, 1, 0, 0, 1]]


def test_supports_are_drawn_of_the_given_size():
    task = ParityChain.draw(jr.key(1), context_length=10, support_size=5)
    assert int(task.relevant.sum()) == 5
    assert task.relevant.shape == (10,)


def test_what_is_refused():
    for support in ([4], [0, 0], [], [-1]):
        with pytest.raises(ValueError, match="Correct the positions"):
            ParityChain.at(support, context_length=4)
    with pytest.raises(ValueError, match="Choose a smaller support"):
        ParityChain.draw(jr.key(0), context_length=4, support_size=5)
    with pytest.raises(ValueError, match="one truth value for each"):
        ParityChain(jnp.ones(3, bool), 4)
