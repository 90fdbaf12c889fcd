r"""Networks whose weights are drawn: a Gaussian about a model, and its divergence from a Gaussian prior.

$\rho=N(\theta,\operatorname{diag}\sigma_i^2)$ and $\pi=N(\theta_0,\sigma_{\pi,g}^2)$ with one deviation per group $g$
(an array of the model). Then $\mathrm{KL}(\rho\|\pi)=\frac12\sum_gp_g\big(\frac{q_g}{\sigma_{\pi,g}^2}-1+\log
\sigma_{\pi,g}^2-l_g\big)$ with the means $q_g$ of $\sigma_i^2+(\theta_i-\theta_{0,i})^2$ and $l_g$ of $\log\sigma_i^2$
over the $p_g$ weights of the group. It is least at $\sigma_{\pi,g}^2=q_g$: $\frac12\sum_gp_g(\log q_g-l_g)$.

Departures: deviations by group or by weight, and a prior with its own.
Guarantee: exact up to rounding.
"""

import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Key, PyTree

from genscope.refusal import Refusal


def parameters(model: PyTree) -> PyTree:
    """The weights of a model: its floating point arrays."""
    return eqx.filter(model, eqx.is_inexact_array)


class GaussianPosterior(eqx.Module):
    """A Gaussian about a model: each of its arrays has an array of deviations, of its shape or one number for all.

    Their logarithms are what is trained, since these are free of limits.
    """

    mean: PyTree
    log_deviation: PyTree

    @property
    def deviation(self) -> PyTree:
        """Standard deviations of the weights."""
        return jax.tree.map(jnp.exp, self.log_deviation)

    @classmethod
    def around(cls, model: PyTree, deviation: float, *, by_weight: bool = False) -> "GaussianPosterior":
        """One deviation for all weights to start with."""
        if not deviation > 0:
            raise Refusal(
                f"GaussianPosterior.around got {deviation=}: the standard deviation of the weights must be positive. "
                "Change it."
            )
        start = jax.tree.map(
            lambda leaf: jnp.full(leaf.shape if by_weight else (), deviation, leaf.dtype), parameters(model)
        )
        return cls(model, jax.tree.map(jnp.log, start))

    def draw(self, key: Key[Array, ""]) -> PyTree:
        """A model with drawn weights."""
        return drawn(self.mean, self.deviation, key)


def drawn(mean: PyTree, deviation: PyTree, key: Key[Array, ""]) -> PyTree:
    """A model with weights drawn about a mean."""
    weights, rest = eqx.partition(mean, eqx.is_inexact_array)
    flat, unravel = ravel_pytree(weights)
    noise = unravel(jr.normal(key, flat.shape, flat.dtype))
    return eqx.combine(jax.tree.map(lambda w, s, n: w + s * n, weights, deviation, noise), rest)


def check_deviation(deviation: float | None) -> None:
    """Refuse a deviation of the prior that is none."""
    if deviation is not None and not 0 < deviation < math.inf:
        raise Refusal(
            f"got {deviation} as the standard deviation of the prior: it must be positive, and chosen without looking "
            "at the training set. Give one, or leave it out to pay for the best."
        )


class Moments(NamedTuple):
    """Of one group: its number of weights, the mean of σ² + (θ − θ₀)², and the mean of log σ²."""

    size: int
    square: Any
    log_variance: Any


def moments(mean: PyTree, deviation: PyTree, prior: PyTree | None, *, exactly: bool = False) -> dict[str, Moments]:
    """The moments of each group by its path; `prior` is a model with the prior's means, None means zeros.

    Inside JAX, or `exactly`: with NumPy in float64.
    """
    weights = jax.tree_util.tree_leaves_with_path(parameters(mean))
    deviations = jax.tree.leaves(deviation)
    centres = [0 * leaf for _, leaf in weights] if prior is None else jax.tree.leaves(parameters(prior))
    found = {}
    for (path, weight), spread, centre in zip(weights, deviations, centres, strict=True):
        if exactly:
            weight, spread, centre = (np.asarray(each, np.float64) for each in (weight, spread, centre))
        logarithm = np.log if exactly else jnp.log
        name = jax.tree_util.keystr(path, simple=True, separator=".") or "parameters"
        square = ((weight - centre) ** 2).mean() + (spread**2).mean()
        found[name] = Moments(weight.size, square, 2 * logarithm(spread).mean())
    return found


def divergence(group: Moments, deviation: Any) -> Any:
    r"""The part of a group in $\mathrm{KL}(\rho\|\pi)$, for a given deviation of the prior."""
    logarithm = 2 * math.log(deviation)
    return 0.5 * group.size * (group.square / deviation**2 - 1 + logarithm - group.log_variance)


def least_divergence(
    mean: PyTree, deviation: PyTree, prior: PyTree | None, prior_deviation: float | None = None
) -> Array:
    r"""$\mathrm{KL}(\rho\|\pi)$ for the best deviations of the prior, or for a given one; differentiable."""
    groups = moments(mean, deviation, prior).values()
    if prior_deviation is not None:
        return sum((divergence(each, prior_deviation) for each in groups), jnp.zeros(()))
    return sum((0.5 * g.size * (jnp.log(g.square) - g.log_variance) for g in groups), jnp.zeros(()))
