"""Random supports: uniform sets of positions, cheap to compile and to draw at any context length.

Source: Bentley and Floyd 1987 (sampling without replacement).
Guarantee: every set of positions has the same probability up to a relative error of s T / 2^32.
"""

import functools

import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Int32, Key

from genscope.refusal import Refusal


def draw_support(key: Key[Array, ""], *, context_length: int, support_size: int) -> Int32[Array, " s"]:
    """A uniform subset of `support_size` positions out of `context_length`, in increasing order."""
    if not 0 <= support_size <= context_length:
        raise Refusal(
            f"draw got {support_size=} with {context_length=}: the support is a set of positions, so 0 <= support_size "
            f"<= {context_length}. Choose a smaller support or a longer context."
        )
    if support_size == 0:
        return jnp.zeros(0, jnp.int32)
    return _floyd(key, jnp.asarray(context_length, dtype="int32"), support_size)


@functools.partial(jax.jit, static_argnums=2)  # one compilation for all context lengths
def _floyd(key: Key[Array, ""], context_length: Int32[Array, ""], support_size: int) -> Int32[Array, " s"]:
    """At step i pick one of the first T-s+i+1 positions; if it is taken, take the last of them instead."""
    last = context_length - support_size + jnp.arange(support_size)
    picks = (jr.bits(key, (support_size,), "uint32") % (last + 1).astype("uint32")).astype("int32")

    def step(i, chosen):
        return chosen.at[i].set(jnp.where(jnp.any(chosen == picks[i]), last[i], picks[i]))

    return jnp.sort(jax.lax.fori_loop(0, support_size, step, jnp.full(support_size, -1)))
