"""Full-batch training on a fixed sample, with early stop and divergence as data.

Source: edelman2022, Section 6 (full-batch Adam on the cross entropy).
Departures: None.
Guarantee: exact; padded examples (weight 0) and the grouping of steps change nothing but rounding.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, PyTree

Model = TypeVar("Model", bound=eqx.Module)
Predict = Callable[[Any, Array], Array]  # of a model and a batch of inputs
Loss = Callable[[Array, Array, Array], Array]

ADAM = optax.adam(1.0)  # a rate multiplies its updates, so that sweeps over learning rates share one program


def by_example(model: eqx.Module, x: Array) -> Array:
    """Predictions of a model that takes one example: the default `predict`."""
    return jax.vmap(model)(x)  # pyright: ignore[reportArgumentType]  # a model is callable by contract


class Fit(NamedTuple):
    """A finished training run."""

    model: eqx.Module
    steps: int  # taken, including those of the last chunk
    losses: np.ndarray  # before each step
    stopped: bool  # `stop` asked for the end
    diverged: bool  # a loss was not finite; training ended there
    settled: bool  # a loss fell below the floor; training ended there

    @property
    def loss(self) -> float:
        """The last loss that was computed."""
        return float(self.losses[-1]) if len(self.losses) else float("nan")


def updated(model, state, gradient, *, optimizer: optax.GradientTransformation, rate: Array):
    """Model and optimizer state after one step along a gradient."""
    with jax.numpy_dtype_promotion("standard"):  # optax multiplies floats by integer counts
        updates, state = optimizer.update(gradient, state, model)
    return optax.apply_updates(model, jax.tree.map(lambda u: rate * u, updates)), state


def _advance(model, state, x, y, weight, rate, *, predict, loss, optimizer, steps):
    def step(carry, _):
        model, state = carry
        value, gradient = jax.value_and_grad(lambda model: loss(predict(model, x), y, weight))(model)
        return updated(model, state, gradient, optimizer=optimizer, rate=rate), value

    (model, state), losses = jax.lax.scan(step, (model, state), length=steps)
    return model, state, losses


@partial(jax.jit, static_argnames="optimizer")
def begin(model: Model, *, optimizer: optax.GradientTransformation) -> tuple[Model, PyTree]:
    """A copy of the model, since the chunks of a run give their buffers away, and the first state of the optimizer."""
    return jax.tree.map(jnp.copy, model), optimizer.init(model)  # pyright: ignore[reportArgumentType]  # a pytree


advance = jax.jit(_advance, static_argnames=("predict", "loss", "optimizer", "steps"), donate_argnums=(0, 1))


def fit(
    model: Model,
    x: Array,
    y: Float[Array, " m"],
    *,
    loss: Loss,
    steps: int,
    rate: float = 1.0,
    weight: Float[Array, " m"] | Float[np.ndarray, " m"] | None = None,
    optimizer: optax.GradientTransformation = ADAM,
    predict: Predict = by_example,
    every: int = 10,
    floor: float = 0.0,
    stop: Callable[[Model, int], bool] | None = None,
) -> Fit:
    """Train on all examples at once for at most `steps` steps.

    After each chunk of `every` steps `stop(model, steps taken)` may end the run, and so does a loss below `floor`.
    Updates of the optimizer are multiplied by `rate`, which is traced: a sweep over rates, labels or weights compiles
    once per shape.
    """
    if steps < 1 or every < 1:
        raise ValueError(f"fit got {steps=} with {every=}: both count steps. Give at least 1.")
    weight = jnp.ones(len(x)) if weight is None else jnp.asarray(weight)
    model, state = begin(model, optimizer=optimizer)
    scale = jnp.float32(rate)
    losses: list[np.ndarray] = []
    taken, stopped, diverged, settled = 0, False, False, False
    while taken < steps and not (stopped or diverged or settled):
        size = min(every, steps - taken)
        model, state, chunk = advance(
            model, state, x, y, weight, scale, predict=predict, loss=loss, optimizer=optimizer, steps=size
        )
        losses.append(np.asarray(chunk))
        taken += size
        diverged = not np.isfinite(losses[-1]).all()
        stopped = not diverged and stop is not None and stop(model, taken)
        settled = not diverged and bool(losses[-1][-1] < floor)
    return Fit(model, taken, np.concatenate(losses), stopped, diverged, settled)
