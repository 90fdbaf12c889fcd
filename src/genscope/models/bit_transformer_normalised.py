r"""The two-layer Transformer over bits with layer normalisation, for ablations of its absence.

Source: lintilhac2026, Appendix A ("results did not change qualitatively when we added or removed the layernorm").
Departures: where the layers stood is not said; here after each addition to the stream, as in the standard encoder that
the paper started from: $h\leftarrow\mathrm{LN}(h+\mathrm{attention}(h))$, then
$h\leftarrow\mathrm{LN}(h+\mathrm{perceptron}(h))$, with gain and shift.
Guarantee: exact up to rounding, in the plain form: the shortcut of `bit_transformer_fast` has no normalisation.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from genscope.models.bit_transformer import BitLayer, Bits, BitTransformer

EPSILON = 1e-5  # beside the variance


class NormalisedBitTransformer(eqx.Module):
    """A `BitTransformer` whose stream is normalised after each of its four additions; rows of gain and shift."""

    network: BitTransformer
    gain: Float[Array, "4 d"]
    shift: Float[Array, "4 d"]

    def __init__(self, context_length: int, *, embedding: int = 30, hidden: int = 128, key: Key[Array, ""]):
        self.network = BitTransformer(context_length, embedding=embedding, hidden=hidden, key=key)
        self.gain = jnp.ones((4, self.network.w_read.size))
        self.shift = jnp.zeros((4, self.network.w_read.size))

    def __call__(self, x: Bits) -> Float[Array, ""]:
        """Output for one example, read at the output position."""
        h = self._layer(self.network.first, self.network.tokens(x), 0)
        h = self._layer(self.network.second, h, 2)
        return h[-1] @ self.network.w_read + self.network.b_read

    def outputs(self, x: Bits) -> Float[Array, " B"]:
        """Outputs of a batch."""
        return jax.vmap(self)(x)

    def _layer(self, layer: BitLayer, h: Float[Array, "N d"], place: int) -> Float[Array, "N d"]:
        scores = self.network.scale * (h @ layer.w_query) @ (h @ layer.w_key).T
        h = self._normalised(h + jax.nn.softmax(scores, axis=1) @ (h @ layer.w_value) @ layer.w_output, place)
        return self._normalised(h + layer.perceptron(h), place + 1)

    def _normalised(self, h: Float[Array, "N d"], place: int) -> Float[Array, "N d"]:
        centred = h - jnp.mean(h, axis=1, keepdims=True)
        scale = jax.lax.rsqrt(jnp.mean(centred**2, axis=1, keepdims=True) + EPSILON)
        return centred * scale * self.gain[place][None] + self.shift[place][None]
