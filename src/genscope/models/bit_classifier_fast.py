"""The exact shortcut of the classifier over bits: a batch without looking at a token twice.

There are 2T tokens and CLS, so their scores and values are a table, and what each adds to the numerator and the
denominator of a head is one more: attention over a batch is one product with the examples' tokens.

Guarantee: exact; `outputs` equals `jax.vmap(model)` in value and gradient up to rounding, whatever the weights.
"""

import functools
import operator
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Num

from genscope.models.bit_classifier import EPSILON, BitClassifier, centre, total

RANGE = 80.0  # between a head's largest score and the least maximum of an example: e^40 and e^-40 are safe float32


class TokenTable(NamedTuple):
    """Scores and values of the 2T tokens that exist, and of CLS: the parts of a head are its k values, then its score.

    Tokens are kept in factors, scale · (position + token). Positions come last, which is what vectorizes.
    """

    position: Float[Array, "parts heads T"]
    token: Float[Array, "parts heads 2"]
    scale: Float[Array, "2 T"]
    cls: Float[Array, "parts heads"]

    def columns(self) -> Float[Array, "parts heads 2 T"]:
        """The tokens multiplied out."""
        return self.scale[None, None] * (self.position[:, :, None] + self.token[..., None])

    @property
    def scores(self) -> Float[Array, "2 T heads"]:
        """Scores of the tokens."""
        return jnp.moveaxis(self.columns()[-1], 0, -1)

    @property
    def cls_scores(self) -> Float[Array, " heads"]:
        """Scores of CLS."""
        return self.cls[-1]

    def limits(self) -> tuple[Float[Array, " heads"], Float[Array, " heads"]]:
        """Per head, the largest score of all, and one that the largest score of every example reaches.

        Every example holds one of the two tokens of each position, and CLS.
        """
        zero, one = jnp.unstack(self.columns()[-1], axis=1)
        top, floor = jnp.max(jnp.maximum(zero, one), axis=1), jnp.max(jnp.minimum(zero, one), axis=1)
        return jnp.maximum(top, self.cls_scores), jnp.maximum(floor, self.cls_scores)

    def narrow(self) -> Bool[Array, ""]:
        """Whether float32 holds the exponentials of all examples relative to one reference per head."""
        top, floor = self.limits()
        return jnp.all(top - floor < RANGE)

    def rows(self) -> "Rows":
        """What each token (and CLS) adds, relative to the middle of the limits."""
        top, floor = self.limits()
        reference = (top + floor)[:, None, None] / 2

        def row(columns: Float[Array, "parts heads b t"]) -> Float[Array, "parts heads b t"]:
            weights = jnp.exp(columns[-1] - reference)[None]
            return jnp.concatenate([weights * columns[:-1], weights])

        return Rows(row(self.columns()), row(self.cls[..., None, None])[..., 0, 0])


class Rows(NamedTuple):
    """Numerators and, as the last part, denominator that tokens and CLS add to each head."""

    tokens: Float[Array, "parts heads 2 T"]
    cls: Float[Array, "parts heads"]

    def sums(self, x: Float[Array, "m tokens"]) -> Float[Array, "columns m"]:
        """Of all examples: one product with [1-b, b]."""
        return self.tokens.reshape(-1, x.shape[1]) @ x.T + self.cls.reshape(-1, 1)


def added(x: Float[Array, "parts heads n"]) -> Float[Array, "heads n"]:
    """Sum over a short first axis, term by term: XLA fuses that with its surroundings, but not a reduction."""
    return functools.reduce(operator.add, jnp.unstack(x))


def quotients(sums: Float[Array, "columns m"], heads: int) -> Float[Array, "d m"]:
    """Attention outputs from summed numerators and denominators."""
    numerators = sums[:-heads].reshape(-1, heads, sums.shape[1])
    return (numerators / sums[None, -heads:]).reshape(-1, sums.shape[1])


