r"""The small network whose attention can be read: one attention to a scalar, one curve, one sum over the positions.

Source: lintilhac2026, Section 2.4 (mechanistic interpretability).
Departures: the source counts "just over 1000 parameters", which two factors of the scores make (1,021 at T = 20); with
one score matrix there are 580, a variant that the source does not have. Initialization and scaling are not in the text
we have: entries of the score matrix start with variance 1 (`scale` changes their standard deviation) without a factor
in front, the value looks at the bit (weight 1), the curve is a ReLU perceptron of 32 units with N(0, 1) inputs.
Guarantee: exact up to rounding. Its fast form for batches is in `scalar_attention_fast`.

A token is [one-hot position; bit], so with d = T + 1 the scores are $x_i^\top Sx_j$, where $S=AK$ has two factors or is
a matrix of weights. Position i has $a_i=\sum_jp_{ij}v^\top x_j$ with $p_i=\mathrm{softmax}_j(x_i^\top Sx_j)$, and the
output is $\sum_iw_ig(a_i)+w_0$.
"""

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, Key, Num

from genscope.random import stream
from genscope.refusal import Refusal

Bits = Num[Array, "..."] | Bool[Array, "..."]


class ScalarActivations(NamedTuple):
    """What one example makes of the network."""

    attention: Float[Array, "T T"]  # queries in rows
    mixture: Float[Array, " T"]  # a
    curve: Float[Array, " T"]  # g(a)
    output: Float[Array, ""]


class ScalarAttention(eqx.Module):
    """One attention over T bits; T = 20 has 580 parameters, 1,021 with `factored` scores.

    With `positional`, scores see positions only: the row and the column of the bit in the score matrix are left out.
    """

    score: Float[Array, "d d"]
    key: Float[Array, "d d"] | None
    value: Float[Array, " d"]
    w_up: Float[Array, " hidden"]
    b_up: Float[Array, " hidden"]
    w_down: Float[Array, " hidden"]
    b_down: Float[Array, ""]
    w_read: Float[Array, " T"]
    b_read: Float[Array, ""]
    positional: bool = eqx.field(static=True)

    def __init__(
        self,
        context_length: int,
        *,
        hidden: int = 32,
        positional: bool = False,
        factored: bool = False,
        scale: float = 1.0,
        key: Key[Array, ""],
    ):
        if min(context_length, hidden) < 1:
            raise Refusal(
                f"ScalarAttention got {context_length=}, {hidden=}: both must be at least 1. Increase the one that is "
                "not."
            )
        if not 0 < scale < math.inf:
            raise Refusal(
                f"ScalarAttention got {scale=}: the standard deviation of the initial scores must be positive and "
                "finite. The usual value is 1."
            )
        dim = context_length + 1
        # An entry of the product of two such matrices has variance dim (scale / sqrt(dim))^2 = scale^2.
        spread = math.sqrt(scale) / dim**0.25 if factored else scale
        self.score = spread * jr.normal(stream(key, "score"), (dim * dim,)).reshape(dim, dim)
        self.key = spread * jr.normal(stream(key, "key"), (dim * dim,)).reshape(dim, dim) if factored else None
        noise = 0.1 * jr.normal(stream(key, "value"), (dim,))
        self.value = noise.at[-1].add(1.0)
        self.w_up = jr.normal(stream(key, "up"), (hidden,))
        self.b_up = jr.uniform(stream(key, "kinks"), (hidden,), minval=-1.0, maxval=1.0)
        self.w_down = jr.normal(stream(key, "down"), (hidden,)) / math.sqrt(hidden)
        self.b_down = jnp.zeros(())
        self.w_read = jr.normal(stream(key, "read"), (context_length,)) / math.sqrt(context_length)
        self.b_read = jnp.zeros(())
        self.positional = positional

    def curve(self, mixture: Float[Array, "..."]) -> Float[Array, "..."]:
        """The curve g that every position applies to its scalar, elementwise."""
        hidden = jax.nn.relu(jnp.multiply.outer(mixture, self.w_up) + self.b_up.reshape((1,) * mixture.ndim + (-1,)))
        return hidden @ self.w_down + self.b_down

    def activations(self, x: Bits) -> ScalarActivations:
        """The plain form: every score."""
        bits = self.checked(x, (self.w_read.size,))
        tokens = jnp.concatenate([jnp.eye(len(bits), dtype=bits.dtype), bits[:, None]], axis=1)
        attention = jax.nn.softmax(tokens @ self.effective_score() @ tokens.T, axis=1)
        mixture = attention @ (tokens @ self.value)
        curve = self.curve(mixture)
        return ScalarActivations(attention, mixture, curve, curve @ self.w_read + self.b_read)

    def __call__(self, x: Bits) -> Float[Array, ""]:
        """Output for one example."""
        return self.activations(x).output

    def outputs(self, x: Bits) -> Float[Array, " B"]:
        """Outputs of a batch, by the exact shortcut."""
        from genscope.models.scalar_attention_fast import outputs

        return outputs(self, x)

    def effective_score(self) -> Float[Array, "d d"]:
        """The score matrix S; with `positional`, without the row and the column of the bit."""
        score = self.score if self.key is None else self.score @ self.key
        return score.at[-1].set(0.0).at[:, -1].set(0.0) if self.positional else score

    def checked(self, x: Array, shape: tuple[int, ...]) -> Array:
        """Bits of that shape as numbers, or a refusal."""
        if x.shape != shape:
            raise Refusal(
                f"ScalarAttention got bits of shape {x.shape}: it reads {shape[-1]} bits, one example at a time "
                f"(`outputs` takes a batch). Give an array of shape {shape}, or change the context length."
            )
        return x.astype(self.score.dtype)
