"""The share of predictions that depends on the index, for predictors whose share is known."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from genscope.measure.index_share import index_share
from genscope.tasks.token_regression import TokenRegression

N, SIZE = 5, 20_000
TASK = TokenRegression.draw(jr.key(0), context_length=N)


def share(predict, task=TASK):
    return float(jax.jit(lambda: index_share(predict, task, jr.key(1), size=SIZE, chunk=500))())


def mixed(weight):
    """weight times the label and the rest of the mean label, at every position."""

    def predict(prompts):
        labels, means = jax.vmap(TASK.target)(prompts), jax.vmap(TASK.guess)(prompts)[:, None]
        return weight * labels + (1 - weight) * means

    return predict


@pytest.mark.parametrize("weight", [0.0, 0.2, 1.0])
def test_of_a_mixture_of_label_and_mean(weight):
    """The label less its mean has variance 1 - 1/N given the tokens, and the mean has 1/N."""
    inside = weight**2 * (1 - 1 / N)
    assert share(mixed(weight)) == pytest.approx(inside / (inside + 1 / N), abs=0.02)


def test_a_constant_has_none_however_it_differs_between_positions():
    assert share(lambda prompts: jnp.broadcast_to(jnp.arange(float(N)), prompts.shape[:2])) == 0


def test_padding_is_left_out():
    padded = TASK.padded(N + 3, TASK.encoding.shape[1])

    def predict(prompts):
        labels = jax.vmap(padded.target)(prompts)
        return jnp.where(padded.real[None], labels, 50 * prompts[:, :, -1])  # padding that screams the index

    assert share(predict, padded) == pytest.approx(share(mixed(1.0)), abs=0.02)


def test_against_the_analysis_of_variance_of_all_positions():
    """Brute force for one position: all N answers of each prompt."""
    x, _ = TASK.raw(jr.key(2), 4_000)
    predict = mixed(0.5)
    answers = np.stack(
        [
            np.asarray(predict(jnp.concatenate([x, jnp.full((*x.shape[:2], 1), t, x.dtype)], axis=2)))[:, 0]
            for t in range(N)
        ]
    )
    expected = answers.var(axis=0).mean() / answers.var()
    assert share(predict) == pytest.approx(expected, abs=0.02)
