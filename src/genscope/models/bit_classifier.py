"""The trained one-layer Transformer classifier over bits.

Source: edelman2022, Section 6 (experiments); minGPT's block: learned token and position embeddings, a CLS token that
is also a key, pre-layer-norm, multi-head attention, GELU MLP of width 4d, final norm, linear logit read at CLS.
Departures: attention has no key bias (softmax does not see it). Dropout is in the plain form alone, of attention,
attention output and MLP (not of embeddings): the shortcut cannot express it.
Guarantee: exact up to rounding. Its fast form for batches is in `bit_classifier_fast`.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, Key, Num

from genscope.random import stream
from genscope.refusal import Refusal

EPSILON = 1e-5  # layer norm

Bits = Num[Array, " T"] | Bool[Array, " T"]


@dataclasses.dataclass(frozen=True)
class Initialisation:
    """Standard deviations of the normal initialization; biases start at 0 and norm gains at 1."""

    embedding: float = 0.02
    query_key: float = 0.02
    output: float = 0.02
    other: float = 0.02


MINGPT = Initialisation()
TUNED = Initialisation(embedding=0.01, query_key=0.05, output=0.1, other=0.03)


class ClassifierActivations(NamedTuple):
    """What one example makes of the network."""

    attention: Float[Array, "heads keys"]  # of the CLS query; the CLS token itself comes last
    residual: Float[Array, " d"]  # CLS stream after attention
    output: Float[Array, ""]  # logit


def total(x: Float[Array, "*batch d"]) -> Float[Array, "*batch"]:
    """Sum over the last axis, as a product with ones: XLA adds along a row one by one, but multiplies in vectors."""
    return x @ jnp.ones(x.shape[-1])


def centre(x: Float[Array, "*batch d"]) -> Float[Array, "*batch d"]:
    """Rows less their means."""
    return x - (total(x) / x.shape[-1])[..., None]


def layer_norm(x: Float[Array, " d"], gain: Float[Array, " d"], bias: Float[Array, " d"]) -> Float[Array, " d"]:
    """Center and scale to unit variance."""
    centred = centre(x)
    return centred * jax.lax.rsqrt(total(centred**2) / x.size + EPSILON) * gain + bias


Drop = Callable[..., tuple[Array, ...]]  # of the name of a place, and of arrays whose sum stands there


def keep(name: str, *terms: Array) -> tuple[Array, ...]:
    """No dropout."""
    return terms


def dropout(key: Key[Array, ""], rate: float) -> Drop:
    """Numbers are set to 0 with the probability `rate`, each place by a stream of its own, and the others enlarged."""

    def drop(name: str, *terms: Array) -> tuple[Array, ...]:
        kept = jr.bernoulli(stream(key, name), 1 - rate, terms[0].shape)
        return tuple(jnp.where(kept, term / (1 - rate), 0) for term in terms)

    return drop


class BitClassifier(eqx.Module):
    """One-layer Transformer that reads a logit at CLS from T bits."""

    token: Float[Array, "2 d"]
    position: Float[Array, "T d"]
    cls: Float[Array, " d"]
    gain_attention: Float[Array, " d"]
    bias_attention: Float[Array, " d"]
    w_query: Float[Array, "d d"]
    b_query: Float[Array, " d"]
    w_key: Float[Array, "d d"]
    w_value: Float[Array, "d d"]
    b_value: Float[Array, " d"]
    w_output: Float[Array, "d d"]
    b_output: Float[Array, " d"]
    gain_mlp: Float[Array, " d"]
    bias_mlp: Float[Array, " d"]
    w_up: Float[Array, "d hidden"]
    b_up: Float[Array, " hidden"]
    w_down: Float[Array, "hidden d"]
    b_down: Float[Array, " d"]
    gain_final: Float[Array, " d"]
    bias_final: Float[Array, " d"]
    w_logit: Float[Array, " d"]
    b_logit: Float[Array, ""]
    heads: int = eqx.field(static=True)

    def __init__(
        self,
        context_length: int,
        *,
        dim: int = 64,
        heads: int = 16,
        initialisation: Initialisation = MINGPT,
        key: Key[Array, ""],
    ):
        if context_length < 1:
            raise Refusal(f"BitClassifier got {context_length=}: it must read at least one bit. Give 1 or more.")
        if dim < 1 or heads < 1 or dim % heads:
            raise Refusal(
                f"BitClassifier got {dim=} with {heads=}: the heads share the width equally. Choose a width that is a "
                "multiple of the number of heads."
            )

        def normal(name: str, shape: tuple[int, ...], scale: float) -> Array:
            # A flat draw: multi-dimensional ones compile 10 to 30 times slower on CPU.
            return scale * jr.normal(stream(key, name), (math.prod(shape),)).reshape(shape)

        init = initialisation
        self.token = normal("token", (2, dim), init.embedding)
        self.position = normal("position", (context_length, dim), init.embedding)
        self.cls = normal("cls", (dim,), init.embedding)
        self.w_query = normal("query", (dim, dim), init.query_key)
        self.w_key = normal("key", (dim, dim), init.query_key)
        self.w_value = normal("value", (dim, dim), init.other)
        self.w_output = normal("output", (dim, dim), init.output)
        self.w_up = normal("up", (dim, 4 * dim), init.other)
        self.w_down = normal("down", (4 * dim, dim), init.other)
        self.w_logit = normal("logit", (dim,), init.other)
        self.gain_attention = self.gain_mlp = self.gain_final = jnp.ones(dim)
        self.bias_attention = self.bias_mlp = self.bias_final = jnp.zeros(dim)
        self.b_query = self.b_value = self.b_output = self.b_down = jnp.zeros(dim)
        self.b_up = jnp.zeros(4 * dim)
        self.b_logit = jnp.zeros(())
        self.heads = heads

    def query(self) -> Float[Array, "heads k"]:
        """Of CLS, head by head, divided by the root of its length."""
        query = layer_norm(self.cls, self.gain_attention, self.bias_attention) @ self.w_query + self.b_query
        return query.reshape(self.heads, -1) / jnp.sqrt(query.size / self.heads)

    def read_out(self, attended: Float[Array, " d"], drop: Drop = keep) -> tuple[Float[Array, " d"], Float[Array, ""]]:
        """From the attention output to the residual stream at CLS and the logit."""
        attended, bias = drop("output", attended, self.b_output)
        residual = self.cls + attended + bias
        hidden = jax.nn.gelu(layer_norm(residual, self.gain_mlp, self.bias_mlp) @ self.w_up + self.b_up)
        added, bias = drop("mlp", hidden @ self.w_down, self.b_down)
        final = layer_norm(residual + added + bias, self.gain_final, self.bias_final)
        return residual, final @ self.w_logit + self.b_logit

    def activations(self, x: Bits, drop: Drop = keep) -> ClassifierActivations:
        """The plain form: every token of the example is embedded, normed and projected."""
        tokens = jnp.concatenate([self.token[x.astype(int)] + self.position, self.cls[None]])
        normed = jax.vmap(lambda token: layer_norm(token, self.gain_attention, self.bias_attention))(tokens)
        keys = (normed @ self.w_key).reshape(len(tokens), self.heads, -1)
        values = (normed @ self.w_value + self.b_value[None]).reshape(len(tokens), self.heads, -1)
        attention = jax.nn.softmax(jnp.einsum("hk,thk->ht", self.query(), keys), axis=-1)
        (weights,) = drop("attention", attention)
        residual, logit = self.read_out(jnp.einsum("ht,thk->hk", weights, values).reshape(-1) @ self.w_output, drop)
        return ClassifierActivations(attention, residual, logit)

    def __call__(self, x: Bits) -> Float[Array, ""]:
        """Logit of one example."""
        return self.activations(x).output

    def outputs(self, x: Num[Array, "m T"] | Bool[Array, "m T"]) -> Float[Array, " m"]:
        """Logits of a batch, by the exact shortcut."""
        from genscope.models.bit_classifier_fast import outputs

        return outputs(self, x)
