"""Held-out accuracy, drawn in chunks and screened: most models are refused by a glance at a few examples.

Source: edelman2022, Section 6 (a trial succeeds when the validation accuracy reaches 100 %).
Departures: None; a model is perfect if and only if it is right on all held-out examples, screened or not.
Guarantee: exact on the drawn examples; the same key gives the same examples at every evaluation.
"""

import math
from collections.abc import Callable, Iterator

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Key

from genscope.tasks import AbstractTask, Batch
from genscope.train.loss import correct
from genscope.train.padding import example_weights

GLANCE = 250  # examples that are evaluated together: few for a glance, enough for a product, and one shape to compile
KEPT_BYTES = 2**26


@eqx.filter_jit
def _draw(task: AbstractTask, key: Key[Array, ""], chunk: Array, size: int, glance: int) -> list[Batch]:
    examples = task.sample(jr.fold_in(key, chunk), size)
    parts = range(0, size, glance)
    return [Batch(examples.x[start : start + glance], examples.y[start : start + glance]) for start in parts]


@eqx.filter_jit
def _count(model: eqx.Module, examples: Batch, weight: Array, predict: Callable[..., Array]) -> Array:
    return jnp.sum(correct(predict(model, examples.x), examples.y) * weight)


class Validation:
    """`size` held-out examples of a task, drawn in chunks when they are needed, and looked at in parts of these.

    The first chunk is kept, and all of them are where they take little memory.
    """

    def __init__(
        self, task: AbstractTask, *, key: Key[Array, ""], predict: Callable, size: int = 10_000, chunk: int = 500
    ) -> None:
        if size < 1 or size % chunk:
            raise ValueError(
                f"Validation got {size=} with {chunk=}: examples come in whole chunks. Make the size a multiple of it."
            )
        self.task, self.key, self.predict, self.size, self.chunk = task, key, predict, size, chunk
        self._glance = math.gcd(chunk, GLANCE)
        self._ones = jnp.ones(self._glance)
        self._kept: dict[int, list[Batch]] = {}
        self._keep = sum(part.x.nbytes for part in self._chunk(0)) * (size // chunk) <= KEPT_BYTES

    def _chunk(self, index: int) -> list[Batch]:
        if index in self._kept:
            return self._kept[index]
        parts = _draw(self.task, self.key, jnp.uint32(index), self.chunk, self._glance)
        if index == 0 or self._keep:
            self._kept[index] = parts
        return parts

    def _parts(self) -> Iterator[Batch]:
        return (part for index in range(self.size // self.chunk) for part in self._chunk(index))

    def _right(self, model: eqx.Module, examples: Batch, weight: Array | None = None) -> int:
        return int(_count(model, examples, self._ones if weight is None else weight, self.predict))

    def screen(self, model: eqx.Module) -> float:
        """Accuracy on the first chunk."""
        return sum(self._right(model, part) for part in self._chunk(0)) / self.chunk

    def accuracy(self, model: eqx.Module) -> float:
        """Accuracy on all examples."""
        return sum(self._right(model, part) for part in self._parts()) / self.size

    def perfect(self, model: eqx.Module) -> bool:
        """Whether every example is classified rightly; ends at the first part with a mistake."""
        return all(self._right(model, part) == self._glance for part in self._parts())

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
