r"""A Transformer encoder of any depth over bits, read at a CLS token: the generic network, without a shortcut.

Source: Vaswani et al. (2017) with the normalization before each part; the block of `bit_classifier`, repeated.
Departures: matrices start as N(0, 1/fan-in), those that write to the stream divided by the root of twice the number of
layers, so that its size does not depend on the depth; no dropout.
Guarantee: exact up to rounding; with one layer it is the network of `bit_classifier` with other initial weights.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, Key, Num

from genscope.models.bit_classifier import layer_norm
from genscope.random import stream
from genscope.refusal import Refusal


class EncoderLayer(eqx.Module):
    """Attention of several heads and a GELU perceptron, each normalized before and added to the stream."""

    gain_attention: Float[Array, " d"]
    bias_attention: Float[Array, " d"]
    w_query: Float[Array, "d d"]
    w_key: Float[Array, "d d"]
    w_value: Float[Array, "d d"]
    w_output: Float[Array, "d d"]
    gain_mlp: Float[Array, " d"]
    bias_mlp: Float[Array, " d"]
    w_up: Float[Array, "d hidden"]
    b_up: Float[Array, " hidden"]
    w_down: Float[Array, "hidden d"]
    b_down: Float[Array, " d"]
    heads: int = eqx.field(static=True)

    def __init__(self, dim: int, heads: int, *, write: float, key: Key[Array, ""]):
        self.gain_attention = self.gain_mlp = jnp.ones(dim)
        self.bias_attention = self.bias_mlp = self.b_down = jnp.zeros(dim)
        self.w_query, self.w_key, self.w_value = (
            normal(stream(key, name), dim, dim) for name in ("query", "key", "value")
        )
        self.w_output = write * normal(stream(key, "output"), dim, dim)
        self.w_up, self.b_up = normal(stream(key, "up"), dim, 4 * dim), jnp.zeros(4 * dim)
        self.w_down = write * normal(stream(key, "down"), 4 * dim, dim)
        self.heads = heads

    def __call__(self, h: Float[Array, "N d"]) -> tuple[Float[Array, "heads N N"], Float[Array, "N d"]]:
        """Attention, queries in rows, and the stream after the layer."""
        normed = jax.vmap(lambda row: layer_norm(row, self.gain_attention, self.bias_attention))(h)
        query, key, value = (
            (normed @ weight).reshape(len(h), self.heads, -1) for weight in (self.w_query, self.w_key, self.w_value)
        )
        attention = jax.nn.softmax(jnp.einsum("nhk,mhk->hnm", query, key) / math.sqrt(query.shape[2]), axis=-1)
        h = h + jnp.einsum("hnm,mhk->nhk", attention, value).reshape(h.shape) @ self.w_output
        normed = jax.vmap(lambda row: layer_norm(row, self.gain_mlp, self.bias_mlp))(h)
        return attention, h + jax.nn.gelu(normed @ self.w_up + self.b_up[None]) @ self.w_down + self.b_down[None]


class BitEncoder(eqx.Module):
    """Layers over T bits and a CLS token, which comes last and is read."""

    token: Float[Array, "2 d"]
    position: Float[Array, "T d"]
    cls: Float[Array, " d"]
    layers: tuple[EncoderLayer, ...]
    gain_final: Float[Array, " d"]
    bias_final: Float[Array, " d"]
    w_logit: Float[Array, " d"]
    b_logit: Float[Array, ""]

    def __init__(self, context_length: int, *, layers: int = 2, heads: int = 4, dim: int = 32, key: Key[Array, ""]):
        if min(context_length, layers, heads, dim) < 1 or dim % heads:
            raise Refusal(
                f"BitEncoder got context_length={context_length!r}, layers={layers!r}, heads={heads!r}, "
                f"dim={dim!r}: all sizes must be at least 1, and the width must be a multiple of the number of "
                "heads. Correct them."
            )
        self.token = normal(stream(key, "token"), dim, 2).T
        self.position = normal(stream(key, "position"), dim, context_length).T
        self.cls = normal(stream(key, "cls"), dim, 1)[:, 0]
        write = 1 / math.sqrt(2 * layers)
        self.layers = tuple(
            EncoderLayer(dim, heads, write=write, key=stream(key, f"layer {number}")) for number in range(layers)
        )
        self.gain_final, self.bias_final = jnp.ones(dim), jnp.zeros(dim)
        self.w_logit, self.b_logit = normal(stream(key, "logit"), dim, 1)[:, 0], jnp.zeros(())

    def __call__(self, x: Num[Array, " T"] | Bool[Array, " T"]) -> Float[Array, ""]:
        """Logit of one example."""
        h = jnp.concatenate([self.token[x.astype(int)] + self.position, self.cls[None]])
        for layer in self.layers:
            _, h = layer(h)
        return layer_norm(h[-1], self.gain_final, self.bias_final) @ self.w_logit + self.b_logit


def normal(key: Key[Array, ""], rows: int, columns: int) -> Float[Array, "rows columns"]:
    """Entries N(0, 1/rows), by a flat draw: multi-dimensional ones compile 10 to 30 times slower on CPU."""
    return jr.normal(key, (rows * columns,)).reshape(rows, columns) / math.sqrt(rows)
