r"""The small network whose attention can be read: one attention to a scalar, one curve, one sum over the positions.

Source: lintilhac2026, Section 2.4 (mechanistic interpretability).
Departures: the source's initialisation and scaling are not in the text we have: scores start as N(0, 1) without a
factor in front, the value looks at the bit (weight 1), the curve is a ReLU perceptron of 32 units with N(0, 1) inputs.
Guarantee: exact; `outputs` (with its gradient) and `truth_table` equal `jax.vmap(model)` up to rounding, while what a
bit adds to a score stays within 80.

A token is [one-hot position; bit], so with d = T + 1 the scores are $x_i^\top Ax_j$. Position i has
$a_i=\sum_jp_{ij}v^\top x_j$ with $p_i=\mathrm{softmax}_j(x_i^\top Ax_j)$, and the output is $\sum_iw_ig(a_i)+w_0$.
Given bit i, $e^{x_i^\top Ax_j}$ has two values, by bit j: all numerators and denominators are one product.
"""

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, Key, Num

from genscope.fourier import points
from genscope.random import stream

Bits = Num[Array, "..."] | Bool[Array, "..."]


_TOGETHER = 11  # bits over which a block of the truth table runs: its numbers stay in the cache


class Activations(NamedTuple):
    """What one example makes of the network."""

    attention: Float[Array, "T T"]  # queries in rows
    mixture: Float[Array, " T"]  # a
    curve: Float[Array, " T"]  # g(a)
    output: Float[Array, ""]


class ScalarAttention(eqx.Module):
    """One attention with a full score matrix over T bits; T = 20 has 580 parameters.

    With `positional`, scores see positions only: the row and the column of the bit in `score` are left out.
    """

    score: Float[Array, "d d"]
    value: Float[Array, " d"]
    w_up: Float[Array, " hidden"]
    b_up: Float[Array, " hidden"]
    w_down: Float[Array, " hidden"]
    b_down: Float[Array, ""]
    w_read: Float[Array, " T"]
    b_read: Float[Array, ""]
    positional: bool = eqx.field(static=True)

    def __init__(self, context_length: int, *, hidden: int = 32, positional: bool = False, key: Key[Array, ""]):
        if min(context_length, hidden) < 1:
            raise ValueError(
                f"ScalarAttention got {context_length=}, {hidden=}: it reads at least one bit, and the curve has at "
                "least one unit. Give 1 or more."
            )
        dim = context_length + 1
        self.score = jr.normal(stream(key, "score"), (dim * dim,)).reshape(dim, dim)
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

    def activations(self, x: Bits) -> Activations:
        """The plain form: every score."""
        bits = self._checked(x, (self.w_read.size,))
        tokens = jnp.concatenate([jnp.eye(len(bits), dtype=bits.dtype), bits[:, None]], axis=1)
        attention = jax.nn.softmax(tokens @ self._score() @ tokens.T, axis=1)
        mixture = attention @ (tokens @ self.value)
        curve = self.curve(mixture)
        return Activations(attention, mixture, curve, curve @ self.w_read + self.b_read)

    def __call__(self, x: Bits) -> Float[Array, ""]:
        """Output for one example."""
        return self.activations(x).output

    def mixtures(self, x: Bits) -> Float[Array, "B T"]:
        """The scalars of a batch, by the shortcut."""
        bits = self._checked(x, (x.shape[0], self.w_read.size))
        length = self.w_read.size
        tables = self._tables().reshape(2, -1, length)
        either = jnp.concatenate([1 - bits, bits], axis=1)
        sums = (either @ jnp.concatenate([tables[0], tables[1]], axis=1).T).reshape(-1, 2, 2, length)
        ratio = sums[:, 1] / sums[:, 0]
        return jnp.where(bits > 0, ratio[:, 1], ratio[:, 0])

    def _tables(self) -> Float[Array, "2 2 2 T T"]:
        """What a key adds: axes key's bit, denominator or numerator, query's bit, query, key."""
        score, length = self._score(), self.w_read.size
        # First axis: the bit of the query. A key's bit adds the same to its score whatever the key's position.
        query = jnp.arange(2, dtype=score.dtype)
        base = score[None, :-1, :-1] + query[:, None, None] * score[None, -1:, :-1]
        step = score[None, :-1, -1] + query[:, None] * score[None, -1:, -1]
        # Denominators lie between exp(-|step| / 2) and T exp(|step| / 2), so that their squares fit in float32 too.
        middle = jax.lax.stop_gradient(jnp.max(base, axis=-1) + step / 2)
        zero = jnp.exp(base - middle[..., None])
        one = zero * jnp.exp(step)[..., None]
        value = self.value[None, None, :-1]
        # Sums over the keys with bit 0 and those with bit 1, apart: a difference of the two would lose the smaller.
        return jnp.stack([zero, zero * value, one, one * (value + self.value[-1])]).reshape(2, 2, 2, length, length)

    def outputs(self, x: Bits) -> Float[Array, " B"]:
        """Outputs of a batch by the shortcut."""
        return self.curve(self.mixtures(x)) @ self.w_read + self.b_read

    def truth_table(self) -> Float[Array, " cube"]:
        """Outputs for all 2^T inputs, bit 0 varying fastest: sums over the first bits and over the rest are added."""
        tables, length = self._tables(), self.w_read.size
        few = min(length, _TOGETHER)
        fast, slow = jnp.asarray(points(few)), jnp.asarray(points(length - few))
        fast_sums, slow_sums = _sums(tables[..., :few], fast), _sums(tables[..., few:], slow)

        def block(given: tuple[Bool[Array, " slow"], Float[Array, "2 2 T"]]) -> Float[Array, " fast"]:
            bits, rest = given
            own = jnp.concatenate([fast.T, jnp.broadcast_to(bits[:, None], (len(bits), len(fast)))])
            below, above = (
                jnp.where(own, first[1] + then[1, :, None], first[0] + then[0, :, None])
                for first, then in zip(fast_sums, rest, strict=True)
            )
            return self.w_read @ self._curve_by_unit(above / below) + self.b_read

        return jax.lax.map(block, (slow, jnp.moveaxis(slow_sums, -1, 0))).reshape(-1)

    def _curve_by_unit(self, mixture: Float[Array, "..."]) -> Float[Array, "..."]:
        """The curve without a hidden layer in memory: three times faster for many scalars, slower in gradients."""
        height = jnp.broadcast_to(self.b_down, mixture.shape)
        for up, bias, down in zip(self.w_up, self.b_up, self.w_down, strict=True):
            height += down * jax.nn.relu(up * mixture + bias)
        return height

    def _score(self) -> Float[Array, "d d"]:
        if not self.positional:
            return self.score
        return self.score.at[-1].set(0.0).at[:, -1].set(0.0)

    def _checked(self, x: Array, shape: tuple[int, ...]) -> Array:
        if x.shape != shape:
            raise ValueError(
                f"ScalarAttention got bits of shape {x.shape}: it reads {shape[-1]} bits, one example at a time "
                f"(`outputs`: a batch). Give an array of shape {shape}, or change the context length."
            )
        return x.astype(self.score.dtype)


def _sums(tables: Float[Array, "2 2 2 T keys"], bits: Bool[Array, "n keys"]) -> Float[Array, "2 2 T n"]:
    """Denominators and numerators of each query, by its bit, over these keys alone."""
    ones = bits.astype(tables.dtype)
    return tables[0] @ (1 - ones).T + tables[1] @ ones.T
