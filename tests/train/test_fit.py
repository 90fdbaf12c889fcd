import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest
from equinox import Module
from jaxtyping import Array

from genscope.random import stream
from genscope.train import ADAM, cross_entropy, fit, squared
from genscope.train.padding import example_weights, padded_size

KEY = jr.key(3)


class Affine(Module):
    weight: Array
    bias: Array

    def __call__(self, x):
        return x @ self.weight + self.bias


START = Affine(jnp.zeros(3), jnp.zeros(()))
X = jr.normal(stream(KEY, "x"), (20, 3))
Y = X @ jnp.array([1.0, -2.0, 0.5]) + 0.3


def test_full_batch_descent_equals_the_update_written_out():
    fitted = fit(START, X, Y, loss=squared, optimizer=optax.sgd(1.0), rate=0.1, steps=7, every=3)
    weight, bias, losses = np.zeros(3), 0.0, []
    x, y = np.asarray(X, np.float64), np.asarray(Y, np.float64)
    for _ in range(7):
        residual = x @ weight + bias - y
        losses.append((residual**2).mean())
        weight, bias = weight - 0.1 * 2 * x.T @ residual / 20, bias - 0.1 * 2 * residual.mean()
    np.testing.assert_allclose(fitted.model.weight, weight, rtol=1e-5)
    np.testing.assert_allclose(fitted.model.bias, bias, rtol=1e-5)
    np.testing.assert_allclose(fitted.losses, losses, rtol=1e-4)
    assert (fitted.steps, fitted.stopped, fitted.diverged) == (7, False, False)


def test_grouping_of_steps_changes_nothing():
    one, many = (fit(START, X, Y, loss=squared, rate=0.05, steps=12, every=every) for every in (12, 4))
    np.testing.assert_allclose(one.losses, many.losses, rtol=1e-6)


def test_padding_changes_nothing():
    padded = padded_size(20)
    junk = jnp.full((padded - 20, 3), 1e3)
    x, y = jnp.concatenate([X, junk]), jnp.concatenate([Y, jnp.zeros(padded - 20)])
    plain = fit(START, X, Y, loss=squared, rate=0.05, steps=10)
    masked = fit(START, x, y, weight=example_weights(20, padded), loss=squared, rate=0.05, steps=10)
    np.testing.assert_allclose(masked.model.weight, plain.model.weight, rtol=1e-5)


def test_early_stop_and_the_start_is_left_alone():
    seen = []
    fitted = fit(START, X, Y, loss=squared, steps=50, every=5, stop=lambda model, step: seen.append(step) or step >= 15)
    assert (fitted.steps, fitted.stopped, seen) == (15, True, [5, 10, 15])
    assert not START.weight.any()


def test_a_loss_below_the_floor_ends_the_run():
    free = fit(START, X, Y, loss=squared, rate=0.05, steps=200, every=10)
    ended = fit(START, X, Y, loss=squared, rate=0.05, steps=200, every=10, floor=0.5)
    assert ended.settled
    assert not free.settled
    assert free.losses[ended.steps - 1] < 0.5 <= free.losses[ended.steps - 11]


def test_divergence_ends_the_run_and_is_recorded():
    fitted = fit(
        START, X, Y, loss=squared, optimizer=optax.sgd(1.0), rate=1e30, steps=50, every=5, stop=lambda *_: True
    )
    assert fitted.diverged
    assert not fitted.stopped
    assert fitted.steps == 5
    assert not np.isfinite(fitted.loss)


def test_rates_share_one_program():
    with jax.log_compiles(False):
        fit(START, X, Y, loss=cross_entropy, rate=0.1, steps=2, every=2)
        before = _compilations()
        for rate in (0.2, 0.3):
            fit(START, X, Y, loss=cross_entropy, rate=rate, steps=2, every=2, optimizer=ADAM)
        assert _compilations() == before


def _compilations():
    from genscope.train.fit import advance

    return advance._cache_size()


def test_no_steps_are_refused():
    with pytest.raises(ValueError, match="Give at least 1"):
        fit(START, X, Y, loss=squared, steps=0)


def test_padded_sizes_waste_at_most_a_quarter():
    for size in range(32, 5000):
        assert size <= padded_size(size) <= 1.25 * size
    assert len({padded_size(size) for size in range(1, 5000)}) < 31
    with pytest.raises(ValueError, match="Give 1 or more"):
        padded_size(0)
