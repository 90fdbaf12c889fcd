r"""The trained two-layer Transformer over bits: no layer norm, one head per layer, read at an output position.

Source: lintilhac2026, Section 2.1 and Appendix A (experiments).
Departures: the exact form of the logarithmic scaling is not stated in the text we have; logits are
$\frac{\log N}{\sqrt d}q^\top k$ for N positions. Weights start as N(0, 1/fan-in), bit embeddings at length 1 as the
one-hot positions have, biases at 0.
Guarantee: exact; `outputs` equals `jax.vmap(model)` in value and gradient up to rounding, whatever the weights.

A token is [one-hot position; embedding of its bit], so layer 1 knows 2N tokens, and each of its maps splits into a part
of the position and a part of the bit. With $p_i$ the attention of position i and $b$ the bits, the stream after
attention is affine in the N + 2 numbers $(p_i,\ p_i^\top b,\ b_i)$, and everything linear that follows is folded into
tables. Layer 2 has one query: it needs the stream of the other positions only through products with a vector and
through weighted sums, so the second map of layer 1's perceptron is never applied to them.
"""

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, Num

from genscope.random import stream

Bits = Num[Array, "..."] | Bool[Array, "..."]


class Activations(NamedTuple):
    """What one example makes of the network; only the row `read` of the second layer reaches the output."""

    first: Float[Array, "N N"]  # attention, queries in rows
    second: Float[Array, "N N"]
    residual: Float[Array, "N d"]  # stream after both layers
    output: Float[Array, ""]


