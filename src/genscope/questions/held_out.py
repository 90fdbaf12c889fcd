"""What a run must reach on 10,000 held-out examples: a share that is right, or, of a target of numbers, a mean error.

Source: edelman2022, Section 6 (100 % of held-out examples); lintilhac2026, Appendix A (a mean squared error).
Guarantee: exact on the drawn examples, with clean labels. Far from what is asked, a look at the first 500 is enough:
five standard deviations of their mean, so that a run which passes is put off by one look at most once in a million.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Key

from genscope.tasks import AbstractTask
from genscope.train import Validation, squared

SCREEN = 5.0  # standard deviations
CHUNK, CHUNKS = 500, 20


class Accuracy:
    """The share of held-out examples that a model gets right, and whether it is enough."""

    def __init__(self, task: AbstractTask, key: Key[Array, ""], predict: Callable[..., Array], wanted: float):
        self._validation, self._wanted = Validation(task, key=key, predict=predict), wanted

    def reached(self, model: Any) -> bool:
        """Whether a model gets the wanted share right."""
        if self._wanted == 1:
            return self._validation.perfect(model)
        spread = SCREEN * math.sqrt(self._wanted * (1 - self._wanted) / self._validation.chunk)
        return self.estimate(model) >= self._wanted - spread and self._validation.accuracy(model) >= self._wanted

    def estimate(self, model: Any) -> float:
        """The share of the first 500."""
        return self._validation.screen(model)

    def measured(self, model: Any, *, known: bool = False) -> dict[str, float]:
        """The share, as a trial records it; `known` to have reached what is wanted, it may not need to be counted."""
        return {"held_out_accuracy": 1.0 if known and self._wanted == 1 else self._validation.accuracy(model)}


class Error:
    """The mean squared error on held-out examples, and whether it is small enough."""

    def __init__(self, task: AbstractTask, key: Key[Array, ""], predict: Callable[..., Array], wanted: float):
        self._task, self._key, self._predict, self._wanted = task, key, predict, wanted

    def reached(self, model: Any) -> bool:
        """Whether the error of a model is at most the wanted one."""
        mean, spread = map(float, _first(model, self._task, self._key, predict=self._predict))
        return mean - SCREEN * spread <= self._wanted and self._error(model) <= self._wanted

    def estimate(self, model: Any) -> float:
        """The error on the first 500."""
        return float(_first(model, self._task, self._key, predict=self._predict)[0])

    def measured(self, model: Any, *, known: bool = False) -> dict[str, float]:
        """The error, as a trial records it."""
        return {"held_out_error": self._error(model)}

    def _error(self, model: Any) -> float:
        return float(_all(model, self._task, self._key, predict=self._predict))


def _losses(model: Any, task: AbstractTask, key: Key[Array, ""], predict: Callable[..., Array]) -> Float[Array, " m"]:
    examples = task.sample(key, CHUNK)
    return squared(predict(model, examples.x), examples.y)


@functools.partial(jax.jit, static_argnames="predict")
def _first(model: Any, task: AbstractTask, key: Key[Array, ""], predict: Callable[..., Array]) -> tuple[Array, Array]:
    """Mean loss of the first chunk, and the standard deviation of that mean."""
    losses = _losses(model, task, jr.fold_in(key, 0), predict)
    return jnp.mean(losses), jnp.std(losses) / math.sqrt(CHUNK)


@functools.partial(jax.jit, static_argnames="predict")
def _all(model: Any, task: AbstractTask, key: Key[Array, ""], predict: Callable[..., Array]) -> Array:
    """Mean loss of all chunks."""

    def mean(index: Array) -> Array:
        return jnp.mean(_losses(model, task, jr.fold_in(key, index), predict))

    return jnp.mean(jax.lax.map(mean, jnp.arange(CHUNKS)))
