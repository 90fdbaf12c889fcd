r"""Trained Transformers over tokens: the public code's scaled attention, the text's separate projections, and the
theory's full query-key matrix, each drawn at random.

Source: mousavi2025, its public code; Section 3 and Appendix E (one layer, q heads, head network of width 100); Appendix
A.1.
Departures: the code knows one head; with q heads each has its own input and output projections, and the head network
reads their outputs side by side, as in the theory. The text fixes no initialization: separate projections have the
code's law, the full query-key matrix is uniform within $\pm\sqrt{3/D}$, Glorot's law.
Guarantee: exact up to rounding, padded or not. The fast forms are in `token_attention_fast`.

Shapes: B prompts of N tokens of dimension D, H heads.
"""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from genscope.models import _drawing
from genscope.models.mousavi2025 import Real, TokenTransformer, TwoLayer, attend
from genscope.refusal import Refusal

Used = Bool[Array, " D"] | None


class AttentionActivations(NamedTuple):
    """Attention from each token to each, the heads' projected outputs side by side, the predictions."""

    attention: Float[Array, "H N N"]
    mixture: Float[Array, "N inputs"]
    output: Float[Array, " N"]


class ScaledTokenTransformer(eqx.Module):
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
    ) -> "ScaledTokenTransformer":
        r"""The public code's laws: input projection within $\pm\sqrt{6/(4D)}$, its biases and the output's 0, all other
        weights and biases within $\pm1/\sqrt{\text{fan-in}}$. `used` marks the entries of a token that are not padding.
        """
        _check_sizes("ScaledTokenTransformer", dim, heads, hidden)
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

    def activations(self, z: Float[Array, "N D"], real: Real = None) -> AttentionActivations:
        """All intermediates for one prompt."""
        n, d = z.shape
        heads = len(self.w_in)
        projected = z @ self.w_in.reshape(-1, d).T
        projected = projected + jnp.broadcast_to(self.b_in.reshape(-1), projected.shape)
        queries, keys, values = jnp.moveaxis(projected.reshape(n, heads, 3, d), 2, 0)
        scale = 1 / jnp.sqrt(self.width.astype(z.dtype))
        attention = attend(jnp.einsum("ihd,jhd->hij", queries * scale, keys), real)
        mixed = jnp.einsum("hij,jhd->ihd", attention, values)
        output = jnp.einsum("nhd,hed->nhe", mixed, self.w_out)
        output = (output + jnp.broadcast_to(self.b_out, output.shape)).reshape(n, heads * d)
        return AttentionActivations(attention, output, self.readout(output))

    def __call__(self, z: Float[Array, "N D"], real: Real = None) -> Float[Array, " N"]:
        """One prediction for each token."""
        return self.activations(z, real).output

    def outputs(self, z: Float[Array, "B N D"], real: Real = None) -> Float[Array, "B N"]:
        """Predictions for a batch of prompts, by the exact shortcut."""
        from genscope.models.token_attention_fast import outputs

        return outputs(self, z, real)

    def query_key(self) -> Float[Array, "H D D"]:
        r"""$W_Q^\top W_K$ of each head, without the scale: query rows, key columns."""
        return _query_key(self.w_in)


class ProjectedTokenTransformer(eqx.Module):
    r"""The attention of Section 3 as it is printed: $\mathrm{softmax}_j(\langle W_Qz_i,W_Kz_j\rangle)$ on values
    $W_Vz_j$, without root, biases or output projection; a two-layer network reads the heads.
    """

    w_in: Float[Array, "H 3 D D"]  # queries, keys, values; rows give, columns read
    readout: TwoLayer

    @classmethod
    def draw(
        cls,
        key: Key[Array, ""],
        *,
        dim: int,
        heads: int = 1,
        hidden: int = 100,
        output_bias: bool = False,
        used: Used = None,
    ) -> "ProjectedTokenTransformer":
        """Weights by the laws of the public code."""
        _check_sizes("ProjectedTokenTransformer", dim, heads, hidden)
        drawn = _drawing.uniforms(key, w_in=(heads, 3, dim, dim), **_drawing.two_layer_shapes(heads * dim, hidden))
        return cls(
            w_in=_square(jnp.sqrt(1.5 / _drawing.count(used, dim)) * drawn["w_in"], used),
            readout=_drawing.two_layer(drawn, output_bias=output_bias, reads=_side_by_side(used, heads)),
        )

    def activations(self, z: Float[Array, "N D"], real: Real = None) -> AttentionActivations:
        """All intermediates for one prompt."""
        queries, keys, values = jnp.einsum("hpkd,nd->phnk", self.w_in, z)
        attention = attend(jnp.einsum("hid,hjd->hij", queries, keys), real)
        mixture = jnp.einsum("hij,hjd->ihd", attention, values).reshape(len(z), -1)
        return AttentionActivations(attention, mixture, self.readout(mixture))

    def __call__(self, z: Float[Array, "N D"], real: Real = None) -> Float[Array, " N"]:
        """One prediction for each token."""
        return self.activations(z, real).output

    def outputs(self, z: Float[Array, "B N D"], real: Real = None) -> Float[Array, "B N"]:
        """Predictions for a batch of prompts, by the exact shortcut."""
        from genscope.models.token_attention_fast import projected_outputs

        return projected_outputs(self, z, real)

    def query_key(self) -> Float[Array, "H D D"]:
        r"""$W_Q^\top W_K$ of each head: query rows, key columns."""
        return _query_key(self.w_in)


def draw_full(
    key: Key[Array, ""],
    *,
    dim: int,
    heads: int = 1,
    hidden: int = 100,
    output_bias: bool = False,
    used: Used = None,
) -> TokenTransformer:
    """The theory's Transformer with random weights."""
    _check_sizes("draw_full", dim, heads, hidden)
    drawn = _drawing.uniforms(key, w_qk=(heads, dim, dim), **_drawing.two_layer_shapes(heads * dim, hidden))
    w_qk = _square(jnp.sqrt(3 / _drawing.count(used, dim)) * drawn["w_qk"], used)
    readout = _drawing.two_layer(drawn, output_bias=output_bias, reads=_side_by_side(used, heads))
    return TokenTransformer(w_qk, readout)


def _query_key(w_in: Float[Array, "H 3 D D"]) -> Float[Array, "H D D"]:
    return jnp.einsum("hkd,hke->hde", w_in[:, 0], w_in[:, 1])


def _square(weight: Float[Array, "... D D"], used: Used) -> Float[Array, "... D D"]:
    return _drawing.only(_drawing.only(weight, used, -1), used, -2)


def _side_by_side(used: Used, heads: int) -> Bool[Array, " inputs"] | None:
    return None if used is None else jnp.tile(used, heads)


def _check_sizes(name: str, dim: int, heads: int, hidden: int) -> None:
    if min(dim, heads, hidden) < 1:
        raise Refusal(f"{name} got {dim=}, {heads=}, {hidden=}: all must be at least 1. Increase the one that is not.")
