"""A batch through any model: by its fast form where it has one, else example by example.

Guarantee: exact; a fast form equals the model on each example in value and gradient, up to rounding and within the
limits that its file states.
"""

from collections.abc import Callable
from typing import Any

import jax
from jaxtyping import Array, PyTree, Shaped


def outputs(model: Any, x: PyTree[Shaped[Array, "size ..."]], **shared: Any) -> Shaped[Array, "size ..."]:
    """Outputs of all examples; `shared` is given to the model with each of them, a dictionary of inputs by name.

    A class has a fast form if it has a method `outputs` that takes a batch. Some of ours bring a gradient of their own,
    which JAX cannot differentiate forwards: who needs that maps the model itself.

    >>> import jax.numpy as jnp
    >>> outputs(lambda example: jnp.sum(example), jnp.ones((2, 3)))
    Array([3., 3.], dtype=float32)
    """
    if callable(getattr(type(model), "outputs", None)):
        return called(model.outputs, x, **shared)
    return jax.vmap(lambda example: called(model, example, **shared))(x)


def called(function: Callable[..., Any], x: Any, **shared: Any) -> Any:
    """The function at an input, or at several by their names."""
    return function(**x, **shared) if isinstance(x, dict) else function(x, **shared)
