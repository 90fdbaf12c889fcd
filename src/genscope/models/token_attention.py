r"""Trained Transformers over tokens: the scaled attention of the experiments, and the theory's form, drawn at random.

Source: mousavi2025, Appendix E (one layer, q heads, head network of width 100) and its public code.
Departures: the code knows one head; with q heads each has its own input and output projections, and the head network
reads their outputs side by side, as in the theory. The text fixes no initialisation of the full query-key matrix; it
is uniform within $\pm\sqrt{3/D}$ here, Glorot's law.
Guarantee: exact up to rounding, padded or not.

Shapes: B prompts of N tokens of dimension D, H heads.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from genscope.models import _drawing
from genscope.models.mousavi2025 import Transformer, TwoLayer, attend

Real = Bool[Array, " N"] | None
Used = Bool[Array, " D"] | None
LANES = 4  # products are fastest where their widths are multiples of this


class AttentionActivations(NamedTuple):
    """Attention from each token to each, the heads' projected outputs side by side, the predictions."""

    attention: Float[Array, "B H N N"]
    mixture: Float[Array, "B N inputs"]
    output: Float[Array, "B N"]


class TokenTransformer(eqx.Module):
    r"""Scaled attention with biases, $\mathrm{softmax}_j(\langle q_i,k_j\rangle/\sqrt D)$; each head sees the whole
    token, mixes values and projects them, and a two-layer network reads the heads.
    """

    w_in: Float[Array, "H 3 D D"]  # queries, keys, values; rows give, columns read
    b_in: Float[Array, "H 3 D"]
    w_out: Float[Array, "H D D"]
    b_out: Float[Array, "H D"]
    readout: TwoLayer
    width: Int[Array, ""]  # D without padding; an integer, so that training leaves it alone

    @classmethod
    def draw(
        cls,
        key: Key[Array, ""],
        *,
        dim: int,
        heads: int = 1,
        hidden: int = 100,
        output_bias: bool = True,
        used: Used = None,
    ) -> "TokenTransformer":
        r"""The public code's laws: input projection within $\pm\sqrt{6/(4D)}$, its biases and the output's 0, all other
        weights and biases within $\pm1/\sqrt{\text{fan-in}}$. `used` marks the entries of a token that are not padding.
        """
        _check_sizes("TokenTransformer", dim, heads, hidden)
        width = _drawing.count(used, dim)
        shapes = {"w_in": (heads, 3, dim, dim), "w_out": (heads, dim, dim)}
        drawn = _drawing.uniforms(key, **shapes, **_drawing.two_layer_shapes(heads * dim, hidden))
        return cls(
            w_in=_square(jnp.sqrt(1.5 / width) * drawn["w_in"], used),
            b_in=jnp.zeros((heads, 3, dim)),
            w_out=_square(drawn["w_out"] / jnp.sqrt(width), used),
            b_out=jnp.zeros((heads, dim)),
            readout=_drawing.two_layer(drawn, output_bias=output_bias, reads=_side_by_side(used, heads)),
            width=width.astype("int32"),
        )

    def activations(self, z: Float[Array, "B N D"], real: Real = None) -> AttentionActivations:
        """All intermediates for a batch of prompts."""
        b, n, d = z.shape
        heads = len(self.w_in)
        projected = z @ self.w_in.reshape(-1, d).T
        projected = projected + jnp.broadcast_to(self.b_in.reshape(-1), projected.shape)
        queries, keys, values = jnp.moveaxis(projected.reshape(b, n, heads, 3, d), 3, 0)
        scale = 1 / jnp.sqrt(self.width.astype(z.dtype))
        attention = attend(jnp.einsum("bihd,bjhd->bhij", queries * scale, keys), real)
        mixed = jnp.einsum("bhij,bjhd->bihd", attention, values)
        output = jnp.einsum("bnhd,hed->bnhe", mixed, self.w_out)
        output = (output + jnp.broadcast_to(self.b_out, output.shape)).reshape(b, n, heads * d)
        return AttentionActivations(attention, output, self.readout(output))

    def batch(self, z: Float[Array, "B N D"], real: Real = None) -> Float[Array, "B N"]:
        r"""Predictions for a batch of prompts, by fewer products than `activations` and equal to it.

        Nothing but the softmax stands between the projections, so that weights can be multiplied before they meet the
        tokens. With a 1 appended to each token, $\bar z=(z,1)$, and biases to the weights as a last column, the scores
        are $\langle\bar z_i,\bar W_Q^\top W_Kz_j\rangle$ and what is constant in j, which softmax ignores; attention
        sums to 1, so the head network reads $WW_O\bar W_V\sum_j\alpha_{ij}\bar z_j$ and a constant, which is a share of
        the appended 1. All products are on $\bar z$ alone, filled up with zeros: odd widths cost a fifth more time.
        """
        b, n, d = z.shape
        heads, rows = len(self.w_in), b * n
        after = -(d + 1) % LANES  # zeros behind the appended 1
        e = d + 1 + after
        extended = jnp.pad(jnp.pad(z, ((0, 0), (0, 0), (0, 1)), constant_values=1), ((0, 0), (0, 0), (0, after)))
        w_q, w_k, w_v = jnp.moveaxis(self.w_in, 1, 0)
        b_q, _, b_v = jnp.moveaxis(self.b_in, 1, 0)[..., None]
        w_q, w_v = (_wider(jnp.concatenate(parts, axis=2), after) for parts in ((w_q, b_q), (w_v, b_v)))
        scale = 1 / jnp.sqrt(self.width.astype(z.dtype))
        score = scale * jnp.einsum("hkd,hke->dhe", w_q, _wider(w_k, e - d))
        reader = self.readout.weight.reshape(-1, heads, d)
        outer = jnp.einsum("mhe,hed->mhd", reader, self.w_out)
        constant = jnp.einsum("mhe,he->mh", reader, self.b_out) + self.readout.bias[:, None] / heads
        values = jnp.einsum("mhd,hde->mhe", outer, w_v) + jnp.pad(constant[..., None], ((0, 0), (0, 0), (d, after)))
        # One product for all heads of a prompt, the contracted axis last on the left: the orientation that is fast.
        queries = (extended.reshape(rows, e) @ score.reshape(e, heads * e)).reshape(b, n, heads, e)
        queries = queries.swapaxes(1, 2).reshape(b, heads * n, e)
        attention = attend(jnp.einsum("bid,bjd->bij", queries, extended), real)
        mixed = (attention @ extended).reshape(b, heads, n, e).swapaxes(1, 2)
        hidden = jax.nn.relu(mixed.reshape(rows, -1) @ values.reshape(-1, heads * e).T)
        output = (hidden @ self.readout.outer).reshape(b, n)
        return output if self.readout.offset is None else output + self.readout.offset

    def __call__(self, z: Float[Array, "N D"], real: Real = None) -> Float[Array, " N"]:
        """Predictions for one prompt."""
        return self.batch(z[None], real)[0]

    def query_key(self) -> Float[Array, "H D D"]:
        r"""$W_Q^\top W_K$ of each head, without the scale: query rows, key columns."""
        return jnp.einsum("hkd,hke->hde", self.w_in[:, 0], self.w_in[:, 1])


