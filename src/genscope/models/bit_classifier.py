"""The trained one-layer Transformer classifier over bits, plainly and by its exact shortcut.

Source: edelman2022, Section 6 (experiments); minGPT's block: learned token and position embeddings, a CLS token that
is also a key, pre-layer-norm, multi-head attention, GELU MLP of width 4d, final norm, linear logit read at CLS.
Departures: attention has no key bias (softmax does not see it); no dropout (the shortcut cannot express dropout of
attention or embeddings, and it made no difference).
Guarantee: exact; `logits` equals `jax.vmap(model)` in value and gradient up to rounding, whatever the weights.
"""

import dataclasses
import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, Key, Num

from genscope.random import stream

EPSILON = 1e-5  # layer norm
RANGE = 80.0  # between a head's largest score and the least maximum of an example: e^40 and e^-40 are safe float32


@dataclasses.dataclass(frozen=True)
class Initialisation:
    """Standard deviations of the normal initialisation; biases start at 0 and norm gains at 1."""

    embedding: float = 0.02
    query_key: float = 0.02
    output: float = 0.02
    other: float = 0.02


MINGPT = Initialisation()
TUNED = Initialisation(embedding=0.01, query_key=0.05, output=0.03, other=0.03)


class Activations(NamedTuple):
    """What one example makes of the network."""

    attention: Float[Array, "heads keys"]  # of the CLS query; the CLS token itself comes last
    residual: Float[Array, " d"]  # CLS stream after attention
    output: Float[Array, ""]  # logit


class Table(NamedTuple):
    """Scores and values of the 2T tokens that exist, and of CLS; heads come last, which is what vectorises."""

    scores: Float[Array, "2 T heads"]
    values: Float[Array, "2 T k heads"]
    cls_scores: Float[Array, " heads"]
    cls_values: Float[Array, "k heads"]

    def limits(self) -> tuple[Float[Array, " heads"], Float[Array, " heads"]]:
        """Per head, the largest score of all, and one that the largest score of every example reaches.

        Every example holds one of the two tokens of each position, and CLS.
        """
        top = jnp.maximum(jnp.max(self.scores, axis=(0, 1)), self.cls_scores)
        return top, jnp.maximum(jnp.max(jnp.min(self.scores, axis=0), axis=0), self.cls_scores)

    def narrow(self) -> Bool[Array, ""]:
        """Whether float32 holds the exponentials of all examples relative to one reference per head."""
        top, floor = self.limits()
        return jnp.all(top - floor < RANGE)

    def rows(self) -> tuple[Float[Array, "tokens columns"], Float[Array, " columns"]]:
        """Numerators and denominators that each token (and CLS) adds, relative to the middle of the limits."""
        top, floor = self.limits()
        reference = jax.lax.stop_gradient((top + floor) / 2)

        def row(scores, values):
            weights = jnp.exp(scores - reference.reshape(1, 1, -1))[..., None, :]
            return jnp.concatenate([weights * values, weights], axis=-2).reshape(scores[..., 0].size, -1)

        tokens = row(self.scores, self.values)
        return tokens, row(self.cls_scores[None, None], self.cls_values[None, None])[0]


def layer_norm(x: Float[Array, " d"], gain: Float[Array, " d"], bias: Float[Array, " d"]) -> Float[Array, " d"]:
    """Centre and scale to unit variance."""
    centred = x - jnp.mean(x)
    return centred * jax.lax.rsqrt(jnp.mean(centred**2) + EPSILON) * gain + bias


def quotients(sums: Float[Array, "m columns"], heads: int) -> Float[Array, "m d"]:
    """Attention outputs from summed numerators and denominators."""
    return (sums[:, :-heads].reshape(len(sums), -1, heads) / sums[:, None, -heads:]).reshape(len(sums), -1)


