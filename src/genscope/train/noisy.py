r"""Training with weight noise, on the terms of a PAC-Bayes bound themselves.

Each step draws weights $\theta+\sigma\xi$ and a part of the sample, and descends the relaxed bound $\hat R+\sqrt{2B\hat
R\psi}+2B\psi$, $\psi=\frac1n(\mathrm{KL}+\log\frac{2\sqrt n}\delta)$, in $\theta$ and $\log\sigma$: noise asks for flat
minima, the divergence for weights near the prior's means and for deviations as large as the loss allows.

Source: lintilhac2026, Definition 1 (a learner that minimises loss, norm and trace); dziugaite2017 (by its bound).
Departures: the expected loss at drawn weights takes the place of the trace, whose estimate would have to be
differentiated; deviations are learned.
Guarantee: none by itself; whatever comes out is a posterior that a certificate may be asked for.
"""

import functools
import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
from jaxtyping import Array, Float, Key, PyTree

from genscope.random import stream
from genscope.train.fit import Loss, Predict, by_example, updated
from genscope.train.posterior import Posterior, least_divergence

Learned = dict[str, PyTree]  # "weights", unless they stay, and "log_deviation"


class NoisyFit(NamedTuple):
    """A trained posterior, and the relaxed bound at every step as its own draw saw it."""

    posterior: Posterior
    bounds: np.ndarray

    @property
    def diverged(self) -> bool:
        """Some bound was not finite."""
        return not np.isfinite(self.bounds).all()


def fit_noisy(
    start: Posterior,
    x: Array,
    y: Array,
    *,
    prior: PyTree | None,
    loss: Loss,
    steps: int,
    key: Key[Array, ""],
    clip: float = 1.0,
    confidence: float = 0.95,
    rate: float = 1e-3,
    deviation_rate: float = 1e-2,
    batch: int = 256,
    train_mean: bool = True,
    predict: Predict = by_example,
) -> NoisyFit:
    """Adam on the relaxed bound, with rates that fall to zero; without `train_mean`, deviations alone are learned."""
    if min(steps, batch) < 1 or not min(rate, deviation_rate, clip) > 0:
        raise ValueError(
            f"fit_noisy got {steps=}, {batch=}, {rate=}, {deviation_rate=}, {clip=}: counts are at least 1, rates and "
            "clip positive. Correct the one that is not."
        )
    weights = {"weights": eqx.filter(start.mean, eqx.is_inexact_array)} if train_mean else {}
    learned = {**weights, "log_deviation": jax.tree.map(jnp.log, start.deviation)}
    learned, bounds = _trained(
        learned,
        (start.mean, prior, x, y),
        jnp.asarray([clip, math.log(2 * math.sqrt(len(x))) - math.log1p(-confidence)], jnp.float32),
        key,
        _Program(loss, predict, _optimizer(rate, deviation_rate, steps), steps, batch),
    )
    return NoisyFit(_posterior(learned, start.mean), np.asarray(bounds, float))


class _Program(NamedTuple):
    """What a run compiles for."""

    loss: Loss
    predict: Predict
    optimizer: optax.GradientTransformation
    steps: int
    batch: int


@functools.cache  # one object for equal settings, so that runs share a program
def _optimizer(rate: float, deviation_rate: float, steps: int) -> optax.GradientTransformation:
    rates = {"weights": rate, "log_deviation": deviation_rate}
    adams: dict[Any, optax.GradientTransformation] = {
        name: optax.adam(optax.cosine_decay_schedule(each, steps)) for name, each in rates.items()
    }
    return optax.multi_transform(adams, lambda learned: {name: name for name in learned})


def _posterior(learned: Learned, mean: PyTree) -> Posterior:
    if "weights" in learned:
        mean = eqx.combine(learned["weights"], mean)
    return Posterior(mean, jax.tree.map(jnp.exp, learned["log_deviation"]))


@eqx.filter_jit
def _trained(
    learned: Learned, given: tuple[Any, ...], numbers: Float[Array, "2"], key: Key[Array, ""], program: _Program
) -> tuple[Learned, Float[Array, " steps"]]:
    mean, prior, x, y = given
    clip, tail = numbers

    def bound(learned: Learned, key: Key[Array, ""]) -> Array:
        posterior = _posterior(learned, mean)
        index = jr.randint(stream(key, "examples"), (program.batch,), 0, len(x))
        predictions = program.predict(posterior.draw(stream(key, "weights")), x[index])
        risk = program.loss(predictions, y[index], jnp.ones(program.batch))
        psi = (least_divergence(posterior, prior) + tail) / len(x)
        return risk + jnp.sqrt(2 * clip * risk * psi) + 2 * clip * psi

    def step(carry: tuple[Any, PyTree], number: Array) -> tuple[tuple[Any, PyTree], Array]:
        learned, state = carry
        value, gradient = jax.value_and_grad(bound)(learned, jr.fold_in(key, number))
        return updated(learned, state, gradient, optimizer=program.optimizer, rate=jnp.float32(1)), value

    start = learned, program.optimizer.init(learned)
    (learned, _), bounds = jax.lax.scan(step, start, jnp.arange(program.steps))
    return learned, bounds
