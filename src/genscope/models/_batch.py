"""A batch through any model: by its fast form where it has one, else example by example.

Guarantee: exact; a fast form equals the model on each example in value and gradient, up to rounding and within the
limits that its file states.
"""

from typing import Any

import jax
from jaxtyping import Array, Shaped


def outputs(model: Any, x: Shaped[Array, "size ..."], **shared: Any) -> Shaped[Array, "size ..."]:
    """Outputs of all examples; `shared` is given to the model with each of them.

    A class has a fast form if it has a method `outputs` that takes a batch. Some of ours bring a gradient of their own,
    which JAX cannot differentiate forwards: who needs that maps the model itself.

    >>> import jax.numpy as jnp
    >>> outputs(lambda example: jnp.sum(example), jnp.ones((2, 3)))
    Array([3., 3.], dtype=float32)
    """
    if callable(getattr(type(model), "outputs", None)):
        return model.outputs(x, **shared)
    return jax.vmap(lambda example: model(example, **shared))(x)
