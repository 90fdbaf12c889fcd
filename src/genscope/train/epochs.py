"""Mini-batch training on a fixed sample until the loss on all of it is below a threshold at the end of an epoch.

Source: lintilhac2026, Section 2.1 and Appendix A (AdamW, training ends at a mean squared error of 0.02); weight noise:
lintilhac2026, Definition 1, by way of sharpness as the mean loss at perturbed weights.
Departures: the end of an epoch is screened (`train.screen`): a loss that is clearly above the threshold is seen on a
part of the sample. The examples left over by whole batches are drawn anew with every epoch's order.
Guarantee: exact up to the screen's probability of missing, which delays the end by an epoch; the reported loss is that
of the returned model on the whole sample. A run that does not arrive is a result (`reached`), as is one that diverged.
"""

import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Key

from genscope.random import stream
from genscope.tasks import Batch
from genscope.train.fit import Predict, by_example, updated
from genscope.train.samples_to_threshold import optimizer
from genscope.train.screen import MARGIN, screened

CHUNK = 512


class Epochs(NamedTuple):
    """A finished run."""

    model: Any
    epochs: int
    reached: bool
    diverged: bool  # a loss was not finite; training ended there
    loss: float  # of the model, on the whole sample
    curve: np.ndarray  # mean loss of the batches of each epoch, each before its step


@eqx.filter_jit
def squared_errors(model: Any, examples: Batch, predict: Predict = by_example) -> Float[Array, " size"]:
    """Of the predictions for all examples, in chunks, so that memory stays small."""
    size = len(examples.y)
    starts = jnp.arange(0, size, _chunk(size))
    return jax.lax.map(lambda start: _errors(model, examples, predict, start), starts).reshape(size)


def _errors(model: Any, examples: Batch, predict: Predict, start: Array) -> Float[Array, " chunk"]:
    chunk = _chunk(len(examples.y))
    part = jax.tree.map(lambda rows: jax.lax.dynamic_slice_in_dim(rows, start, chunk), examples)
    return (predict(model, part.x) - part.y) ** 2


def _chunk(size: int) -> int:
    """A divisor of the size, unless there is none of a useful size."""
    chunk = math.gcd(size, CHUNK)
    return chunk if chunk >= CHUNK // 8 else size


def _transformation(weight_decay: Array, clip: Array) -> optax.GradientTransformation:
    return optax.chain(optax.clip_by_global_norm(clip), optimizer(weight_decay))  # pyright: ignore[reportArgumentType]


@eqx.filter_jit
def _begin(model: Any) -> Any:
    state = _transformation(jnp.zeros(()), jnp.ones(())).init(eqx.filter(model, eqx.is_inexact_array))
    return jax.tree.map(jnp.copy, model), state


def _perturbed(trained: Any, key: Key[Array, ""], noise: Array) -> Any:
    """All weights with independent normal noise: one flat draw, which compiles and runs fastest."""
    flat, restore = ravel_pytree(trained)
    return restore(flat + noise * jr.normal(key, flat.shape, flat.dtype))


@eqx.filter_jit(donate="all-except-first")
def _epoch(fixed, model, state) -> Any:
    examples, rows, key, numbers, predict, noisy = fixed
    rate, weight_decay, clip, noise, threshold = numbers
    trained, rest = eqx.partition(model, eqx.is_inexact_array)

    def step(carry, batch):
        trained, state = carry
        number, rows = batch

        def objective(trained):
            at = _perturbed(trained, jr.fold_in(key, number), noise) if noisy else trained
            return jnp.mean((predict(eqx.combine(at, rest), examples.x[rows]) - examples.y[rows]) ** 2)

        value, gradient = jax.value_and_grad(objective)(trained)
        return updated(trained, state, gradient, optimizer=_transformation(weight_decay, clip), rate=rate), value

    (trained, state), values = jax.lax.scan(step, (trained, state), (jnp.arange(len(rows)), rows))
    model = eqx.combine(trained, rest)
    check = screened(
        lambda start: _errors(model, examples, predict, start),
        examples.y[None] ** 2,  # the loss of predicting 0
        chunk=_chunk(len(examples.y)),
        threshold=threshold,
        margin=jnp.float32(MARGIN),
    )
    return model, state, jnp.mean(values), check.passed


def train_epochs(
    model: eqx.Module,
    examples: Batch,
    *,
    key: Key[Array, ""],
    threshold: float,
    epochs: int,
    rate: float = 1e-3,
    weight_decay: float = 1e-4,
    batch_size: int = 256,
    clip: float = math.inf,
    noise: float = 0.0,
    predict: Predict = by_example,
) -> Epochs:
    """AdamW on the mean squared error, at most for `epochs` epochs.

    Gradients longer than `clip` are cut to that length. With `noise`, each step takes the gradient at weights with
    independent normal noise of that deviation; the threshold is for the loss without it. `rate`, `weight_decay`,
    `clip`, `noise` and `threshold` are traced.
    """
    size = len(examples.y)
    if min(size, batch_size, epochs) < 1 or batch_size > size:
        raise ValueError(
            f"train_epochs got {size} examples, {batch_size=} and {epochs=}: an epoch holds at least one whole batch. "
            "Take a smaller batch or a larger sample, and at least one epoch."
        )
    numbers = tuple(jnp.float32(x) for x in (rate, weight_decay, clip, noise, threshold))
    model, state = _begin(model)
    curve: list[float] = []
    reached = diverged = False
    while len(curve) < epochs and not (reached or diverged):
        epoch_key = jr.fold_in(key, len(curve))
        fixed = (examples, _order(epoch_key, size, batch_size), epoch_key, numbers, predict, noise > 0)
        model, state, loss, passed = _epoch(fixed, model, state)
        curve.append(float(loss))
        reached, diverged = bool(passed), not math.isfinite(curve[-1])
    loss = float(np.mean(np.asarray(squared_errors(model, examples, predict), float)))
    diverged = diverged or not math.isfinite(loss)
    return Epochs(model, len(curve), reached and not diverged, diverged, loss, np.asarray(curve))


def _order(key: Key[Array, ""], size: int, batch_size: int) -> Array:
    """The batches of an epoch, examples in random order; sorted on the host, where nothing has to be compiled."""
    marks = np.asarray(jr.bits(stream(key, "order"), (size,), "uint32"))
    steps = size // batch_size
    return jnp.asarray(np.argsort(marks, kind="stable")[: steps * batch_size].reshape(steps, batch_size), jnp.int32)
