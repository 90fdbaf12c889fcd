r"""The exact shortcuts of attention over tokens, scaled or only projected: a batch of prompts by fewer products.

Nothing but the softmax stands between the projections, so that weights can be multiplied before they meet the tokens.
With a 1 appended to each token, $\bar z=(z,1)$, and biases to the weights as a last column, the scores are
$\langle\bar z_i,\bar W_Q^\top W_Kz_j\rangle$ and what is constant in j, which softmax ignores; attention sums to 1, so
the head network reads $WW_O\bar W_V\sum_j\alpha_{ij}\bar z_j$ and a constant, which is a share of the appended 1. All
products are on $\bar z$ alone, filled up with zeros: odd widths cost a fifth more time.

Guarantee: exact; `outputs` equals `jax.vmap(model)` in value and gradient up to rounding, padded or not.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from genscope.models.mousavi2025 import Real, TwoLayer, attend
from genscope.models.token_attention import ProjectedTokenTransformer, ScaledTokenTransformer

LANES = 4  # products are fastest where their widths are multiples of this


def outputs(model: ScaledTokenTransformer, z: Float[Array, "B N D"], real: Real = None) -> Float[Array, "B N"]:
    """Predictions for a batch of prompts."""
    d = z.shape[2]
    heads = len(model.w_in)
    after = -(d + 1) % LANES  # zeros behind the appended 1
    e = d + 1 + after
    w_q, w_k, w_v = jnp.moveaxis(model.w_in, 1, 0)
    b_q, _, b_v = jnp.moveaxis(model.b_in, 1, 0)[..., None]
    w_q, w_v = (_wider(jnp.concatenate(parts, axis=2), after) for parts in ((w_q, b_q), (w_v, b_v)))
    scale = 1 / jnp.sqrt(model.width.astype(z.dtype))
    score = scale * jnp.einsum("hkd,hke->dhe", w_q, _wider(w_k, e - d))
    reader = model.readout.weight.reshape(-1, heads, d)
    outer = jnp.einsum("mhe,hed->mhd", reader, model.w_out)
    constant = jnp.einsum("mhe,he->mh", reader, model.b_out) + model.readout.bias[:, None] / heads
    values = jnp.einsum("mhd,hde->mhe", outer, w_v) + jnp.pad(constant[..., None], ((0, 0), (0, 0), (d, after)))
    return _read(model.readout, score, values, z, real)


def projected_outputs(
    model: ProjectedTokenTransformer, z: Float[Array, "B N D"], real: Real = None
) -> Float[Array, "B N"]:
    """Predictions for a batch of prompts."""
    d = z.shape[2]
    heads = len(model.w_in)
    after = -(d + 1) % LANES
    w_q, w_k, w_v = jnp.moveaxis(model.w_in, 1, 0)
    score = jnp.einsum("hkd,hke->dhe", _wider(w_q, 1 + after), _wider(w_k, 1 + after))
    values = jnp.einsum("mhd,hde->mhe", model.readout.weight.reshape(-1, heads, d), _wider(w_v, 1 + after))
    constant = jnp.broadcast_to(model.readout.bias[:, None, None] / heads, (*values.shape[:2], 1))
    return _read(model.readout, score, values + jnp.pad(constant, ((0, 0), (0, 0), (d, after))), z, real)


def _read(
    readout: TwoLayer,
    score: Float[Array, "e H e"],
    values: Float[Array, "m H e"],
    z: Float[Array, "B N D"],
    real: Real,
) -> Float[Array, "B N"]:
    r"""Predictions from $\bar W_Q^\top W_K$ and $WW_O\bar W_V$, filled up."""
    b, n, d = z.shape
    e, heads, _ = score.shape
    rows = b * n
    extended = jnp.pad(jnp.pad(z, ((0, 0), (0, 0), (0, 1)), constant_values=1), ((0, 0), (0, 0), (0, e - d - 1)))
    # One product for all heads of a prompt, the contracted axis last on the left: the orientation that is fast.
    queries = (extended.reshape(rows, e) @ score.reshape(e, heads * e)).reshape(b, n, heads, e)
    queries = queries.swapaxes(1, 2).reshape(b, heads * n, e)
    attention = attend(jnp.einsum("bid,bjd->bij", queries, extended), real)
    mixed = (attention @ extended).reshape(b, heads, n, e).swapaxes(1, 2)
    hidden = jax.nn.relu(mixed.reshape(rows, -1) @ values.reshape(-1, heads * e).T)
    output = (hidden @ readout.outer).reshape(b, n)
    return output if readout.offset is None else output + readout.offset


def _wider(weight: Float[Array, "H k D"], columns: int) -> Float[Array, "H k wider"]:
    return jnp.pad(weight, ((0, 0), (0, 0), (0, columns)))
