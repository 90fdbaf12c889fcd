"""Whole numbers that an embedding has no row for: JAX takes another row for them without a word.

Guarantee: exact for every `equinox.nn.Embedding` whose row reaches the output; an array that a model indexes by itself
is not seen.
"""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from genscope.models._batch import outputs

_TOGETHER = 256  # examples


class _Checked(eqx.nn.Embedding):
    """An embedding with NaN for the rows that it does not have."""

    def __call__(self, x: Any, *, key: Any = None) -> Array:
        """The row, or NaN."""
        inside = (x >= 0) & (x < self.num_embeddings)
        return jnp.where(inside, super().__call__(x, key=key), jnp.nan)


def embedding_rows(model: Any) -> list[int]:
    """The number of rows of each embedding."""
    return [each.num_embeddings for each in _leaves(model) if _is_embedding(each)]


def example_without_row(model: Any, x: Any) -> int | None:
    """The first example that asks an embedding for a row that it does not have.

    >>> import jax.random as jr
    >>> words = eqx.nn.Sequential([eqx.nn.Embedding(3, 2, key=jr.key(0))])
    >>> [example_without_row(words, np.array(ids)) for ids in ([0, 2, 1], [0, 3, 1], [0, 1, -1])]
    [None, 1, 2]
    """
    checked = jax.tree.map(_checked, model, is_leaf=_is_embedding)
    run = eqx.filter_jit(lambda each, part: outputs(each, part))
    size = len(jax.tree.leaves(x)[0])
    for first in range(0, size, _TOGETHER):
        part = jax.tree.map(lambda array: jnp.asarray(array[first : first + _TOGETHER]), x)  # noqa: B023  # called here
        plain, marked = (np.isnan(run(each, part)) for each in (model, checked))
        found = (marked & ~plain).reshape(len(marked), -1).any(axis=1)
        if found.any():
            return first + int(found.argmax())
    return None


def _leaves(model: Any) -> list[Any]:
    return jax.tree.leaves(model, is_leaf=_is_embedding)


def _is_embedding(found: Any) -> bool:
    return type(found) is eqx.nn.Embedding  # a class made from it may do something else


def _checked(found: Any) -> Any:
    if not _is_embedding(found):
        return found
    checked = object.__new__(_Checked)
    for field in dataclasses.fields(found):
        object.__setattr__(checked, field.name, getattr(found, field.name))
    return checked
