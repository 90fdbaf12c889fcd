"""What the training experiments of LS26 share: one run of the two-layer Transformer on a random sparse expansion.

Source: lintilhac2026, Section 2.1 and Appendix A.
Departures: batches of 64 with gradients cut at length 1 (the paper's 256 needs several times the epochs; it says that
larger batches fail at degree 5); learning rate 1e-3 and no dropout are ours, since the text we have does not say. A
run that does not converge within its steps is stored as such, where the paper draws another function.
Guarantee: exact; function, sample, initialisation and order of the batches come from separate streams.
"""

import functools
import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from genscope.estimate import Estimate
from genscope.fourier import points, random_function
from genscope.lab.study import Point, within
from genscope.models.bit_transformer import BitTransformer
from genscope.random import stream
from genscope.tasks import Batch, WalshSum
from genscope.train.epochs import Epochs, squared_errors, train_epochs

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
        raise ValueError(
            f"there are {math.comb(length, degree)} sets of {degree} among {length} bits, fewer than {sparsity} "
            "components. Lower the sparsity, or change the degree."
        )


class Run(NamedTuple):
    """A training run with what it started from."""

    task: WalshSum
    sample: Batch
    start: BitTransformer
    fit: Epochs

    @property
    def model(self) -> BitTransformer:
        """The trained network."""
        return self.fit.model


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
) -> Run:
    """Draw function, sample and network, and train until the training error is below `CONVERGED`, or out of steps."""
    if sample_size < BATCH or steps < sample_size // BATCH:
        raise ValueError(
            f"got {sample_size=} and {steps=}: a batch holds {BATCH} strings, and training takes at least one epoch. "
            "Give more."
        )
    # Drawn by NumPy, so that not every class of functions compiles a draw of its own.
    task = WalshSum.of(random_function(stream(key, "task"), dim=context_length, degree=degree, sparsity=sparsity))
    sample = draw(task, stream(key, "sample"), sample_size)
    start = initial_model(stream(key, "init"), context_length, scale)
    fit = train_epochs(
        start,
        sample,
        key=stream(key, "order"),
        threshold=CONVERGED,
        epochs=steps // (sample_size // BATCH),
        rate=RATE,
        weight_decay=weight_decay,
        batch_size=BATCH,
        clip=CLIP,
        noise=noise,
        predict=BitTransformer.outputs,
    )
    return Run(task, sample, start, fit)


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


def held_out_error(run: Run, key: Key[Array, ""]) -> Estimate:
    """Mean squared error over all strings, exact where there are no more than `TEST`, or over so many fresh ones."""
    length = run.task.context_length
    if 2**length <= TEST:
        return Estimate(float(_errors(run, _labelled(run.task, jnp.asarray(points(length)))).mean()), 0.0)
    return Estimate.of(_errors(run, draw(run.task, key, TEST)))


def _errors(run: Run, examples: Batch) -> np.ndarray:
    return np.asarray(squared_errors(run.model, examples, BitTransformer.outputs), float)
