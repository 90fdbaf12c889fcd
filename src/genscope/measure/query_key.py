r"""Whether a trained Transformer over tokens does what the construction does: the block of its query-key matrix, and
the attention that falls on the token that is asked for.

Source: mousavi2025, Figure 2 and Lemma 11 (its proof, (A.2)).
Departures: the picture becomes three numbers, each beside its value for a matrix without structure.
Guarantee: exact for the block; for the attention, exact on the given prompts.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from genscope.refusal import Refusal


class BlockShare(NamedTuple):
    """How much of a query-key matrix lies in the block of the construction, and on that block's diagonal."""

    block: Float[Array, ""]
    diagonal: Float[Array, ""]
    identity: Float[Array, ""]
    mean_diagonal: Float[Array, ""]
    block_chance: float
    diagonal_chance: float


def block_share(query_key: Float[Array, "D D"], *, dim: int, encoding_dim: int, slot: int = 0) -> BlockShare:
    r"""$\|B\|_F^2/\|M\|_F^2$, $\|\mathrm{diag}B\|^2/\|B\|_F^2$ and $(\mathrm{tr}B)^2/(d_e\|B\|_F^2)$, where B has the
    rows of $\omega_{t_j}$, j the `slot`, and the columns of $\omega_i$.

    The last is the share of the block that the nearest $\alpha I$ explains: 1 less the squared relative distance.
    """
    size = query_key.shape[0]
    start = dim + (slot + 1) * encoding_dim
    if start + encoding_dim > size or slot < 0:
        raise Refusal(
            f"block_share got a matrix of {size} rows with {dim=}, {encoding_dim=}, {slot=}: a token consists of dim "
            "numbers, its own encoding and one encoding per slot. Give the sizes of the task."
        )
    block = query_key[start : start + encoding_dim, dim : dim + encoding_dim]
    inside, diagonal = jnp.sum(block**2), jnp.diag(block)
    return BlockShare(
        inside / jnp.sum(query_key**2),
        jnp.sum(diagonal**2) / inside,
        jnp.sum(diagonal) ** 2 / (encoding_dim * inside),
        jnp.mean(diagonal),
        (encoding_dim / size) ** 2,
        1 / encoding_dim,
    )


def attention_mass(attention: Float[Array, "B H N N"], t: Int[Array, "B N q"]) -> Float[Array, "H q"]:
    """Mean attention of each head from i to the j-th position that i asks for."""
    picked = jnp.take_along_axis(attention[:, :, :, None], t[:, None, :, :, None], axis=4)[..., 0]
    return jnp.mean(picked, axis=(0, 2))
