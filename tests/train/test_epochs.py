"""Epochs on a linear model of bits, whose training is known in closed form or by a loop in NumPy."""

import math

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from jaxtyping import Array, Float

from genscope.random import biased_bits
from genscope.tasks import Batch
from genscope.train.epochs import _order, squared_errors, train_epochs

SIZE, BITS = 64, 3
KEY = jr.key(3)


class Linear(eqx.Module):
    weights: Float[Array, " d"]

    def __call__(self, x):
        return self.weights @ x


@pytest.fixture(scope="module")
def examples():
    x = 1.0 - 2 * biased_bits(KEY, (SIZE, BITS), 0.5).astype(jnp.float32)
    return Batch(x, x @ jnp.array([1.0, -2.0, 0.5]))


def run(examples, **options):
    settings = dict(key=KEY, threshold=0.02, epochs=200, rate=0.05, batch_size=16)
    return train_epochs(Linear(jnp.zeros(BITS)), examples, **(settings | options))


def test_ends_with_the_first_epoch_below_the_threshold(examples):
    found = run(examples)
    assert found.reached
    assert found.loss < 0.02
    assert not run(examples, epochs=found.epochs - 1).reached
    assert found.epochs == len(found.curve)
    errors = squared_errors(found.model, examples)
    np.testing.assert_allclose(found.loss, np.mean((examples.x @ found.model.weights - examples.y) ** 2), rtol=1e-5)
    assert errors.shape == (SIZE,)


def adamw(examples, epochs, rate, decay, clip):
    """The same steps, one number at a time."""
    x, y = np.asarray(examples.x, float), np.asarray(examples.y, float)
    w, first, second, step = np.zeros(BITS), np.zeros(BITS), np.zeros(BITS), 0
    for epoch in range(epochs):
        for rows in np.asarray(_order(jr.fold_in(KEY, epoch), SIZE, 16)):
            gradient = 2 * x[rows].T @ (x[rows] @ w - y[rows]) / 16
            gradient = gradient * min(1, clip / np.linalg.norm(gradient))
            step += 1
            first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2
            scaled = (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
            w = w - rate * (scaled + decay * w)
    return w


def test_steps_are_those_of_adamw_with_cut_gradients(examples):
    found = run(examples, epochs=3, weight_decay=0.1, clip=1.0)
    np.testing.assert_allclose(found.model.weights, adamw(examples, 3, 0.05, 0.1, 1.0), rtol=1e-4)
    assert not np.allclose(found.model.weights, adamw(examples, 3, 0.05, 0.1, math.inf), rtol=1e-3)


def test_an_epoch_visits_every_example_once():
    order = np.asarray(_order(KEY, 50, 16))
    assert order.shape == (3, 16)
    assert len(np.unique(order)) == 48
    assert not np.array_equal(order, np.asarray(_order(jr.fold_in(KEY, 1), 50, 16)))


def test_a_run_that_does_not_arrive_is_a_result(examples):
    short = run(examples, epochs=2)
    assert not short.reached
    assert not short.diverged
    assert short.loss > 0.02
    broken = run(Batch(examples.x, examples.y * jnp.nan), epochs=50)
    assert broken.diverged
    assert not broken.reached
    assert broken.epochs == 1


def test_noise_changes_steps_and_not_what_is_reported(examples):
    still, noisy = run(examples), run(examples, noise=0.3)
    assert not np.array_equal(still.model.weights, noisy.model.weights)
    # The expected loss at noisy weights is that of the weights plus 3 · 0.09, whatever they are.
    assert noisy.curve[-1] > 0.1 > 0.02 > noisy.loss


def test_the_model_given_is_left_alone(examples):
    model = Linear(jnp.zeros(BITS))
    train_epochs(model, examples, key=KEY, threshold=0.02, epochs=2, rate=0.05, batch_size=16)
    assert not model.weights.any()


@pytest.mark.parametrize("options", [{"batch_size": 65}, {"batch_size": 0}, {"epochs": 0}])
def test_impossible_settings_are_refused(examples, options):
    with pytest.raises(ValueError, match="smaller batch or a larger sample"):
        run(examples, **options)
