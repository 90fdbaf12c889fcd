"""What the training experiments of LS26 share: one run of the two-layer Transformer on a random sparse expansion.

Source: lintilhac2026, Section 2.1 and Appendix A.
Departures: batches of 64 with gradients cut at length 1 (the paper's 256 needs several times the epochs; it says that
larger batches fail at degree 5); learning rate 1e-3 and no dropout are ours, since the text we have does not say. A
run that does not converge within its steps is stored as such, where the paper draws another function.
Guarantee: exact; function, sample, initialization and order of the batches come from separate streams.
"""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from genscope.estimate import Estimate
from genscope.fourier import points, random_function
from genscope.lab import Point, within
from genscope.models.bit_transformer import BitTransformer
from genscope.random import stream
from genscope.refusal import Refusal
from genscope.tasks import Batch, WalshSum
from genscope.train import AbstractObjective, Below, Epochs, Risk, WeightNoise, adamw, each_loss, fit, squared
from genscope.train.objective import Predict
from genscope.train.optimizers import number

CONVERGED = 0.02  # training error at which a run ends
BATCH, CLIP, RATE, DECAY = 64, 1.0, 1e-3, 1e-4
TEST = 8192  # fresh strings, or all there are


def check(point: Point, *, strings: int = BATCH) -> None:
    """Refuse points that no run can have: too few strings, or more components than there are sets of that size."""
    within(context_length=(2, 64), sample_size=(strings, 2**20), degree=(1, None), sparsity=(1, None), steps=(1, None))(
        point
    )
    length, degree, sparsity = (int(point[axis]) for axis in ("context_length", "degree", "sparsity"))
    if sparsity > math.comb(length, degree):
        raise Refusal(
            f"there are {math.comb(length, degree)} sets of {degree} among {length} bits, fewer than {sparsity} "
            "components. Lower the sparsity, or change the degree."
        )


class Descent(NamedTuple):
    """Training until the error on the whole sample is below `CONVERGED` at the end of an epoch, or out of epochs."""

    model: Any
    epochs: int
    converged: bool
    diverged: bool
    error: float  # mean squared error of the trained network on the sample
    curve: np.ndarray  # mean loss of the batches of each epoch, each before its step


_means = jax.jit(lambda rows: jax.lax.map(jnp.mean, rows))


def descend(
    start: Any,
    sample: Batch,
    *,
    key: Key[Array, ""],
    epochs: int,
    weight_decay: float = DECAY,
    noise: float = 0.0,
    batch: int = BATCH,
    predict: Predict = BitTransformer.outputs,
    objective: Callable[[Risk], AbstractObjective] | None = None,
) -> Descent:
    """AdamW on the mean squared error; with `noise`, at weights with normal noise of that deviation.

    For ablations: batches of another size, another network by its `predict`, or an `objective` made of the risk.
    """
    source = Epochs(sample, key, batch)
    risk = Risk(squared, predict)
    zero = jnp.asarray(np.asarray(sample.y)[None] ** 2)  # the losses of predicting 0
    found = fit(
        start,
        source,
        WeightNoise(risk, noise) if noise else risk if objective is None else objective(risk),
        until=(epochs * source.per_epoch, Below(CONVERGED, sample, controls=zero)),
        optimizer=adamw(RATE, weight_decay=weight_decay, clip=number(CLIP)),
        every=source.per_epoch,
    )
    error = float(each_loss(found.model, sample, squared, predict=predict).mean())
    diverged = found.diverged or not math.isfinite(error)
    losses = found.losses.reshape(-1, source.per_epoch)
    curve = np.asarray(_means(losses), float)
    return Descent(found.model, len(losses), found.reached and not diverged, diverged, error, curve)


class WalshRun(NamedTuple):
    """A training run with what it started from."""

    task: WalshSum
    sample: Batch
    start: BitTransformer
    descent: Descent

    @property
    def model(self) -> BitTransformer:
        """The trained network."""
        return self.descent.model


def train(
    key: Key[Array, ""],
    *,
    context_length: int,
    degree: int,
    sparsity: int,
    sample_size: int,
    steps: int,
    scale: float = 1.0,
    weight_decay: float = DECAY,
    noise: float = 0.0,
) -> WalshRun:
    """Draw function, sample and network, and train until the training error is below `CONVERGED`, or out of steps."""
    if sample_size < BATCH or steps < sample_size // BATCH:
        raise Refusal(
            f"got {sample_size=} and {steps=}: a batch holds {BATCH} strings, and training takes at least one epoch. "
            "Give more."
        )
    # Drawn by NumPy, so that not every class of functions compiles a draw of its own.
    task = WalshSum.of(random_function(stream(key, "task"), dim=context_length, degree=degree, sparsity=sparsity))
    sample = draw(task, stream(key, "sample"), sample_size)
    start = initial_model(stream(key, "init"), context_length, scale)
    epochs = steps // (sample_size // BATCH)
    order = stream(key, "order")
    return WalshRun(
        task, sample, start, descend(start, sample, key=order, epochs=epochs, weight_decay=weight_decay, noise=noise)
    )


@functools.partial(jax.jit, static_argnums=(1, 2))
def initial_model(key: Key[Array, ""], context_length: int, scale: float) -> BitTransformer:
    """The network before training."""
    return BitTransformer(context_length, scale=scale, key=key)


@eqx.filter_jit
def draw(task: WalshSum, key: Key[Array, ""], size: int) -> Batch:
    """Independent strings with their labels."""
    return task.sample(key, size)


@eqx.filter_jit
def _labelled(task: WalshSum, x: Array) -> Batch:
    return Batch(x, jax.vmap(task.target)(x))


def held_out_error(run: WalshRun, key: Key[Array, ""]) -> Estimate:
    """Mean squared error over all strings, exact where there are no more than `TEST`, or over so many fresh ones."""
    length = run.task.context_length
    if 2**length <= TEST:
        fresh = _labelled(run.task, jnp.asarray(points(length)))
        return Estimate(float(each_loss(run.model, fresh, squared, predict=BitTransformer.outputs).mean()), 0.0)
    fresh = draw(run.task, key, TEST)
    return Estimate.of(each_loss(run.model, fresh, squared, predict=BitTransformer.outputs))
