"""Where the examples of each step come from: a whole sample, chunks or epochs of it, draws from it, or a task.

Guarantee: exact; what a step sees depends on the key and the step's number alone, not on the grouping of steps.
"""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.random as jr
import numpy as np
from jaxtyping import Array, Key

from genscope.random import derived, numbered, stream
from genscope.refusal import Refusal
from genscope.tasks import AbstractTask, Batch


class AbstractSource(eqx.Module):
    """Examples for steps that are numbered from 0, in three stages. A source that draws has a `key`."""

    def window(self, first: int, most: int) -> tuple[int, Any]:
        """On the host: how many steps from the `first` on go together, at most so many, and arrays that they need."""
        return most, np.uint32(first)

    def steps(self, window: Any, count: int) -> tuple[Any, Any]:
        """Traced, before the first of `count` steps: for each a key, for noise, and what its examples are made of."""
        key = getattr(self, "key", None)
        keys = None if key is None else _keys(key, window, count)
        return keys, keys

    @abc.abstractmethod
    def batch(self, step: Any) -> Any:
        """Traced, in each step: its examples, a `Batch` unless the objective takes others."""

    @abc.abstractmethod
    def samples(self, steps: int) -> int:
        """How many examples so many steps draw from the law of the data."""


def _keys(key: Key[Array, ""], first: Any, count: int) -> Key[Array, " count"]:
    return numbered(key, first + jax.lax.iota("uint32", count))


class Whole(AbstractSource):
    """All examples at every step; objectives with noise need a key."""

    examples: Batch
    key: Key[Array, ""] | None = None

    def batch(self, step: Any) -> Batch:
        """All."""
        return self.examples

    def samples(self, steps: int) -> int:
        """Those of positive weight."""
        weight = self.examples.weight
        return len(self.examples.y) if weight is None else int(np.count_nonzero(np.asarray(weight)))


class Chunks(AbstractSource):
    """All examples at every step, some rows after the others, so that samples of all sizes share one program.

    For objectives that are means over examples: values and gradients of the chunks add up to those of the sample. Rows
    that fill the last chunk have weight 0, and chunks without examples are not computed.
    """

    examples: Batch  # with their weights
    shares: Array  # of the chunks in the weight of the sample
    count: Array  # of the chunks that hold examples
    rows: int

    @classmethod
    def of(cls, examples: Batch, rows: int, capacity: int) -> "Chunks":
        """A sample in chunks of so many rows; samples of up to `capacity` examples share a program."""
        size, chunks = len(examples.y), -(-capacity // rows)
        if not 0 < size <= capacity or examples.weight is not None:
            raise Refusal(
                f"Chunks got {size} examples for {capacity=}: it must hold at least one and at most as many as its "
                "capacity, and it sets the weights itself. Increase the capacity, and give no weights."
            )
        weight = (np.arange(chunks * rows) < size).astype(np.float32)

        def padded(array: Any) -> Array:
            more = (0, chunks * rows - size), *((0, 0),) * (np.ndim(array) - 1)
            return jax.device_put(np.pad(np.asarray(array), more))

        shares = weight.reshape(chunks, rows).sum(axis=1) / np.float32(size)
        count = jax.device_put(np.int32(-(-size // rows)))
        every = Batch(padded(examples.x), padded(examples.y), jax.device_put(weight))
        return cls(every, jax.device_put(shares), count, rows)

    def batch(self, step: Any) -> Batch:
        """A chunk, by its number."""
        return jax.tree.map(lambda part: jax.lax.dynamic_slice_in_dim(part, step * self.rows, self.rows), self.examples)

    def samples(self, steps: int) -> int:
        """Those of positive weight."""
        return int(np.count_nonzero(np.asarray(self.examples.weight)))


class Draws(AbstractSource):
    """Examples of a sample, drawn with replacement."""

    examples: Batch
    key: Key[Array, ""]
    batch_size: int

    def __check_init__(self):
        if not 1 <= self.batch_size <= len(self.examples.y):
            raise Refusal(
                f"{type(self).__name__} got {len(self.examples.y)} examples, batch_size={self.batch_size}: a batch "
                "must hold at least one example, and no more than there are. Use a smaller batch or a larger training "
                "set."
            )

    def _rows(self, step: Any) -> Array:
        return jr.randint(stream(step, "examples"), (self.batch_size,), 0, len(self.examples.y))

    def batch(self, step: Any) -> Batch:
        """The examples of some rows."""
        rows = self._rows(step)
        return jax.tree.map(lambda part: part[rows], self.examples)

    def samples(self, steps: int) -> int:
        """Those of the sample."""
        return len(self.examples.y)


class Epochs(Draws):
    """Mini-batches of a sample in random order, each example at most once in an epoch.

    The examples left over by whole batches are drawn anew with every epoch's order. A window ends with its epoch.
    """

    @property
    def per_epoch(self) -> int:
        """Steps."""
        return len(self.examples.y) // self.batch_size

    def window(self, first: int, most: int) -> tuple[int, Any]:
        """Rows of the batches."""
        epoch, done = divmod(first, self.per_epoch)
        key = derived(self.key, epoch)
        rows = shuffled(stream(key, "order"), len(self.examples.y), self.batch_size)[done : done + most]
        return len(rows), (key, np.uint32(done), rows)

    def steps(self, window: Any, count: int) -> tuple[Any, Any]:
        """The rows."""
        key, first, rows = window
        return _keys(key, first, count), rows

    def _rows(self, step: Any) -> Array:
        return step


def shuffled(key: Key[Array, ""], size: int, batch_size: int) -> np.ndarray:
    """The batches of an epoch: numbers below `size` in random order, without what is left over.

    Sorted on the host, where nothing has to be compiled.
    """
    marks = np.asarray(jr.bits(key, (size,), "uint32"))
    steps = size // batch_size
    return np.argsort(marks, kind="stable")[: steps * batch_size].reshape(steps, batch_size).astype(np.int32)


class Fresh(AbstractSource):
    """New examples of a task at every step, so that the loss before a step is a loss on unseen data.

    The inputs of a window are drawn `ahead` of its first step, since XLA may draw them again for each of their readers
    inside of it; or in their step, which takes no memory.
    """

    task: AbstractTask
    key: Key[Array, ""]
    batch_size: int
    ahead: bool = True

    def __check_init__(self):
        if self.batch_size < 1:
            raise Refusal(
                f"Fresh got batch_size={self.batch_size}: a batch must hold at least one example. Give 1 or more."
            )

    def steps(self, window: Any, count: int) -> tuple[Any, Any]:
        """Inputs, or their keys."""
        rows = _keys(self.key, window, count)
        return _keys(stream(self.key, "noise"), window, count), jax.lax.map(self._inputs, rows) if self.ahead else rows

    def _inputs(self, key: Key[Array, ""]) -> Any:  # an array, or several by name
        return self.task.inputs(key, self.batch_size)

    def batch(self, step: Any) -> Batch:
        """The inputs with their labels, as `task.sample`."""
        x = step if self.ahead else self._inputs(step)
        return Batch(x, jax.vmap(self.task.target)(x))

    def samples(self, steps: int) -> int:
        """A batch for each step."""
        return steps * self.batch_size
