r"""The trained two-layer Transformer over bits: no layer norm, one head per layer, read at an output position.

Source: lintilhac2026, Section 2.1 and Appendix A (experiments).
Departures: the exact form of the logarithmic scaling is not stated in the text we have; logits are
$\frac{\log N}{\sqrt d}q^\top k$ for N positions. Weights start as N(0, 1/fan-in), bit embeddings at length 1 as the
one-hot positions have, biases at 0.
Guarantee: exact up to rounding. Its fast form for batches is in `bit_transformer_fast`.
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
from genscope.refusal import Refusal

Bits = Num[Array, "..."] | Bool[Array, "..."]


class BitTransformerActivations(NamedTuple):
    """What one example makes of the network; only the row `read` of the second layer reaches the output."""

    first: Float[Array, "N N"]  # attention, queries in rows
    second: Float[Array, "N N"]
    residual: Float[Array, "N d"]  # stream after both layers
    output: Float[Array, ""]


class BitLayer(eqx.Module):
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
    def draw(cls, key: Key[Array, ""], *, dim: int, hidden: int, scale: float) -> "BitLayer":
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
    first: BitLayer
    second: BitLayer
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
            raise Refusal(
                f"BitTransformer got {context_length=}, {embedding=}, {hidden=}: all must be at least 1. Increase the "
                "one that is not."
            )
        ids = tuple(range(context_length + 1)) if position_ids is None else tuple(position_ids)
        if len(ids) != context_length + 1 or {*ids} != {*range(max(ids) + 1)}:
            raise Refusal(
                f"BitTransformer got position_ids={ids} with {context_length=}: each of the {context_length + 1} "
                "positions (the output position comes last) needs an id, and ids must count from 0 without gaps. Give "
                "such a list, or leave it out."
            )
        dim = max(ids) + 1 + embedding
        self.bit = _normal(stream(key, "bit"), (embedding, 2), scale).T
        self.first = BitLayer.draw(stream(key, "first"), dim=dim, hidden=hidden, scale=scale)
        self.second = BitLayer.draw(stream(key, "second"), dim=dim, hidden=hidden, scale=scale)
        self.w_read = _normal(stream(key, "read"), (dim, 1), scale)[:, 0]
        self.b_read = jnp.zeros(())
        self.position_ids = ids

    @property
    def scale(self) -> float:
        """The factor of the scores."""
        return math.log(len(self.position_ids)) / math.sqrt(self.w_read.size)

    def tokens(self, x: Bits) -> Float[Array, "N d"]:
        """One-hot position and embedding of the bit, for each position; the output position comes last."""
        ids = np.asarray(self.position_ids)
        bits = jnp.concatenate([checked(x, (len(ids) - 1,)), jnp.zeros(1, x.dtype)]).astype(int)
        return jnp.concatenate([jnp.eye(max(ids) + 1, dtype=self.bit.dtype)[ids], self.bit[bits]], axis=1)

    def activations(self, x: Bits, read: Int[Array, ""] | None = None) -> BitTransformerActivations:
        """The plain form: every position of every layer."""
        h = self.tokens(x)
        read = jnp.asarray(len(h) - 1) if read is None else read
        seen = jnp.arange(len(h), dtype=read.dtype) <= read
        first, h = self.first(h, self.scale, seen)
        second, h = self.second(h, self.scale, seen)
        return BitTransformerActivations(first, second, h, h[read] @ self.w_read + self.b_read)

    def __call__(self, x: Bits, read: Int[Array, ""] | None = None) -> Float[Array, ""]:
        """Output for one example."""
        return self.activations(x, read).output

    def outputs(self, x: Bits, read: Int[Array, " B"] | None = None) -> Float[Array, " B"]:
        """Outputs of a batch, by the exact shortcut."""
        from genscope.models.bit_transformer_fast import outputs

        return outputs(self, x, read)


def _normal(key: Key[Array, ""], shape: tuple[int, int], scale: float) -> Float[Array, "fan_in out"]:
    # A flat draw: multi-dimensional ones compile 10 to 30 times slower on CPU.
    return scale / math.sqrt(shape[0]) * jr.normal(key, (math.prod(shape),)).reshape(shape)


def checked(x: Array, shape: tuple[int, ...]) -> Array:
    """Bits of that shape, or a refusal."""
    if x.shape != shape:
        raise Refusal(
            f"BitTransformer got bits of shape {x.shape}: it reads {shape[-1]} bits, one example at a time (`outputs` "
            f"takes a batch). Give an array of shape {shape}, or change the context length."
        )
    return x
