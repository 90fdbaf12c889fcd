"""Optimizers as values: their numbers are traced, so that sweeps over rates and decays share one program.

Source: kingma2015 (Adam), loshchilov2019 (AdamW: decay beside the gradient, on all parameters).
Guarantee: exact; the same steps as those of optax.
"""

import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import numpy as np
import optax
from jaxtyping import Array, PyTree

from genscope.refusal import Refusal

Schedule = Callable[[np.ndarray], Any]  # factors of the rate at the numbers of steps, computed on the host


def number(value: Any) -> Array:
    """A number as an array, so that programs are not compiled for it; in JAX's default precision."""
    return value if isinstance(value, jax.Array) else jax.device_put(np.asarray(value, np.float64))


def _rates(rate: PyTree) -> PyTree:
    if not all(isinstance(each, jax.Array) or 0 <= each < np.inf for each in jax.tree.leaves(rate)):
        raise Refusal(f"an optimizer got {rate=}: learning rates and decays must be positive. Give, for example, 1e-3.")
    return jax.tree.map(number, rate)


class Optimizer(eqx.Module):
    """A direction of optax, which points uphill and has rate 1, and how far to go against it."""

    direction: optax.GradientTransformation
    rate: PyTree[Array] = eqx.field(converter=_rates)  # one, or one for each part of the model: a prefix of its tree
    weight_decay: Array | None = eqx.field(converter=_rates, default=None)
    clip: float | Array | None = None  # longer gradients are cut to this length; a float is compiled in
    schedule: Schedule | None = None

    @property
    def is_elementwise(self) -> bool:
        """Whether a step treats every parameter alike, for itself."""
        return isinstance(self.rate, jax.Array) and self.clip is None

    def factors(self, first: int, count: int) -> np.ndarray | None:
        """Of the rate at some steps; None where it stays."""
        return None if self.schedule is None else np.asarray(self.schedule(np.arange(first, first + count)), np.float32)

    def step(self, parameters: PyTree, state: PyTree, gradient: PyTree, factor: Array | None = None) -> Any:
        """Parameters and state after one step along a gradient."""
        if self.clip is not None:
            gradient = optax.clip_by_global_norm(self.clip).update(gradient, optax.EmptyState())[0]
        with jax.numpy_dtype_promotion("standard"):  # optax multiplies floats by integer counts
            direction, state = self.direction.update(gradient, state, parameters)
        decay = self.weight_decay
        if decay is not None:
            direction = jax.tree.map(lambda d, p: d + decay.astype(p.dtype) * p, direction, parameters)
        rate = self.rate if factor is None else jax.tree.map(lambda rate: rate * factor.astype(rate.dtype), self.rate)
        moves = jax.tree.map(
            lambda rate, part: jax.tree.map(lambda d: rate.astype(d.dtype) * -d, part), rate, direction
        )
        return jax.tree.map(lambda p, move: p + move, parameters, moves), state


@functools.cache  # one object for equal settings, so that runs share a program
def _adam(epsilon: float) -> optax.GradientTransformation:
    return optax.scale_by_adam(eps=epsilon)


def adam(rate: PyTree, *, epsilon: float = 1e-8, **options: Any) -> Optimizer:
    """Adam; the rate is a number, or a tree of them for the parts of a model. Options are fields of `Optimizer`."""
    return Optimizer(_adam(epsilon), rate, **options)


def adamw(rate: PyTree, *, weight_decay: float, **options: Any) -> Optimizer:
    """Adam with decay of all parameters."""
    return Optimizer(_adam(1e-8), rate, weight_decay, **options)  # pyright: ignore[reportArgumentType]  # converted


@functools.cache  # as above
def _descent(momentum: float) -> optax.GradientTransformation:
    return optax.trace(momentum) if momentum else optax.identity()


def sgd(rate: PyTree, *, momentum: float = 0.0, **options: Any) -> Optimizer:
    """Gradient descent, perhaps with a share of the last step in the next."""
    return Optimizer(_descent(momentum), rate, **options)


def cosine(steps: int) -> Schedule:
    """Rates that fall to zero along half a wave in so many steps."""
    return functools.partial(_cosine, steps)


@functools.partial(jax.jit, static_argnums=0)
def _cosine(steps: int, numbers: Array) -> Array:
    with jax.numpy_dtype_promotion("standard"):  # as above
        return jax.lax.map(optax.cosine_decay_schedule(1.0, steps), numbers)
