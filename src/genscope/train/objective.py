r"""What training descends: a mean loss, the mean loss at noisy weights, or a PAC-Bayes bound.

Source: lintilhac2026, Definition 1 (a learner that minimizes loss, norm and trace), by way of sharpness as the mean
loss at perturbed weights; dziugaite2017 (training on the bound itself).
Departures: the expected loss at drawn weights takes the place of the trace, which `train.low_sharpness` has itself, at
four times the cost; deviations are learned.
Guarantee: exact values and gradients on the examples and draws of a step.
"""

import abc
import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Key, PyTree

from genscope.models import called
from genscope.random import stream
from genscope.refusal import Refusal
from genscope.tasks import Batch
from genscope.train.loss import Loss, own_loss, squared, weighted_mean
from genscope.train.optimizers import number
from genscope.train.posterior import GaussianPosterior, check_deviation, drawn, least_divergence

Predict = Callable[[Any, Any], Array]  # of a model and a batch of inputs
Value = tuple[Float[Array, ""], dict[str, Float[Array, "..."]]]  # what is descended, and what is recorded beside it
CHUNK = 512


def by_example(model: Any, x: Any) -> Array:
    """Outputs of a model that takes one example, several inputs by name: the default `predict`."""
    if getattr(model, "takes_batches", False):  # a module of PyTorch does
        return called(model.outputs, x)
    return jax.vmap(lambda example: called(model, example))(x)


class AbstractObjective(eqx.Module):
    """Losses of a model on examples, and what a step descends: their mean unless a subclass says otherwise."""

    @abc.abstractmethod
    def losses(self, model: Any, batch: Any) -> Float[Array, " size"]:
        """The loss of each example."""

    def __call__(self, model: Any, batch: Any, key: Key[Array, ""] | None) -> Value:
        """The value at a step, whose noise comes from the key."""
        return weighted_mean(self.losses(model, batch), getattr(batch, "weight", None)), {}


class Risk(AbstractObjective):
    """The mean loss; `predict(model, x)` evaluates a batch, and means of the losses `also` are recorded."""

    loss: Loss
    predict: Predict = by_example
    also: tuple[Loss, ...] = ()

    def losses(self, model, batch):
        """Of the predictions."""
        return self.loss(self.predict(model, batch.x), batch.y)

    def __call__(self, model, batch, key):
        """The mean under the weights of the batch."""
        outputs = self.predict(model, batch.x)
        recorded = {each.name: weighted_mean(each(outputs, batch.y), batch.weight) for each in self.also}
        return weighted_mean(self.loss(outputs, batch.y), batch.weight), recorded


class Together(AbstractObjective):
    """The sum of the mean losses of several models on the same examples, each of which trains as it would alone.

    `predict(models, x)` has one row of outputs for each model. With an optimizer that treats every parameter by itself,
    the runs do not know of each other: the gradient of the sum is that of each model's own loss.
    """

    loss: Loss
    predict: Predict

    def losses(self, model, batch):
        """Of each example, summed over the models."""
        return jnp.sum(jax.vmap(lambda outputs: self.loss(outputs, batch.y))(self.predict(model, batch.x)), axis=0)

    def __call__(self, model, batch, key):
        """The sum; the mean loss of each model is recorded."""
        outputs = self.predict(model, batch.x)
        each = jax.vmap(lambda outputs: weighted_mean(self.loss(outputs, batch.y), batch.weight))(outputs)
        return jnp.sum(each), {self.loss.name: each}


def as_objective(given: Any) -> AbstractObjective:
    """An objective as it is, a loss as its mean; a function of output and label of one example is a loss."""
    if isinstance(given, AbstractObjective):
        return given
    return Risk(given if isinstance(given, Loss) else own_loss(given))


