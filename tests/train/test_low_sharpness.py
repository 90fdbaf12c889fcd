"""Definition 1's learner against closed forms, and its trace against a dense Hessian."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from genscope.precision import float64
from genscope.refusal import Refusal
from genscope.tasks import Batch
from genscope.train import LowSharpness, Risk, Whole, adam, cosine, fit, squared


class Product(eqx.Module):
    """The output a b x of one number."""

    a: jnp.ndarray
    b: jnp.ndarray

    def __call__(self, x):
        return self.a * self.b * x


def descend(mu, nu, steps=1500):
    """At (x, y) = (1, 1) from an unbalanced start: the loss is (ab - 1)² and its Hessian has the trace 2(a² + b²)."""
    with float64():
        batch = Batch(jnp.ones(1), jnp.ones(1))
        learner = LowSharpness(Risk(squared), mu=mu, nu=nu, probes=16)
        start = Product(jnp.asarray(2.0), jnp.asarray(0.3))
        source = Whole(batch, jr.key(3))
        return fit(start, source, learner, steps, optimizer=adam(0.02, schedule=cosine(steps)), every=500)


@pytest.mark.parametrize(("mu", "nu"), [(0.1, 0.0), (0.06, 0.1)])
def test_the_minimum_is_balanced_and_shrunk_as_both_weights_ask(mu, nu):
    """F = (ab - 1)² + (mu + 2 nu)(a² + b²) is least at a = b with a² = 1 - mu - 2 nu."""
    found = descend(mu, nu)
    a, b = float(found.model.a), float(found.model.b)
    wanted = 1 - mu - 2 * nu
    assert (a * a, b * b) == pytest.approx((wanted, wanted), abs=0.02)
    assert abs(wanted - (1 - mu - nu)) > 0.04 or nu == 0  # a trace of half the size would give this
    last = {name: values[-1] for name, values in found.recorded.items()}
    assert last["risk"] == pytest.approx((a * b - 1) ** 2, abs=1e-3)
    assert last["squared_norm"] == pytest.approx(a * a + b * b, rel=1e-2)


class Small(eqx.Module):
    """Five weights, no symmetry."""

    w: jnp.ndarray

    def __call__(self, x):
        w = self.w
        return w[0] * jnp.tanh(w[1] * x + w[2]) + w[3] * jnp.sin(w[4] * x)


def test_all_signs_together_give_the_trace_of_the_dense_hessian_and_its_gradient(monkeypatch):
    """The mean over all 2⁵ vectors of signs is the expectation, with no error left but rounding."""
    all_signs = np.array(list(itertools.product((-1.0, 1.0), repeat=5)))
    with float64():
        batch = Batch(jnp.asarray([0.3, -1.0, 2.0]), jnp.asarray([1.0, -1.0, 0.5]))
        at = jnp.asarray([0.7, -1.2, 0.4, 1.1, 0.9])

        def plain(w):
            return Risk(squared)(Small(w), batch, None)[0]

        def exact(w):
            return plain(w) + 0.3 * jnp.sum(w**2) + 0.7 * jnp.trace(jax.hessian(plain)(w))

        def learned(w):
            return LowSharpness(Risk(squared), mu=0.3, nu=0.7, probes=32)(Small(w), batch, jr.key(0))[0]

        monkeypatch.setattr(jr, "rademacher", lambda key, shape, dtype: jnp.asarray(all_signs, dtype))
        assert float(learned(at)) == pytest.approx(float(exact(at)), rel=1e-12)
        wanted = np.asarray(jax.grad(exact)(at))
        assert np.asarray(jax.grad(learned)(at)) == pytest.approx(wanted, rel=1e-10)
        assert np.abs(wanted - np.asarray(jax.grad(plain)(at)) - 0.6 * np.asarray(at)).max() > 0.1  # the trace counts
        monkeypatch.setattr(jr, "rademacher", lambda key, shape, dtype: jnp.asarray(2 * all_signs, dtype))
        assert float(learned(at)) != pytest.approx(float(exact(at)), rel=0.1)  # signs of another size are found


def test_losses_are_those_of_the_objective():
    with float64():
        batch = Batch(jnp.ones(2), jnp.asarray([1.0, 3.0]))
        model = Product(jnp.asarray(2.0), jnp.asarray(1.0))
        assert LowSharpness(Risk(squared), mu=1.0, nu=1.0).losses(model, batch).tolist() == [1.0, 1.0]


def test_refusals():
    for weights in ({"mu": -1.0, "nu": 0.0}, {"mu": 0.0, "nu": float("inf")}, {"mu": 0.0, "nu": 0.0, "probes": 0}):
        with pytest.raises(Refusal, match="not be negative"):
            LowSharpness(Risk(squared), **weights)
    batch = Batch(jnp.ones(1), jnp.ones(1))
    learner = LowSharpness(Risk(squared), mu=0.1, nu=0.1)
    with pytest.raises(Refusal, match="Give the source a key"):
        fit(Product(jnp.ones(()), jnp.ones(())), Whole(batch), learner, 2, optimizer=adam(0.1))
