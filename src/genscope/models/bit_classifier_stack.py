"""Several classifiers over bits at once, on one batch: the exact shortcut with the examples' tokens shared.

The tables of all classifiers stand one above the other, so that the attention of all of them over a batch is one
product with the examples' tokens, which is what a step spends most of its time on.

Guarantee: exact; `outputs` of a stack equals the outputs of its classifiers one by one in value and gradient, up to
rounding, whatever the weights.
"""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from genscope.models.bit_classifier import BitClassifier, Initialisation, total
from genscope.models.bit_classifier_fast import (
    Rows,
    TokenTable,
    indicators,
    mix_by_example,
    mix_gradient,
    quotients,
    read_out,
    table,
)

Stack = BitClassifier  # whose arrays have one more axis in front, one entry per classifier


def stack(
    context_length: int, keys: Key[Array, " runs"], *, dim: int = 64, heads: int = 16, initialisation: Initialisation
) -> Stack:
    """One classifier for each key."""
    return eqx.filter_vmap(
        lambda key: BitClassifier(context_length, dim=dim, heads=heads, initialisation=initialisation, key=key)
    )(keys)


def member(models: Stack, number: int | Int[Array, ""]) -> BitClassifier:
    """One of the classifiers."""
    return jax.tree.map(lambda leaf: leaf[number] if eqx.is_array(leaf) else leaf, models)


def outputs(models: Stack, x: Any) -> Float[Array, "runs m"]:
    """Logits of all classifiers on a batch of bit strings."""
    return outputs_of_indicators(models, indicators(x.astype(bool)).astype(models.cls.dtype))


def outputs_of_indicators(models: Stack, x: Float[Array, "m tokens"]) -> Float[Array, "runs m"]:
    """Logits of all classifiers on the examples whose `indicators` are given."""
    mixed = mix(eqx.filter_vmap(table)(models), x)
    return eqx.filter_vmap(read_out)(models, mixed)


CONDITION = 300.0  # up to which the half product loses less than three digits of float32's seven


def _by_product(tables: TokenTable, rows: Rows, x: Array) -> tuple[Array, Array]:
    return _quotients(tables, jax.vmap(Rows.sums, in_axes=(0, None))(rows, x))


def _by_half_product(tables: TokenTable, rows: Rows, x: Array) -> tuple[Array, Array]:
    """As if all bits were 0, and a product with those that are not."""
    zero, one = rows.tokens[..., 0, :], rows.tokens[..., 1, :]
    if_zero = (rows.cls + total(zero)).reshape(len(zero), -1, 1)
    return _quotients(tables, (one - zero).reshape(len(zero), -1, zero.shape[-1]) @ _ones(x).T + if_zero)


def _quotients(tables: TokenTable, sums: Float[Array, "runs columns m"]) -> tuple[Array, Array]:
    return jax.vmap(lambda each: quotients(each, tables.cls.shape[-1]))(sums), sums


def _ones(x: Float[Array, "m tokens"]) -> Float[Array, "m T"]:
    return x[:, x.shape[1] // 2 :]


def _half_product(columns: Float[Array, "columns m"], x: Float[Array, "m tokens"]) -> Float[Array, "columns tokens"]:
    one = columns @ _ones(x)
    return jnp.concatenate([total(columns)[:, None] - one, one], axis=1)


def _form(tables: TokenTable, rows: Rows) -> Int[Array, ""]:
    """Which form is right for all classifiers: 0 the half product, 1 the whole one, 2 example by example.

    The half product subtracts what bits would add if they were 0. What is left of a denominator is at least the sum of
    the smaller weights of each position: the condition number compares it with the sum of the larger ones.
    """
    weights, cls = rows.tokens[:, -1], rows.cls[:, -1]
    condition = (total(weights.max(axis=2)) + cls) / (total(weights.min(axis=2)) + cls)
    narrow = jnp.all(jax.vmap(TokenTable.narrow)(tables))
    return jnp.where(narrow, jnp.where(jnp.all(condition < CONDITION), 0, 1), 2)


def _by_example(tables: TokenTable, x: Array) -> Array:
    return jax.lax.map(lambda each: mix_by_example(each, x), tables)


# As in the shortcut of one classifier, the derivative is written out: `vmap` of that one would compute both of its
# forms, of which one is slow.
@jax.custom_vjp
def mix(tables: TokenTable, x: Float[Array, "m tokens"]) -> Float[Array, "runs d m"]:
    """Attention outputs of all classifiers on all examples, by one product while that is safe for each of them."""
    return _mix_forward(tables, x)[0]


def _mix_forward(tables: TokenTable, x: Array):
    rows = jax.vmap(TokenTable.rows)(tables)
    form = _form(tables, rows)

    def by_example(tables, rows, x):
        return _by_example(tables, x), jnp.zeros((len(tables.cls), tables.cls[0].size, len(x)))

    mixed, sums = jax.lax.switch(form, [_by_half_product, _by_product, by_example], tables, rows, x)
    return mixed, (tables, x, rows, sums, form)


def _mix_backward(saved, cotangent: Float[Array, "runs d m"]):
    tables, x, rows, sums, form = saved

    def by(product):
        def gradient(tables, x, rows, sums, cotangent):
            of_one = partial(mix_gradient, product=product)
            return jax.vmap(of_one, in_axes=(0, None, 0, 0, 0))(tables, x, rows, sums, cotangent)

        return gradient

    def by_example(tables, x, rows, sums, cotangent):
        return jax.vjp(lambda tables: _by_example(tables, x), tables)[1](cotangent)[0]

    forms = [by(_half_product), by(jnp.matmul), by_example]
    return jax.lax.switch(form, forms, tables, x, rows, sums, cotangent), None


mix.defvjp(_mix_forward, _mix_backward)
