r"""A perceptron over bits: layers of ReLU units on the signs of the bits; without a layer, a linear model.

Source: the feedforward rival that every textbook has; weights start as He et al. (2015) propose, N(0, 2/fan-in), the
last layer's as N(0, 1/fan-in), biases at 0.
Guarantee: exact up to rounding.
"""

import itertools
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, Key, Num

from genscope.fourier import signs
from genscope.random import stream
from genscope.refusal import Refusal


class BitPerceptron(eqx.Module):
    r"""$w\cdot\mathrm{relu}(W_l\cdots\mathrm{relu}(W_1(-1)^x+b_1)\cdots+b_l)+b$ of T bits."""

    weights: tuple[Float[Array, "_ _"], ...]
    biases: tuple[Float[Array, " _"], ...]
    w_read: Float[Array, " _"]
    b_read: Float[Array, ""]

    def __init__(self, context_length: int, *, hidden: tuple[int, ...] = (128, 128), key: Key[Array, ""]):
        sizes = (context_length, *hidden)
        if min(sizes) < 1:
            raise Refusal(
                f"BitPerceptron got context_length={context_length!r}, hidden={hidden!r}: it must read at least one "
                "bit, and each layer must have at least one unit. Give 1 or more, or no layers for a linear model."
            )

        def normal(name: str, rows: int, columns: int, square: float) -> Array:
            # A flat draw: multi-dimensional ones compile 10 to 30 times slower on CPU.
            drawn = jr.normal(stream(key, name), (rows * columns,)).reshape(rows, columns)
            return math.sqrt(square / columns) * drawn

        layers = enumerate(itertools.pairwise(sizes))
        self.weights = tuple(normal(f"layer {number}", units, inputs, 2.0) for number, (inputs, units) in layers)
        self.biases = tuple(jnp.zeros(units) for units in hidden)
        self.w_read = normal("read", 1, sizes[-1], 1.0)[0]
        self.b_read = jnp.zeros(())

    def __call__(self, x: Num[Array, " T"] | Bool[Array, " T"]) -> Float[Array, ""]:
        """Logit of one example."""
        state = signs(x, self.w_read.dtype)
        for weight, bias in zip(self.weights, self.biases, strict=True):
            state = jax.nn.relu(weight @ state + bias)
        return self.w_read @ state + self.b_read
