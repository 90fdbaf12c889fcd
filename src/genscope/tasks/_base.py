"""AbstractTask and Batch: one input law with one target function, so that training and test data cannot drift apart.

Guarantee: exact; in every batch y is the target at x.
"""

import abc
from typing import final

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float, Key, PyTree, Shaped


class Batch(eqx.Module):
    """Examples: inputs and their labels, row by row; weights, if some count less than others (0 for padding).

    Several inputs are a dictionary of arrays, which models take by name.
    """

    x: PyTree[Shaped[Array | np.ndarray, "size ..."]]
    y: Shaped[Array, "size ..."]
    weight: Float[Array, " size"] | None = None


class AbstractTask(eqx.Module):
    """What is learned. A final class also has `draw(key, *, ...)`, a random member of its family."""

    @abc.abstractmethod
    def inputs(self, key: Key[Array, ""], size: int) -> Shaped[Array, "size ..."]:
        """Independent inputs from the law of the task."""

    @abc.abstractmethod
    def target(self, x: Shaped[Array, "..."]) -> Shaped[Array, "..."]:
        """The label of one input, without noise."""

    @final
    def sample(self, key: Key[Array, ""], size: int) -> Batch:
        """Independent inputs with their labels."""
        x = self.inputs(key, size)
        return Batch(x, jax.vmap(self.target)(x))