class WeightNoise(AbstractObjective):
    """An objective at weights with independent normal noise, drawn at each step; its `losses` are without noise."""

    objective: AbstractObjective
    deviation: Array = eqx.field(converter=number)

    def losses(self, model, batch):
        """Without noise."""
        return self.objective.losses(model, batch)

    def __call__(self, model, batch, key):
        """One flat draw of all weights, which compiles and runs fastest."""
        weights, rest = eqx.partition(model, eqx.is_inexact_array)
        flat, restore = ravel_pytree(weights)
        noise = self.deviation.astype(flat.dtype) * jr.normal(_given(key), flat.shape, flat.dtype)
        return self.objective(eqx.combine(restore(flat + noise), rest), batch, key)


class PacBayes(AbstractObjective):
    r"""The relaxed bound $\hat R+\sqrt{2B\hat R\psi}+2B\psi$, $\psi=\frac1n(\mathrm{KL}+\log\frac{2\sqrt n}\delta)$.

    The model is a `GaussianPosterior`; a step draws its weights. Noise asks for flat minima, the divergence for weights
    near the prior's means (a model, or None for zeros) and for deviations as large as the loss allows. What comes out
    may be asked for a certificate.
    """

    loss: Loss = eqx.field(default=squared)
    prior: PyTree | None = eqx.field(kw_only=True)
    sample_size: int = eqx.field(kw_only=True)
    clip: Array = eqx.field(converter=number, default=1.0, kw_only=True)
    confidence: float = 0.95
    predict: Predict = by_example
    prior_deviation: float | None = None  # of all weights, if it was settled without the sample

    def __check_init__(self):
        check_deviation(self.prior_deviation)
        if not (self.clip > 0 and 0 < self.confidence < 1 and self.sample_size > 0):
            raise Refusal(
                f"PacBayes got clip={self.clip}, confidence={self.confidence}, sample_size={self.sample_size}: clip "
                "and sample size must be positive, and the confidence must lie between 0 and 1. Correct the one that "
                "is out of range."
            )

    def losses(self, model, batch):
        """Of the network with the mean weights."""
        return Risk(self.loss, self.predict).losses(model.mean, batch)

    def __call__(self, model: GaussianPosterior, batch, key):
        """The bound, as one draw sees it."""
        mean, deviation = model.mean, model.deviation
        sampled = drawn(mean, deviation, stream(_given(key), "weights"))
        risk, recorded = Risk(self.loss, self.predict)(sampled, batch, None)
        tail = math.log(2 * math.sqrt(self.sample_size)) - math.log1p(-self.confidence)
        psi = (least_divergence(mean, deviation, self.prior, self.prior_deviation) + tail) / self.sample_size
        return risk + jnp.sqrt(2 * self.clip * risk * psi) + 2 * self.clip * psi, recorded


def _given(key: Key[Array, ""] | None) -> Key[Array, ""]:
    if key is None:
        raise Refusal(
            "an objective with weight noise got a source without a key: the noise is random. Give the source a key."
        )
    return key


def each_loss(
    model: Any, batch: Batch, loss: Loss = squared, *, predict: Predict = by_example
) -> Float[np.ndarray, " size"]:
    """The loss of each example, evaluated in chunks, so that memory stays small."""
    return np.asarray(_each_loss(model, batch, Risk(loss, predict)), float)


@eqx.filter_jit
def _each_loss(model: Any, batch: Batch, objective: AbstractObjective) -> Float[Array, " size"]:
    size = len(batch.y)
    chunk = divisor(size)
    starts = jnp.arange(0, size, chunk)
    return jax.lax.map(lambda start: objective.losses(model, part(batch, start, chunk)), starts).reshape(size)


def part(batch: Any, start: Array, size: int) -> Any:
    """Examples from `start` on."""
    return jax.tree.map(lambda rows: jax.lax.dynamic_slice_in_dim(rows, start, size), batch)


def divisor(size: int) -> int:
    """A number of examples to take at a time that divides their number, unless there is none of a useful size."""
    chunk = math.gcd(size, CHUNK)
    return chunk if chunk >= CHUNK // 8 else size
