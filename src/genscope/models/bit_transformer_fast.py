r"""The exact shortcut of the two-layer Transformer over bits: a batch by tables of the 2N tokens that exist.

Guarantee: exact; `outputs` equals `jax.vmap(model)` in value and gradient up to rounding, whatever the weights.

A token is [one-hot position; embedding of its bit], so layer 1 knows 2N tokens, and each of its maps splits into a part
of the position and a part of the bit. With $p_i$ the attention of position i and $b$ the bits, the stream after
attention is affine in the N + 2 numbers $(p_i,\ p_i^\top b,\ b_i)$, and everything linear that follows is folded into
tables. Layer 2 has one query: it needs the stream of the other positions only through products with a vector and
through weighted sums, so the second map of layer 1's perceptron is never applied to them.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from genscope.models.bit_transformer import Bits, BitTransformer, checked


def outputs(model: BitTransformer, x: Bits, read: Int[Array, " B"] | None = None) -> Float[Array, " B"]:
    """Outputs of a batch. Arrays have the batch last, which is what vectorizes."""
    bits = checked(x, (x.shape[0], len(model.position_ids) - 1)).T.astype(model.bit.dtype)
    bits = jnp.concatenate([bits, jnp.zeros_like(bits[:1])])
    seen = None if read is None else jnp.arange(len(bits), dtype=read.dtype)[:, None] <= read[None]
    features = _features(model, bits, seen)
    base, maps = _tables(model)
    one, two = model.first, model.second
    folded = (maps @ one.w_up).T @ features.reshape(len(features), -1)
    offset = (base @ one.w_up + one.b_up[None]).T[..., None]
    hidden = jax.nn.relu(folded.reshape(-1, *bits.shape) + offset)
    base = base + one.b_down[None]  # the stream at i is now base_i + maps' features_i + w_down' hidden_i

    def stream_of(weights: Float[Array, "N B"]) -> Float[Array, "d B"]:
        """The weighted sum of the positions' streams."""
        return (
            base.T @ weights
            + maps.T @ jnp.sum(features * weights[None], axis=1)
            + one.w_down.T @ jnp.sum(hidden * weights[None], axis=1)
        )

    if read is None:
        h = base[-1][:, None] + maps.T @ features[:, -1] + one.w_down.T @ hidden[:, -1]
    else:
        h = stream_of(jax.nn.one_hot(read, len(bits), dtype=bits.dtype, axis=0))
    direction = model.scale * two.w_key @ (two.w_query.T @ h)
    scores = (
        base @ direction
        + jnp.sum(features * (maps @ direction)[:, None], axis=0)
        + jnp.sum(hidden * (one.w_down @ direction)[:, None], axis=0)
    )
    h = h + two.w_output.T @ (two.w_value.T @ stream_of(_softmax(scores, seen)))
    h = h + two.perceptron(h.T).T
    return model.w_read @ h + model.b_read


def _features(
    model: BitTransformer, bits: Float[Array, "N B"], seen: Bool[Array, "N B"] | None
) -> Float[Array, "features N B"]:
    """Of each position: its attention to the N positions, its attention to ones, and its own bit."""
    query, query_step = _by_token(model, model.first.w_query)
    key, key_step = _by_token(model, model.scale * model.first.w_key)
    # Scores of key j (first axis) for query i are affine in b_i, in b_j and in their product.
    of_key = (query @ key_step)[:, None] + (query_step @ key_step) * bits
    scores = (key @ query.T)[..., None] + (key @ query_step)[:, None, None] * bits[None]
    scores = scores + bits[:, None] * of_key[None]
    attention = _softmax(scores, None if seen is None else seen[:, None])
    ones = jnp.sum(attention * bits[:, None], axis=0, keepdims=True)
    return jnp.concatenate([attention, ones, bits[None]])


def _tables(model: BitTransformer) -> tuple[Float[Array, "N d"], Float[Array, "features d"]]:
    """The stream after the first attention, affine in the features: offset by position, and linear map."""
    value, value_step = _by_token(model, model.first.w_value @ model.first.w_output)
    own, own_step = _by_token(model, jnp.eye(model.w_read.size, dtype=model.bit.dtype))
    # Attention sums to 1, so the bit 0 that is in every row of `value` counts once.
    return own, jnp.concatenate([value, value_step[None], own_step[None]])


def _by_token(model: BitTransformer, weights: Float[Array, "d n"]) -> tuple[Float[Array, "N n"], Float[Array, " n"]]:
    """Images of the tokens with bit 0, and what bit 1 adds."""
    split = model.w_read.size - model.bit.shape[1]
    by_bit = model.bit @ weights[split:]
    return weights[np.asarray(model.position_ids)] + by_bit[:1], by_bit[1] - by_bit[0]


def _softmax(scores: Float[Array, "N ..."], seen: Bool[Array, "N ..."] | None) -> Float[Array, "N ..."]:
    """Over the first axis, among the keys that are seen."""
    return jax.nn.softmax(scores if seen is None else jnp.where(seen, scores, -jnp.inf), axis=0)
