"""Several classifiers over bits at once, on one batch: the exact shortcut with the examples' tokens shared.

The tables of all classifiers stand one above the other, so that the attention of all of them over a batch is one
product with the examples' tokens, which is what a step spends most of its time on.

Guarantee: exact; `outputs` of a stack equals the outputs of its classifiers one by one in value and gradient, up to
rounding, whatever the weights.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from genscope.models.bit_classifier import BitClassifier, Initialisation
from genscope.models.bit_classifier_fast import (
    Rows,
    Table,
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


def _by_product(tables: Table, rows: Rows, x: Array) -> tuple[Array, Array]:
    sums = jax.vmap(Rows.sums, in_axes=(0, None))(rows, x)
    return jax.vmap(lambda each: quotients(each, tables.cls.shape[-1]))(sums), sums


def _narrow(tables: Table) -> Array:
    return jnp.all(jax.vmap(Table.narrow)(tables))


def _by_example(tables: Table, x: Array) -> Array:
    return jax.lax.map(lambda each: mix_by_example(each, x), tables)


# As in the shortcut of one classifier, the derivative is written out: `vmap` of that one would compute both of its
# forms, of which one is slow.
@jax.custom_vjp
def mix(tables: Table, x: Float[Array, "m tokens"]) -> Float[Array, "runs d m"]:
    """Attention outputs of all classifiers on all examples, by one product while that is safe for each of them."""
    return jax.lax.cond(
        _narrow(tables),
        lambda tables, x: _by_product(tables, jax.vmap(Table.rows)(tables), x)[0],
        _by_example,
        *(tables, x),
    )


def _mix_forward(tables: Table, x: Array):
    narrow, rows = _narrow(tables), jax.vmap(Table.rows)(tables)

    def by_example(tables, rows, x):
        return _by_example(tables, x), jnp.zeros((len(tables.cls), tables.cls[0].size, len(x)))

    mixed, sums = jax.lax.cond(narrow, _by_product, by_example, tables, rows, x)
    return mixed, (tables, x, rows, sums, narrow)


def _mix_backward(saved, cotangent: Float[Array, "runs d m"]):
    tables, x, rows, sums, narrow = saved

    def by_product(tables, x, rows, sums, cotangent):
        return jax.vmap(mix_gradient, in_axes=(0, None, 0, 0, 0))(tables, x, rows, sums, cotangent)

    def by_example(tables, x, rows, sums, cotangent):
        return jax.vjp(lambda tables: _by_example(tables, x), tables)[1](cotangent)[0]

    return jax.lax.cond(narrow, by_product, by_example, tables, x, rows, sums, cotangent), None


mix.defvjp(_mix_forward, _mix_backward)
