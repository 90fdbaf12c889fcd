"""Held-out accuracy, drawn in chunks and screened: most models are refused by a glance at a few examples.

Source: edelman2022, Section 6 (a trial succeeds when the validation accuracy reaches 100 %).
A model is perfect if and only if it is right on all held-out examples, screened or not.
Guarantee: exact on the drawn examples; the same key gives the same examples at every evaluation.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Key

from genscope.compilation import FASTER, jit
from genscope.refusal import Refusal
from genscope.tasks import AbstractTask, Batch
from genscope.train.loss import correct
from genscope.train.padding import example_weights

GLANCE = 250  # examples that are looked at first, and one shape to compile for other examples


@partial(jit, static_argnums=(3, 4), compiler_options=FASTER)
def _chunk(task: AbstractTask, key: Key[Array, ""], index: Any, chunk: int, glance: int) -> list[Batch]:
    """The examples of a chunk, a glance after the other."""
    examples = task.sample(jr.fold_in(key, index), chunk)
    starts = range(0, chunk, glance)
    return [jax.tree.map(lambda rows, start=start: rows[start : start + glance], examples) for start in starts]


@partial(jax.jit, static_argnames="predict")
def _count(model: eqx.Module, examples: Batch, weight: Array, predict: Callable[..., Array]) -> Array:
    return jnp.sum(correct(predict(model, examples.x), examples.y) * weight)


class Validation:
    """`size` held-out examples of a task; all but the first chunk are drawn anew whenever they are needed."""

    def __init__(
        self, task: AbstractTask, *, key: Key[Array, ""], predict: Callable, size: int = 10_000, chunk: int = 500
    ) -> None:
        if size < 1 or size % chunk:
            raise Refusal(
                f"Validation got {size=} with {chunk=}: examples come in whole chunks. Make the size a multiple of the "
                "chunk."
            )
        self.task, self.key, self.predict, self.size, self.chunk = task, key, predict, size, chunk
        self._glance = math.gcd(chunk, GLANCE)
        self._ones = jnp.ones(self._glance)
        self._parts = self._drawn(0)

    def _drawn(self, index: int) -> list[Batch]:
        return _chunk(self.task, self.key, np.uint32(index), self.chunk, self._glance)

    def _right(self, model: eqx.Module, examples: Batch, weight: Array | None = None) -> int:
        return int(_count(model, examples, self._ones if weight is None else weight, predict=self.predict))

    def _right_of(self, model: eqx.Module, index: int) -> int:
        parts = self._drawn(index) if index else self._parts
        return sum(self._right(model, part) for part in parts)

    def screen(self, model: eqx.Module) -> float:
        """Accuracy on the first chunk."""
        return self._right_of(model, 0) / self.chunk

    def accuracy(self, model: eqx.Module) -> float:
        """Accuracy on all examples."""
        return sum(self._right_of(model, index) for index in range(self.size // self.chunk)) / self.size

    def perfect(self, model: eqx.Module) -> bool:
        """Whether every example is classified rightly; ends at a glance, or with the chunk of the first mistake."""
        glance = self._right(model, self._parts[0]) == self._glance
        return glance and all(self._right_of(model, index) == self.chunk for index in range(self.size // self.chunk))

    def accuracy_on(self, model: eqx.Module, examples: Batch) -> float:
        """Accuracy on other examples, by the program that is compiled for the held-out ones."""
        x, y = np.asarray(examples.x), np.asarray(examples.y)
        right = 0
        for start in range(0, len(y), self._glance):
            rows = slice(start, start + self._glance)
            missing = self._glance - len(y[rows])
            padded = Batch(
                jnp.asarray(np.pad(x[rows], ((0, missing), *((0, 0),) * (x.ndim - 1)))),
                jnp.asarray(np.pad(y[rows], (0, missing))),
            )
            right += self._right(model, padded, jnp.asarray(example_weights(self._glance - missing, self._glance)))
        return right / len(y)