def sum_rows(table: TokenTable, x: Float[Array, "m tokens"]) -> Float[Array, "columns m"]:
    """Numerators and denominators of all heads for all examples.

    Good while the table is `narrow`. The cheaper sum_t N_0 + b (N_1 - N_0) cancels and is never used.
    """
    return table.rows().sums(x)


def mix_by_example(table: TokenTable, x: Float[Array, "m tokens"]) -> Float[Array, "d m"]:
    """Attention outputs one example after the other, each with its own maximum: safe for any scores, and slow."""
    zero, one = jnp.unstack(table.columns(), axis=2)

    @jax.checkpoint  # so that a derivative keeps no weights, m·T·heads of them
    def outputs(x: Float[Array, " tokens"]) -> Float[Array, " d"]:
        is_zero, is_one = x.reshape(2, 1, 1, -1)
        held = jnp.concatenate([is_zero * zero + is_one * one, table.cls[..., None]], axis=-1)
        return jnp.einsum("ht,kht->kh", jax.nn.softmax(held[-1], axis=-1), held[:-1]).reshape(-1)

    return jax.lax.map(outputs, x).T


# The derivative is written out so that a step pays for one of the two forms only: differentiated as it stands, `cond`
# would save the intermediates of both, m·T·heads numbers several times over. It also passes over the rows less often.
@jax.custom_vjp
def mix(table: TokenTable, x: Float[Array, "m tokens"]) -> Float[Array, "d m"]:
    """Attention outputs of all examples, by one product while that is safe."""

    def by_product(table: TokenTable, x: Array) -> Array:
        return quotients(sum_rows(table, x), table.cls.shape[1])

    return jax.lax.cond(table.narrow(), by_product, mix_by_example, table, x)


def _mix_forward(table: TokenTable, x: Array):
    narrow, rows = table.narrow(), table.rows()

    def by_product(table, rows, x):
        sums = rows.sums(x)
        return quotients(sums, table.cls.shape[1]), sums

    def by_example(table, rows, x):
        return mix_by_example(table, x), jnp.zeros((table.cls.size, len(x)))

    mixed, sums = jax.lax.cond(narrow, by_product, by_example, table, rows, x)
    return mixed, (table, x, rows, sums, narrow)


def _mix_backward(saved, cotangent: Float[Array, "d m"]):
    table, x, rows, sums, narrow = saved

    def by_example(table, x, rows, sums, cotangent):
        return jax.vjp(lambda table: mix_by_example(table, x), table)[1](cotangent)[0]

    return jax.lax.cond(narrow, mix_gradient, by_example, table, x, rows, sums, cotangent), None


def mix_gradient(
    table: TokenTable,
    x: Float[Array, "m tokens"],
    rows: Rows,
    sums: Float[Array, "columns m"],
    cotangent: Float[Array, "d m"],
    product: Callable[[Array, Array], Array] = jnp.matmul,
) -> TokenTable:
    """Derivative of the attention outputs by one product, of a matrix with the examples' tokens."""
    sums = sums.reshape(*table.cls.shape, -1)
    to_numerators = cotangent.reshape(sums[:-1].shape) / sums[-1:]
    to_denominators = -added(to_numerators * (sums[:-1] / sums[-1:]))  # no square: it would overflow
    to_sums = jnp.concatenate([to_numerators, to_denominators[None]])
    return _to_table(table, rows, product(to_sums.reshape(-1, len(x)), x).reshape(rows.tokens.shape), total(to_sums))