class Layer(eqx.Module):
    """Attention of one head and a ReLU perceptron, each added to the stream; vectors are rows."""

    w_query: Float[Array, "d d"]
    w_key: Float[Array, "d d"]
    w_value: Float[Array, "d d"]
    w_output: Float[Array, "d d"]
    w_up: Float[Array, "d hidden"]
    b_up: Float[Array, " hidden"]
    w_down: Float[Array, "hidden d"]
    b_down: Float[Array, " d"]

    @classmethod
    def draw(cls, key: Key[Array, ""], *, dim: int, hidden: int, scale: float) -> "Layer":
        """Weights N(0, scale²/fan-in), biases 0."""

        def weights(name: str, rows: int, columns: int) -> Array:
            return _normal(stream(key, name), (rows, columns), scale)

        return cls(
            w_query=weights("query", dim, dim),
            w_key=weights("key", dim, dim),
            w_value=weights("value", dim, dim),
            w_output=weights("output", dim, dim),
            w_up=weights("up", dim, hidden),
            b_up=jnp.zeros(hidden),
            w_down=weights("down", hidden, dim),
            b_down=jnp.zeros(dim),
        )

    def __call__(
        self, h: Float[Array, "N d"], scale: float, seen: Bool[Array, " N"]
    ) -> tuple[Float[Array, "N N"], Float[Array, "N d"]]:
        """Attention of every query to the keys that are seen, and the stream after the layer."""
        scores = scale * (h @ self.w_query) @ (h @ self.w_key).T
        attention = jax.nn.softmax(jnp.where(seen[None], scores, -jnp.inf), axis=1)
        h = h + attention @ (h @ self.w_value) @ self.w_output
        return attention, h + self.perceptron(h)

    def perceptron(self, h: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """What the perceptron adds to each row."""
        return jax.nn.relu(h @ self.w_up + self.b_up[None]) @ self.w_down + self.b_down[None]


class BitTransformer(eqx.Module):
    """Two layers over T bits and an output position, whose bit is 0; T = 20 has 47,390 parameters.

    `position_ids` names the one-hot vector of each of the T + 1 positions (0, ..., T unless given), so that positions
    can share one. With `read`, the positions after it are not seen, and the output is read there.
    """

    bit: Float[Array, "2 e"]
    first: Layer
    second: Layer
    w_read: Float[Array, " d"]
    b_read: Float[Array, ""]
    position_ids: tuple[int, ...] = eqx.field(static=True)

    def __init__(
        self,
        context_length: int,
        *,
        embedding: int = 30,
        hidden: int = 128,
        position_ids: tuple[int, ...] | None = None,
        scale: float = 1.0,
        key: Key[Array, ""],
    ):
        if min(context_length, embedding, hidden) < 1:
            raise ValueError(
                f"BitTransformer got {context_length=}, {embedding=}, {hidden=}: it reads at least one bit, and a "
                "width is at least 1. Give 1 or more."
            )
        ids = tuple(range(context_length + 1)) if position_ids is None else tuple(position_ids)
        if len(ids) != context_length + 1 or {*ids} != {*range(max(ids) + 1)}:
            raise ValueError(
                f"BitTransformer got position_ids={ids} with {context_length=}: each of the {context_length + 1} "
                "positions (the output position comes last) has an id, and ids count from 0 without a gap. Give such a "
                "list, or leave it out."
            )
        dim = max(ids) + 1 + embedding
        self.bit = _normal(stream(key, "bit"), (embedding, 2), scale).T
        self.first = Layer.draw(stream(key, "first"), dim=dim, hidden=hidden, scale=scale)
        self.second = Layer.draw(stream(key, "second"), dim=dim, hidden=hidden, scale=scale)
        self.w_read = _normal(stream(key, "read"), (dim, 1), scale)[:, 0]
        self.b_read = jnp.zeros(())
        self.position_ids = ids

    @property
    def _scale(self) -> float:
        return math.log(len(self.position_ids)) / math.sqrt(self.w_read.size)

    def activations(self, x: Bits, read: Int[Array, ""] | None = None) -> Activations:
        """The plain form: every position of every layer."""
        ids = np.asarray(self.position_ids)
        last = len(ids) - 1
        bits = jnp.concatenate([_checked(x, (last,)), jnp.zeros(1, x.dtype)]).astype(int)
        h = jnp.concatenate([jnp.eye(max(ids) + 1, dtype=self.bit.dtype)[ids], self.bit[bits]], axis=1)
        read = jnp.asarray(last) if read is None else read
        seen = jnp.arange(len(ids), dtype=read.dtype) <= read
        first, h = self.first(h, self._scale, seen)
        second, h = self.second(h, self._scale, seen)
        return Activations(first, second, h, h[read] @ self.w_read + self.b_read)

    def __call__(self, x: Bits, read: Int[Array, ""] | None = None) -> Float[Array, ""]:
        """Output for one example."""
        return self.activations(x, read).output

    def outputs(self, x: Bits, read: Int[Array, " B"] | None = None) -> Float[Array, " B"]:
        """Outputs of a batch by the exact shortcut. Arrays have the batch last, which is what vectorises."""
        bits = _checked(x, (x.shape[0], len(self.position_ids) - 1)).T.astype(self.bit.dtype)
        bits = jnp.concatenate([bits, jnp.zeros_like(bits[:1])])
        seen = None if read is None else jnp.arange(len(bits), dtype=read.dtype)[:, None] <= read[None]
        features = self._features(bits, seen)
        base, maps = self._tables()
        one, two = self.first, self.second
        folded = (maps @ one.w_up).T @ features.reshape(len(features), -1)
        offset = (base @ one.w_up + one.b_up[None]).T[..., None]
        hidden = jax.nn.relu(folded.reshape(-1, *bits.shape) + offset)
        base = base + one.b_down[None]  # the stream at i is now base_i + maps' features_i + w_down' hidden_i

        def stream_of(weights: Float[Array, "N B"]) -> Float[Array, "d B"]:
            """The weighted sum of the positions' streams."""
            return (
                base.T @ weights
                + maps.T @ jnp.sum(features * weights[None], axis=1)
                + one.w_down.T @ jnp.sum(hidden * weights[None], axis=1)
            )

        if read is None:
            h = base[-1][:, None] + maps.T @ features[:, -1] + one.w_down.T @ hidden[:, -1]
        else:
            h = stream_of(jax.nn.one_hot(read, len(bits), dtype=bits.dtype, axis=0))
        direction = self._scale * two.w_key @ (two.w_query.T @ h)
        scores = (
            base @ direction
            + jnp.sum(features * (maps @ direction)[:, None], axis=0)
            + jnp.sum(hidden * (one.w_down @ direction)[:, None], axis=0)
        )
        h = h + two.w_output.T @ (two.w_value.T @ stream_of(_softmax(scores, seen)))
        h = h + two.perceptron(h.T).T
        return self.w_read @ h + self.b_read

    def _features(self, bits: Float[Array, "N B"], seen: Bool[Array, "N B"] | None) -> Float[Array, "features N B"]:
        """Of each position: its attention to the N positions, its attention to ones, and its own bit."""
        query, query_step = self._by_token(self.first.w_query)
        key, key_step = self._by_token(self._scale * self.first.w_key)
        # Scores of key j (first axis) for query i are affine in b_i, in b_j and in their product.
        of_key = (query @ key_step)[:, None] + (query_step @ key_step) * bits
        scores = (key @ query.T)[..., None] + (key @ query_step)[:, None, None] * bits[None]
        scores = scores + bits[:, None] * of_key[None]
        attention = _softmax(scores, None if seen is None else seen[:, None])
        ones = jnp.sum(attention * bits[:, None], axis=0, keepdims=True)
        return jnp.concatenate([attention, ones, bits[None]])

    def _tables(self) -> tuple[Float[Array, "N d"], Float[Array, "features d"]]:
        """The stream after the first attention, affine in the features: offset by position, and linear map."""
        value, value_step = self._by_token(self.first.w_value @ self.first.w_output)
        own, own_step = self._by_token(jnp.eye(self.w_read.size, dtype=self.bit.dtype))
        # Attention sums to 1, so the bit 0 that is in every row of `value` counts once.
        return own, jnp.concatenate([value, value_step[None], own_step[None]])

    def _by_token(self, weights: Float[Array, "d n"]) -> tuple[Float[Array, "N n"], Float[Array, " n"]]:
        """Images of the tokens with bit 0, and what bit 1 adds."""
        split = self.w_read.size - self.bit.shape[1]
        by_bit = self.bit @ weights[split:]
        return weights[np.asarray(self.position_ids)] + by_bit[:1], by_bit[1] - by_bit[0]


def _softmax(scores: Float[Array, "N ..."], seen: Bool[Array, "N ..."] | None) -> Float[Array, "N ..."]:
    """Over the first axis, among the keys that are seen."""
    return jax.nn.softmax(scores if seen is None else jnp.where(seen, scores, -jnp.inf), axis=0)


def _normal(key: Key[Array, ""], shape: tuple[int, int], scale: float) -> Float[Array, "fan_in out"]:
    # A flat draw: multi-dimensional ones compile 10 to 30 times slower on CPU.
    return scale / math.sqrt(shape[0]) * jr.normal(key, (math.prod(shape),)).reshape(shape)


def _checked(x: Array, shape: tuple[int, ...]) -> Array:
    if x.shape != shape:
        raise ValueError(
            f"BitTransformer got bits of shape {x.shape}: it reads {shape[-1]} bits, one example at a time "
            f"(`outputs`: a batch). Give an array of shape {shape}, or change the context length."
        )
    return x
