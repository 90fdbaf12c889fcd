r"""The explicit network of a chain of thought: two attentions over cyclic positions around a ReLU perceptron.

Source: lintilhac2026, Theorem 16 and Appendix G.
Departures: as in `models.lintilhac2026` the residual keeps the positions and drops the bit, and thresholds are stored
as $\vartheta=-b$. Positions may have short codes (`frequencies`). The paper does not say whether a position sees those
after it; both kinds are here (`causal`).
Guarantee: exact up to rounding; no score is divided by a root, there is no layer normalization.

Shapes: T bits, 2T positions with ids 0, ..., T-1, 0, ..., T-1, d = D + 1 (code of the id, bit), m ReLU units. Codes are
one-hot (D = T), or D = 2K cosines and sines of K frequencies, which are no parameters. The bits fill
the first half; the second half holds 0 and the chain so far. At step t position T + t is the last one, and is read.
"""

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Num

from genscope.refusal import Refusal

Bits = Bool[Array, " positions"] | Num[Array, " positions"]
Step = Int[Array, ""] | int


class ChainActivations(NamedTuple):
    """Attention, what the perceptron writes, the second attention of the position that is read, and its output."""

    attention: Float[Array, "positions positions"]
    state: Float[Array, "positions d"]
    selection: Float[Array, " positions"]
    output: Float[Array, ""]


class ChainTransformer(eqx.Module):
    r"""$L=XAKX^\top$, $Y=\mathrm{softmax}(L)XV$, $Z=XR+\mathrm{relu}(YE^\top+b)F^\top$ and, at the last position o,
    $f=\sum_j\mathrm{softmax}_j(Z_oW_2Z_j^\top)\,Z_jw$.

    Positions after the last are not there yet; with `causal`, no position sees one after it.
    """

    score: Float[Array, "d d"]
    key: Float[Array, "d d"]
    value: Float[Array, "d d"]
    expand: Float[Array, "m d"]
    threshold: Float[Array, " m"]
    contract: Float[Array, "d m"]
    select: Float[Array, "d d"]
    readout: Float[Array, " d"]
    causal: bool = eqx.field(static=True, default=False)
    frequencies: tuple[int, ...] = eqx.field(static=True, default=())
    coded_length: int = eqx.field(static=True, default=0)  # T where positions have short codes

    @property
    def context_length(self) -> int:
        """T."""
        return self.coded_length if self.frequencies else self.readout.shape[0] - 1

    def codes(self) -> Float[Array, "T D"]:
        """The codes of the ids, each of length 1."""
        length, dtype = self.context_length, self.readout.dtype
        if not self.frequencies:
            return jnp.eye(length, dtype=dtype)
        turns = jnp.arange(length)[:, None] * jnp.asarray(self.frequencies)[None] % length
        angle = 2 * jnp.pi * turns.astype(dtype) / length
        return jnp.concatenate([jnp.cos(angle), jnp.sin(angle)], axis=1) / math.sqrt(len(self.frequencies))

    def activations(self, bits: Bits, step: Step) -> ChainActivations:
        """All intermediates of one step, for the bits and the chain so far; what comes later is not looked at."""
        length = self.context_length
        if bits.shape != (2 * length,):
            raise Refusal(
                f"ChainTransformer got bits of shape {bits.shape}: it has 2T = {2 * length} positions, for the bits "
                "and the chain. Fill positions that are not yet written with zeros."
            )
        where = jnp.tile(self.codes(), (2, 1))
        tokens = jnp.concatenate([where, bits.astype(where.dtype)[:, None]], axis=1)
        place = jnp.arange(2 * length)
        seen = jnp.broadcast_to(place <= length + step, (2 * length, 2 * length))
        if self.causal:
            seen = seen & (place[None] <= place[:, None])
        scores = (tokens @ (self.score @ self.key)) @ tokens.T
        attention = jax.nn.softmax(jnp.where(seen, scores, -jnp.inf), axis=-1)
        hidden = jax.nn.relu(attention @ (tokens @ self.value) @ self.expand.T - self.threshold[None])
        state = tokens.at[:, -1].set(0) + hidden @ self.contract.T
        selected = state @ (state[length + step] @ self.select)
        selection = jax.nn.softmax(jnp.where(place <= length + step, selected, -jnp.inf))
        return ChainActivations(attention, state, selection, selection @ (state @ self.readout))

    def __call__(self, bits: Bits, step: Step) -> Float[Array, ""]:
        """The output of one step, near the next bit of the chain."""
        return self.activations(bits, step).output

    def answer(self, x: Bool[Array, " T"]) -> Bool[Array, " T"]:
        """The chain for one input, each bit written by the network itself; the last one is the parity."""
        length = self.context_length

        def write(bits, step):
            value = self(bits, step) > 0.5
            return bits.at[length + step + 1].set(value, mode="drop"), value  # no step reads the last one

        start = jnp.concatenate([x, jnp.zeros(length, bool)])
        return jax.lax.scan(write, start, jnp.arange(length))[1]
