"""Gaussians about a model: draws, and divergences against sums over single weights."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from scipy.optimize import minimize

from genscope.train.posterior import GaussianPosterior, least_divergence, moments
from tests.chance import assert_mean
from tests.seeds import seed


class Small(eqx.Module):
    weight: jax.Array
    bias: jax.Array
    steps: int = 3

    def __call__(self, x):
        return self.weight @ x + self.bias


@pytest.fixture(scope="module")
def model():
    return Small(jr.normal(jr.key(1), (4, 3)), jnp.asarray([0.5, -1.0, 0.0, 2.0]))


def by_weight(model):
    spread = jax.tree.map(lambda leaf: 0.05 + 0.1 * jnp.abs(leaf), eqx.filter(model, eqx.is_inexact_array))
    return GaussianPosterior(model, jax.tree.map(jnp.log, spread))


def divergence(posterior, prior, deviations):
    """The sum over single weights of ½(σ²/s² + (θ − θ₀)²/s² − 1 − log σ²/s²)."""
    total = 0.0
    for name, s in deviations.items():
        theta = np.asarray(getattr(posterior.mean, name), float)
        sigma = np.broadcast_to(np.asarray(getattr(posterior.deviation, name), float), theta.shape)
        centre = np.asarray(getattr(prior, name), float) if prior is not None else np.zeros_like(theta)
        for t, d, c in zip(theta.flat, sigma.flat, centre.flat, strict=True):
            total += 0.5 * (d**2 / s**2 + (t - c) ** 2 / s**2 - 1 - np.log(d**2 / s**2))
    return total


@pytest.mark.parametrize("with_prior", [False, True])
@pytest.mark.parametrize("make", [by_weight, lambda model: GaussianPosterior.around(model, 0.2)])
def test_the_least_divergence_is_the_minimum_over_the_deviations_of_the_prior(model, make, with_prior):
    posterior = make(model)
    prior = Small(model.weight + 0.1, model.bias - 0.3) if with_prior else None
    found = minimize(
        lambda logs: divergence(posterior, prior, dict(zip(("weight", "bias"), np.exp(logs), strict=True))),
        [0.0, 0.0],
        tol=1e-10,
    )
    assert float(least_divergence(posterior.mean, posterior.deviation, prior)) == pytest.approx(found.fun, rel=1e-5)
    exact = moments(posterior.mean, posterior.deviation, prior, exactly=True)
    assert np.exp(2 * found.x) == pytest.approx([exact[name].square for name in ("weight", "bias")], rel=1e-3)


def test_at_the_prior_nothing_is_paid(model):
    posterior = GaussianPosterior.around(model, 0.3)
    assert float(least_divergence(posterior.mean, posterior.deviation, model)) == pytest.approx(0.0, abs=1e-5)


def test_draws_have_the_mean_and_the_deviation(model):
    """5,000 draws of each weight; a mean off by a quarter of the deviation, or a variance 40 % larger, is found."""
    posterior = by_weight(model)
    drawn = jax.vmap(lambda key: posterior.draw(key).weight)(jr.split(jr.key(seed(3)), 5000))
    spread = np.asarray(posterior.deviation.weight)
    z = (np.asarray(drawn, float) - np.asarray(model.weight)) / spread
    for each in z.reshape(5000, -1).T:
        assert_mean(each, 0, planted=0.25)
        assert_mean(each**2, 1, planted=1.4)
    assert posterior.draw(jr.key(0)).steps == 3


def test_a_deviation_is_positive(model):
    with pytest.raises(ValueError, match="positive"):
        GaussianPosterior.around(model, 0.0)