def sum_rows(table: Table, x: Float[Array, "m tokens"]) -> Float[Array, "m columns"]:
    """Numerators and denominators of all heads for all examples: one product with [1-b, b].

    Good while the table is `narrow`. The cheaper sum_t N_0 + b (N_1 - N_0) cancels and is never used.
    """
    tokens, cls = table.rows()
    return x @ tokens + cls[None]


def mix_by_example(table: Table, x: Float[Array, "m tokens"]) -> Float[Array, "m d"]:
    """Attention outputs one example after the other, each with its own maximum: safe for any scores, and slow."""

    @jax.checkpoint  # so that a derivative keeps no weights, m·T·heads of them
    def one(x: Float[Array, " tokens"]) -> Float[Array, " d"]:
        held = x.reshape(2, -1, 1)
        scores = jnp.concatenate([jnp.sum(held * table.scores, axis=0), table.cls_scores[None]])
        attention = jax.nn.softmax(scores, axis=0)
        values = jnp.sum(held[..., None] * table.values, axis=0)
        return (jnp.sum(attention[:-1, None] * values, axis=0) + attention[-1:] * table.cls_values).reshape(-1)

    return jax.lax.map(one, x)


# The derivative is written out so that a step pays for one of the two forms only: differentiated as it stands, `cond`
# would save the intermediates of both, m·T·heads numbers several times over.
@jax.custom_vjp
def mix(table: Table, x: Float[Array, "m tokens"]) -> Float[Array, "m d"]:
    """Attention outputs of all examples, by one product while that is safe."""
    return _mix_forward(table, x)[0]


def _mix_forward(table: Table, x: Array):
    heads = table.cls_scores.size

    def by_product(table, x):
        sums = sum_rows(table, x)
        return quotients(sums, heads), sums

    def by_example(table, x):
        return mix_by_example(table, x), jnp.zeros((len(x), heads + table.cls_values.size))

    narrow = table.narrow()
    mixed, sums = jax.lax.cond(narrow, by_product, by_example, table, x)
    return mixed, (table, x, sums, narrow)


def _mix_backward(saved, cotangent: Float[Array, "m d"]):
    table, x, sums, narrow = saved

    def by_product(table, x, sums, cotangent):
        heads = table.cls_scores.size
        numerators, denominators = sums[:, :-heads].reshape(len(x), -1, heads), sums[:, None, -heads:]
        to_numerators = cotangent.reshape(numerators.shape) / denominators
        to_denominators = -jnp.sum(to_numerators * (numerators / denominators), axis=1)  # no square: it would overflow
        to_sums = jnp.concatenate([to_numerators.reshape(len(x), -1), to_denominators], axis=1)
        return jax.vjp(Table.rows, table)[1]((x.T @ to_sums, jnp.sum(to_sums, axis=0)))[0]

    def by_example(table, x, sums, cotangent):
        return jax.vjp(lambda table: mix_by_example(table, x), table)[1](cotangent)[0]

    return jax.lax.cond(narrow, by_product, by_example, table, x, sums, cotangent), None


