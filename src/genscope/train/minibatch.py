"""A sample of any size in batches of one shape: whole while it fits, random rows of it beyond.

Guarantee: exact; what a step sees depends on the key and the step's number alone, and the program does not depend on
the size of the sample, only on the numbers of rows that are kept and read.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int32, Key

from genscope.random import stream, words
from genscope.refusal import Refusal
from genscope.tasks import Batch
from genscope.train.sources import AbstractSource


class Minibatch(AbstractSource):
    """The first `size` of the examples (the others are padding), `rows` of them at every step.

    A sample that fits is read whole, beside rows of weight 0; of a larger one a step reads random examples, with
    replacement.
    """

    examples: Batch
    size: Int32[np.ndarray, ""] | Int32[Array, ""]
    key: Key[Array, ""]
    rows: int

    def __init__(self, examples: Batch, size: int, *, rows: int, key: Key[Array, ""]):
        if not 1 <= size <= len(examples.y) or rows < 1:
            raise Refusal(
                f"Minibatch got size={size!r} of {len(examples.y)} examples, rows={rows!r}: the size must not "
                "exceed the number of examples, and a step must read at least one row. Correct the one that is out "
                "of range."
            )
        self.examples, self.key, self.rows = examples, key, rows
        self.size = np.asarray(size, np.int32)  # an array, so that programs are not compiled for it

    def window(self, first: int, most: int) -> tuple[int, Any]:
        """Rows, drawn on the host, where nothing has to be compiled for their number."""
        if self.whole:
            return most, np.broadcast_to(np.arange(self.rows, dtype=np.int32) % int(self.size), (most, self.rows))
        drawn = np.asarray(_words(stream(self.key, "rows"), most * self.rows, np.uint32(first * self.rows)))
        return most, (drawn % np.uint32(self.size)).astype(np.int32).reshape(most, self.rows)

    @property
    def whole(self) -> bool:
        """Whether every step reads the whole sample."""
        return int(self.size) <= self.rows

    def steps(self, window: Any, count: int) -> tuple[Any, Any]:
        """The rows; steps have no noise."""
        return None, window

    def batch(self, step: Any) -> Batch:
        """The examples of some rows; of a sample that is read whole, each once."""
        read = jax.tree.map(lambda part: part[step], Batch(self.examples.x, self.examples.y))
        weight = (jnp.arange(self.rows, dtype=np.int32) < self.size) | (self.size > self.rows)
        return Batch(read.x, read.y, weight.astype(np.float32))

    def samples(self, steps: int) -> int:
        """Those of the sample."""
        return int(self.size)


_words = jax.jit(words, static_argnums=1)
