"""Held-out accuracy, drawn in chunks and screened: most models are refused by a glance at a few examples.

Source: edelman2022, Section 6 (a trial succeeds when the validation accuracy reaches 100 %).
Departures: None; a model is perfect if and only if it is right on all held-out examples, screened or not.
Guarantee: exact on the drawn examples; the same key gives the same examples at every evaluation.
"""

import math
from collections.abc import Callable
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Bool, Int, Key

from genscope.refusal import Refusal
from genscope.tasks import AbstractTask, Batch
from genscope.train.loss import correct
from genscope.train.padding import example_weights

GLANCE = 250  # examples that are looked at first, and one shape to compile for other examples


@partial(jax.jit, static_argnums=(2, 3))
def _first(task: AbstractTask, key: Key[Array, ""], chunk: int, glance: int) -> list[Batch]:
    examples = _chunk(task, key, 0, chunk)
    starts = range(0, chunk, glance)
    return [jax.tree.map(lambda rows, start=start: rows[start : start + glance], examples) for start in starts]


def _chunk(task: AbstractTask, key: Key[Array, ""], index: Int[Array, ""] | int, chunk: int) -> Batch:
    return task.sample(jr.fold_in(key, index), chunk)


@partial(jax.jit, static_argnames="predict")
def _count(model: eqx.Module, examples: Batch, weight: Array, predict: Callable[..., Array]) -> Array:
    return jnp.sum(correct(predict(model, examples.x), examples.y) * weight)


@partial(jax.jit, static_argnames=("predict", "chunk", "chunks"))
def _count_drawn(
    model: eqx.Module,
    task: AbstractTask,
    key: Key[Array, ""],
    patient: Bool[Array, ""],
    predict: Callable[..., Array],
    *,
    chunk: int,
    chunks: int,
) -> Int[Array, ""]:
    """Right answers on all examples, or, unless `patient`, until the chunk with the first mistake."""

    def goes_on(state):
        index, right = state
        return (index < chunks) & (patient | (right == index * chunk))

    def look(state):
        index, right = state
        examples = _chunk(task, key, index, chunk)
        return index + 1, right + jnp.sum(correct(predict(model, examples.x), examples.y)).astype("int32")

    return jax.lax.while_loop(goes_on, look, (jnp.int32(0), jnp.int32(0)))[1]


class Validation:
    """`size` held-out examples of a task; all but the first chunk are drawn anew whenever they are needed."""

    def __init__(
        self, task: AbstractTask, *, key: Key[Array, ""], predict: Callable, size: int = 10_000, chunk: int = 500
    ) -> None:
        if size < 1 or size % chunk:
            raise Refusal(
                f"Validation got {size=} with {chunk=}: examples come in whole chunks. Make the size a multiple of it."
            )
        self.task, self.key, self.predict, self.size, self.chunk = task, key, predict, size, chunk
        self._glance = math.gcd(chunk, GLANCE)
        self._ones = jnp.ones(self._glance)
        self._parts = _first(task, key, chunk, self._glance)

    def _right(self, model: eqx.Module, examples: Batch, weight: Array | None = None) -> int:
        return int(_count(model, examples, self._ones if weight is None else weight, predict=self.predict))

    def _right_of_all(self, model: eqx.Module, *, patient: bool) -> int:
        chunks = {"chunk": self.chunk, "chunks": self.size // self.chunk}
        return int(_count_drawn(model, self.task, self.key, np.bool_(patient), predict=self.predict, **chunks))

    def screen(self, model: eqx.Module) -> float:
        """Accuracy on the first chunk."""
        return sum(self._right(model, part) for part in self._parts) / self.chunk

    def accuracy(self, model: eqx.Module) -> float:
        """Accuracy on all examples."""
        return self._right_of_all(model, patient=True) / self.size

    def perfect(self, model: eqx.Module) -> bool:
        """Whether every example is classified rightly; ends at a glance, or with the chunk of the first mistake."""
        glance = self._right(model, self._parts[0]) == self._glance
        return glance and self._right_of_all(model, patient=False) == self.size

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