mix.defvjp(_mix_forward, _mix_backward)


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
            raise ValueError(f"BitClassifier got {context_length=}: it reads at least one bit. Give 1 or more.")
        if dim < 1 or heads < 1 or dim % heads:
            raise ValueError(
                f"BitClassifier got {dim=} with {heads=}: every head takes an equal share of the width. "
                f"Choose a width that is a multiple of the number of heads."
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

    def _query(self) -> Float[Array, "heads k"]:
        query = layer_norm(self.cls, self.gain_attention, self.bias_attention) @ self.w_query + self.b_query
        return query.reshape(self.heads, -1) / jnp.sqrt(query.size / self.heads)

    def _read_out(self, attended: Float[Array, " d"]) -> tuple[Float[Array, " d"], Float[Array, ""]]:
        """From the attention output to the residual stream at CLS and the logit."""
        residual = self.cls + attended + self.b_output
        hidden = jax.nn.gelu(layer_norm(residual, self.gain_mlp, self.bias_mlp) @ self.w_up + self.b_up)
        final = layer_norm(residual + hidden @ self.w_down + self.b_down, self.gain_final, self.bias_final)
        return residual, final @ self.w_logit + self.b_logit

    def activations(self, x: Num[Array, " T"] | Bool[Array, " T"]) -> Activations:
        """The plain form: every token of the example is embedded, normed and projected."""
        tokens = jnp.concatenate([self.token[x.astype(int)] + self.position, self.cls[None]])
        normed = jax.vmap(lambda token: layer_norm(token, self.gain_attention, self.bias_attention))(tokens)
        keys = (normed @ self.w_key).reshape(len(tokens), self.heads, -1)
        values = (normed @ self.w_value + self.b_value[None]).reshape(len(tokens), self.heads, -1)
        attention = jax.nn.softmax(jnp.einsum("hk,thk->ht", self._query(), keys), axis=-1)
        residual, logit = self._read_out(jnp.einsum("ht,thk->hk", attention, values).reshape(-1) @ self.w_output)
        return Activations(attention, residual, logit)

    def __call__(self, x: Num[Array, " T"] | Bool[Array, " T"]) -> Float[Array, ""]:
        """Logit of one example."""
        return self.activations(x).output

    def table(self) -> Table:
        r"""Scores and values of all tokens that can occur, up to what softmax cannot see.

        The norm of $x = P_t + E_\beta$ is affine after division by its deviation, so the maps act on $P$ and $E$ apart:
        $\mathrm{LN}(x)W = (\bar P_t W + \bar E_\beta W)/\sigma_{t\beta}$ with bars for centring. The query is folded
        into the key map (d × heads), and the norm's bias shifts all scores alike and all values alike.
        """
        dim, heads = self.cls.size, self.heads
        fold = jnp.einsum("dhk,hk->dh", self.w_key.reshape(dim, heads, -1), self._query())
        maps = self.gain_attention[:, None] * jnp.concatenate([_heads_last(self.w_value, heads), fold], axis=1)
        position, token, cls = (p - jnp.mean(p, axis=-1, keepdims=True) for p in (self.position, self.token, self.cls))

        squares = jnp.sum(position**2, axis=-1)[None] + 2 * token @ position.T + jnp.sum(token**2, axis=-1)[:, None]
        scale = jax.lax.rsqrt(squares / dim + EPSILON)
        mapped = ((position @ maps)[None] + (token @ maps)[:, None]) * scale[:, :, None]
        mapped_cls = cls @ maps * jax.lax.rsqrt(jnp.mean(cls**2) + EPSILON)
        return Table(
            mapped[..., dim:],
            mapped[..., :dim].reshape(*mapped.shape[:-1], -1, heads),
            mapped_cls[dim:],
            mapped_cls[:dim].reshape(-1, heads),
        )

    def logits(self, x: Float[Array, "m tokens"]) -> Float[Array, " m"]:
        """Logits of many examples by the shortcut; `x` is `indicators(bits)`."""
        shift = self.bias_attention @ self.w_value + self.b_value  # the same for all tokens, and weights sum to 1
        mixed = mix(self.table(), x) + _heads_last(shift, self.heads)[None]
        # w_output's rows follow the paper's order, heads first
        rows = self.w_output.reshape(self.heads, -1, self.cls.size).swapaxes(0, 1).reshape(self.cls.size, -1)
        return jax.vmap(self._read_out)(mixed @ rows)[1]


def _heads_last(weights: Float[Array, "*batch d"], heads: int) -> Float[Array, "*batch d"]:
    """Reorder the last axis from (heads, k) to (k, heads)."""
    return weights.reshape(*weights.shape[:-1], heads, -1).swapaxes(-1, -2).reshape(weights.shape)


def indicators(bits: Bool[Array, "m T"]) -> Float[Array, "m tokens"]:
    """[1-b, b]: which of the 2T tokens each example holds."""
    return jnp.concatenate([~bits, bits], axis=1).astype(jnp.float32)
