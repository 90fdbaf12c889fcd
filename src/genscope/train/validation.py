"""Held-out accuracy, drawn in chunks and screened: most models are refused by a glance at a few examples.

Source: edelman2022, Section 6 (a trial succeeds when the validation accuracy reaches 100 %).
Departures: None; a model is perfect if and only if it is right on all held-out examples, screened or not.
Guarantee: exact on the drawn examples; the same key gives the same examples at every evaluation.
"""

import itertools
from collections.abc import Callable, Iterator

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Key

from genscope.tasks import AbstractTask, Batch
from genscope.train.loss import correct
from genscope.train.padding import example_weights

GLANCE = 100  # examples
KEPT_BYTES = 2**26


@eqx.filter_jit
def _draw(task: AbstractTask, key: Key[Array, ""], chunk: Array, size: int) -> Batch:
    return task.sample(jr.fold_in(key, chunk), size)


@eqx.filter_jit
def _count(model: eqx.Module, examples: Batch, weight: Array, predict: Callable[..., Array]) -> Array:
    return jnp.sum(correct(predict(model, examples.x), examples.y) * weight)


class Validation:
    """`size` held-out examples of a task, in chunks that are drawn when they are needed.

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
        self._kept = {0: _draw(task, key, jnp.uint32(0), chunk)}
        self._few = Batch(self._kept[0].x[:GLANCE], self._kept[0].y[:GLANCE])
        self._keep = self._kept[0].x.nbytes * (size // chunk) <= KEPT_BYTES

    def _chunk(self, index: int) -> Batch:
        if index in self._kept:
            return self._kept[index]
        examples = _draw(self.task, self.key, jnp.uint32(index), self.chunk)
        if self._keep:
            self._kept[index] = examples
        return examples

    def _chunks(self) -> Iterator[Batch]:
        return map(self._chunk, range(self.size // self.chunk))

    def _right(self, model: eqx.Module, examples: Batch) -> int:
        return int(_count(model, examples, jnp.ones(len(examples.y)), self.predict))

    def screen(self, model: eqx.Module) -> float:
        """Accuracy on the first chunk."""
        return self._right(model, self._chunk(0)) / self.chunk

    def accuracy(self, model: eqx.Module) -> float:
        """Accuracy on all examples."""
        return sum(self._right(model, chunk) for chunk in self._chunks()) / self.size

    def perfect(self, model: eqx.Module) -> bool:
        """Whether every example is classified rightly; ends at the first group of them with a mistake."""
        groups = itertools.chain([self._few], self._chunks())
        return all(self._right(model, examples) == len(examples.y) for examples in groups)

    def accuracy_on(self, model: eqx.Module, examples: Batch) -> float:
        """Accuracy on other examples, by the program that is compiled for the chunks."""
        x, y = np.asarray(examples.x), np.asarray(examples.y)
        right = 0
        for start in range(0, len(y), self.chunk):
            rows = slice(start, start + self.chunk)
            missing = self.chunk - len(y[rows])
            padded = Batch(
                jnp.asarray(np.pad(x[rows], ((0, missing), *((0, 0),) * (x.ndim - 1)))),
                jnp.asarray(np.pad(y[rows], (0, missing))),
            )
            weight = jnp.asarray(example_weights(self.chunk - missing, self.chunk))
            right += int(_count(model, padded, weight, self.predict))
        return right / len(y)