def draw_full(
    key: Key[Array, ""],
    *,
    dim: int,
    heads: int = 1,
    hidden: int = 100,
    output_bias: bool = False,
    used: Used = None,
) -> Transformer:
    """The theory's Transformer with random weights."""
    _check_sizes("draw_full", dim, heads, hidden)
    drawn = _drawing.uniforms(key, w_qk=(heads, dim, dim), **_drawing.two_layer_shapes(heads * dim, hidden))
    w_qk = _square(jnp.sqrt(3 / _drawing.count(used, dim)) * drawn["w_qk"], used)
    readout = _drawing.two_layer(drawn, output_bias=output_bias, reads=_side_by_side(used, heads))
    return Transformer(w_qk, readout)


def _wider(weight: Float[Array, "H k D"], columns: int) -> Float[Array, "H k wider"]:
    return jnp.pad(weight, ((0, 0), (0, 0), (0, columns)))


def _square(weight: Float[Array, "... D D"], used: Used) -> Float[Array, "... D D"]:
    return _drawing.only(_drawing.only(weight, used, -1), used, -2)


def _side_by_side(used: Used, heads: int) -> Bool[Array, " inputs"] | None:
    return None if used is None else jnp.tile(used, heads)


def _check_sizes(name: str, dim: int, heads: int, hidden: int) -> None:
    if min(dim, heads, hidden) < 1:
        raise ValueError(f"{name} got {dim=}, {heads=}, {hidden=}: each counts something. Give at least 1.")
