r"""Initial weights of the trained networks of token regression, also of networks padded with units that do nothing.

Source: mousavi2025, public code (PyTorch's default laws).
Guarantee: exact; unused inputs and units have weight 0 on both sides, so that they contribute nothing to a prediction,
have no gradient, and stay 0 under AdamW: a padded network is the smaller one.
"""

import math

import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from genscope.models.mousavi2025 import TwoLayer

Used = Bool[Array, " units"] | None


def uniforms(key: Key[Array, ""], **shapes: tuple[int, ...]) -> dict[str, Float[Array, "..."]]:
    """Arrays of independent uniform numbers in (-1, 1), all from one flat draw: each draw is slow to compile."""
    sizes = [math.prod(shape) for shape in shapes.values()]
    parts = jnp.split(jr.uniform(key, (sum(sizes),), minval=-1, maxval=1), np.cumsum(sizes)[:-1])
    return {name: part.reshape(shape) for (name, shape), part in zip(shapes.items(), parts, strict=True)}


def count(used: Used, size: int) -> Float[Array, ""]:
    """How many of `size` units are used."""
    return jnp.asarray(float(size)) if used is None else jnp.sum(used, dtype=float)


def only(weight: Float[Array, "..."], used: Used, axis: int) -> Float[Array, "..."]:
    """The weights along an axis where they are used, 0 elsewhere."""
    if used is None:
        return weight
    shape = [1] * weight.ndim
    shape[axis] = -1
    return jnp.where(used.reshape(shape), weight, 0)


def fan_in(reads: Used, size: int) -> Float[Array, ""]:
    r"""$1/\sqrt{\text{fan-in}}$."""
    return 1 / jnp.sqrt(count(reads, size))


def two_layer_shapes(inputs: int, hidden: int) -> dict[str, tuple[int, ...]]:
    """What `two_layer` makes a head network of."""
    return {"weight": (hidden, inputs), "bias": (hidden,), "outer": (hidden,), "offset": ()}


def two_layer(drawn: dict[str, Array], *, output_bias: bool, reads: Used = None) -> TwoLayer:
    r"""A head network whose weights and biases are uniform within $\pm1/\sqrt{\text{fan-in}}$."""
    hidden, inputs = drawn["weight"].shape
    first, second = fan_in(reads, inputs), fan_in(None, hidden)
    weight = only(first * drawn["weight"], reads, 1)
    offset = second * drawn["offset"] if output_bias else None
    return TwoLayer(weight, first * drawn["bias"], second * drawn["outer"], offset)
