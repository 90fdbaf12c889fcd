"""Where the attention of a trained classifier goes: mass on given positions, head by head.

Source: edelman2022, Figure 3 (right).
Guarantee: exact on the given examples.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from genscope.models.bit_classifier import BitClassifier


class SupportMass(NamedTuple):
    """Attention on a set of positions, averaged over examples."""

    by_head: Float[Array, " heads"]
    best: Int[Array, ""]  # the head with most mass on the set
    top: Int[Array, " s"]  # positions with most mass in that head, in increasing order


@eqx.filter_jit
def cls_attention(model: BitClassifier, x: Bool[Array, "m T"]) -> Float[Array, "m heads T"]:
    """Attention weights from CLS to the T positions (its own share left out), example by example."""
    return jax.vmap(lambda bits: model.activations(bits).attention[:, :-1])(x)


def support_mass(attention: Float[Array, "m heads T"], support: Int[Array, " s"]) -> SupportMass:
    """Mean mass of each head on the support, the best head, and its favorite positions."""
    mean = jnp.mean(attention, axis=0)
    by_head = jnp.sum(mean[:, support], axis=1)
    best = jnp.argmax(by_head)
    return SupportMass(by_head, best, jnp.sort(jax.lax.top_k(mean[best], len(support))[1]))