def _to_table(
    table: TokenTable, rows: Rows, to_tokens: Float[Array, "parts heads 2 T"], to_cls: Float[Array, "parts heads"]
) -> TokenTable:
    """Derivative of `TokenTable.rows`: from the rows to the factors of the table, with the reference held fixed.

    Written out, one bit after the other: differentiated by JAX it takes three times as long, in sums that do not fuse.
    """

    def of_bit(b: int):
        weights, scale, to_row = rows.tokens[-1, :, b], table.scale[None, b], to_tokens[:, :, b]
        unscaled = table.position + table.token[:, :, b, None]
        inner = added(to_row[:-1] * unscaled[:-1])
        to_scores = weights * (to_row[-1] + scale * inner)
        to_unscaled = jnp.concatenate([to_row[:-1] * (scale * weights)[None], (scale * to_scores)[None]])
        return to_unscaled, jnp.sum(weights * inner + to_scores * unscaled[-1], axis=0)

    (zero, to_scale_zero), (one, to_scale_one) = of_bit(0), of_bit(1)
    to_cls_scores = jnp.sum(to_cls * rows.cls, axis=0)  # the weight is a factor of every part
    return TokenTable(
        zero + one,
        jnp.stack([total(zero), total(one)], axis=-1),
        jnp.stack([to_scale_zero, to_scale_one]),
        jnp.concatenate([to_cls[:-1] * rows.cls[-1:], to_cls_scores[None]]),
    )


mix.defvjp(_mix_forward, _mix_backward)


def table(model: BitClassifier) -> TokenTable:
    r"""Scores and values of all tokens that can occur, up to what softmax cannot see.

    The norm of $x = P_t + E_\beta$ is affine after division by its deviation, so the maps act on $P$ and $E$ apart:
    $\mathrm{LN}(x)W = (\bar P_t W + \bar E_\beta W)/\sigma_{t\beta}$ with bars for centering. The query is folded
    into the key map (d × heads), and the norm's bias shifts all scores alike and all values alike.
    """
    dim, heads = model.cls.size, model.heads
    fold = jnp.einsum("dhk,hk->hd", model.w_key.reshape(dim, heads, -1), model.query())
    values = model.w_value.reshape(dim, heads, -1).transpose(2, 1, 0)
    maps = model.gain_attention[None, None] * jnp.concatenate([values, fold[None]])
    position, token, cls = centre(model.position), centre(model.token), centre(model.cls)
    squares = total(position**2)[None] + 2 * token @ position.T + total(token**2)[:, None]
    return TokenTable(
        jnp.einsum("khd,td->kht", maps, position),
        jnp.einsum("khd,bd->khb", maps, token),
        jax.lax.rsqrt(squares / dim + EPSILON),
        maps @ cls * jax.lax.rsqrt(total(cls**2) / dim + EPSILON),
    )


def indicators(bits: Bool[Array, "m T"]) -> Float[Array, "m tokens"]:
    """[1-b, b]: which of the 2T tokens each example holds."""
    return jnp.concatenate([~bits, bits], axis=1).astype(jnp.float32)


def outputs(model: BitClassifier, x: Num[Array, "m T"] | Bool[Array, "m T"]) -> Float[Array, " m"]:
    """Logits of a batch."""
    return outputs_of_indicators(model, indicators(x.astype(bool)).astype(model.cls.dtype))


def outputs_of_indicators(model: BitClassifier, x: Float[Array, "m tokens"]) -> Float[Array, " m"]:
    """Logits of the examples whose `indicators` are given: who trains on a batch makes them once."""
    return read_out(model, mix(table(model), x))


def read_out(model: BitClassifier, mixed: Float[Array, "d m"]) -> Float[Array, " m"]:
    """Logits from the attention outputs."""
    shift = model.bias_attention @ model.w_value + model.b_value  # the same for all tokens, and weights sum to 1
    mixed = mixed + _heads_last(shift, model.heads)[:, None]
    # w_output's rows follow the paper's order, heads first
    rows = model.w_output.reshape(model.heads, -1, model.cls.size).swapaxes(0, 1).reshape(model.cls.size, -1)
    return jax.vmap(model.read_out)(mixed.T @ rows)[1]


def _heads_last(weights: Float[Array, "*batch d"], heads: int) -> Float[Array, "*batch d"]:
    """Reorder the last axis from (heads, k) to (k, heads)."""
    return weights.reshape(*weights.shape[:-1], heads, -1).swapaxes(-1, -2).reshape(weights.shape)
