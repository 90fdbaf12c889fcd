"""Training on fresh batches: every step draws new examples, so the loss before a step is a loss on unseen data.

Source: edelman2022, Figure 4 (sparse parities, i.i.d. samples).
Departures: None.
Guarantee: exact; the batch of a step depends on the key and the step's number alone.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
from jaxtyping import Array, Key

from genscope.tasks import AbstractTask
from genscope.train.fit import ADAM, Loss, Predict, begin, by_example, updated
from genscope.train.loss import correct


class Online(NamedTuple):
    """A finished run on fresh batches."""

    model: eqx.Module
    steps: int
    losses: np.ndarray  # on each step's batch, before the step
    accuracies: np.ndarray  # likewise
    reached: bool  # `stop` asked for the end; otherwise the budget ran out (a censored observation) or it diverged
    diverged: bool


@eqx.filter_jit(donate="all-except-first")
def _advance(fixed, model, state) -> Any:
    task, key, first, rate, size, predict, loss, optimizer, steps = fixed

    def step(carry, index):
        model, state = carry
        batch = task.sample(jr.fold_in(key, index), size)

        def objective(model):
            outputs = predict(model, batch.x)
            return loss(outputs, batch.y, jnp.ones(size)), jnp.mean(correct(outputs, batch.y))

        (value, accuracy), gradient = jax.value_and_grad(objective, has_aux=True)(model)
        return updated(model, state, gradient, optimizer=optimizer, rate=rate), (value, accuracy)

    return jax.lax.scan(step, (model, state), first + jnp.arange(steps))


def online(
    model: eqx.Module,
    task: AbstractTask,
    *,
    key: Key[Array, ""],
    loss: Loss,
    batch_size: int,
    steps: int,
    rate: float = 1.0,
    optimizer: optax.GradientTransformation = ADAM,
    predict: Predict = by_example,
    every: int = 25,
    stop: Callable[[eqx.Module, float, float], bool] | None = None,
) -> Online:
    """Train on `batch_size` fresh examples per step for at most `steps` steps.

    After each chunk of `every` steps `stop(model, loss, accuracy)` may end the run, by the loss and accuracy
    of the chunk's last batch.
    """
    if min(batch_size, steps, every) < 1:
        raise ValueError(f"online got {batch_size=}, {steps=}, {every=}: each counts something. Give at least 1.")
    model, state = begin(model, optimizer=optimizer)
    losses, accuracies = [], []
    taken, reached, diverged = 0, False, False
    while taken < steps and not reached and not diverged:
        size = min(every, steps - taken)
        fixed = (task, key, jnp.int32(taken), jnp.float32(rate), batch_size, predict, loss, optimizer, size)
        (model, state), (value, accuracy) = _advance(fixed, model, state)
        losses.append(np.asarray(value))
        accuracies.append(np.asarray(accuracy))
        taken += size
        diverged = not np.isfinite(losses[-1]).all()
        reached = not diverged and stop is not None and stop(model, float(losses[-1][-1]), float(accuracies[-1][-1]))
    return Online(model, taken, np.concatenate(losses), np.concatenate(accuracies), reached, diverged)
