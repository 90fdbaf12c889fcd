r"""The explicit network of Fourier components: attention, ReLU wave, attention read at the output position.

Source: lintilhac2026, Appendix B (B.2 for random projections); Theorems 5 and 13.
Departures: the residual after the perceptron keeps the positions and drops the bit, $R=\mathrm{diag}(1,\dots,1,0)$,
where the paper adds the whole input: its bit would spoil the result. Several heads in the second attention, an output
bias, and a constant token with bit 1, for coefficients of both signs. Thresholds are stored as $\vartheta=-b$.
Guarantee: exact up to rounding; no score is divided by a root, there is no layer normalization.

Shapes: T bits, N positions (T, the output position, and the one-token where there is one), d = N + 1 token (or d' + 1
with a projection), m ReLU units, H heads of the second attention. Fields and letters: `score` A, `key` K, `value` V,
`expand` E, `threshold` -b, `contract` F, `select` W_2, `readout` w, `bias` b_0.
"""

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, Integer

from genscope.refusal import Refusal


class Projection(eqx.Module):
    r"""Random positions $J\in\mathbb R^{N\times d'}$ with entries $N(0,1/d')$; fixed, so known by its seed alone."""

    dim: int = eqx.field(static=True)
    seed: int = eqx.field(static=True)

    def __check_init__(self):
        if self.dim < 1 or self.seed < 0:
            raise Refusal(
                f"Projection got dim={self.dim} and seed={self.seed}: dim must be at least 1, and the seed must not be "
                "negative. Correct the one that is out of range."
            )

    def positions(self, count: int, dtype: jnp.dtype) -> Float[Array, "N e"]:
        """J, the same in every precision."""
        drawn = jr.normal(jr.key(self.seed), (count, self.dim), jnp.float32)
        return drawn.astype(dtype) / math.sqrt(self.dim)


class FourierActivations(NamedTuple):
    """Attention from each position to each, the perceptron's units, its result, the second attention, the output."""

    attention: Float[Array, "N N"]
    hidden: Float[Array, "N m"]
    state: Float[Array, "N d"]
    selection: Float[Array, "H N"]
    output: Float[Array, ""]


class FourierTransformer(eqx.Module):
    r"""$L=XAKX^\top$, $Y=\mathrm{softmax}(L)XV$, $Z=XR+\mathrm{relu}(YE^\top+b)F^\top$, and at the output position o
    $f=b_0+\sum_h\sum_j\mathrm{softmax}_j(Z_oW_2^{(h)}Z_j^\top)\,Z_jw^{(h)}$.

    With vectors for `expand` and `contract` ("minimal") the perceptron reads and writes the bit's coordinate, the last,
    alone; with matrices ("full") every entry is a parameter. Everything that is an array is a parameter.
    """

    score: Float[Array, "d d"]
    key: Float[Array, "d d"]
    value: Float[Array, "d d"]
    expand: Float[Array, "m d"] | Float[Array, " m"]
    threshold: Float[Array, " m"]
    contract: Float[Array, "d m"] | Float[Array, " m"]
    select: Float[Array, "H d d"]
    readout: Float[Array, "H d"]
    bias: Float[Array, ""] | None
    context_length: int = eqx.field(static=True)
    one_token: bool = eqx.field(static=True, default=False)
    projection: Projection | None = None

    def __check_init__(self):
        dim = 1 + (self.positions if self.projection is None else self.projection.dim)
        units, heads = self.threshold.shape[0], self.readout.shape[0]
        shapes = {
            "score": ((dim, dim),),
            "key": ((dim, dim),),
            "value": ((dim, dim),),
            "expand": ((units, dim), (units,)),
            "threshold": ((units,),),
            "contract": ((dim, units), (units,)),
            "select": ((heads, dim, dim),),
            "readout": ((heads, dim),),
        }
        for name, allowed in shapes.items():
            if (shape := getattr(self, name).shape) not in allowed:
                raise Refusal(
                    f"FourierTransformer got {name} of shape {shape} for {self.context_length} bits: it must be "
                    f"{' or '.join(map(str, allowed))}. Make the sizes agree."
                )

    @property
    def positions(self) -> int:
        """N: the bits, the output position, and the one-token."""
        return self.context_length + 1 + self.one_token

    def tokens(self, x: Bool[Array, " T"] | Integer[Array, " T"]) -> Float[Array, "N d"]:
        """Position and bit of each token; the output position has bit 0, the one-token bit 1."""
        dtype = self.score.dtype
        constants = jnp.asarray([0, 1][: 1 + self.one_token], dtype)
        bits = jnp.concatenate([x.astype(dtype), constants])
        where = jnp.eye(self.positions, dtype=dtype)
        if self.projection is not None:
            where = self.projection.positions(self.positions, dtype)
        return jnp.concatenate([where, bits[:, None]], axis=1)

    def activations(self, x: Bool[Array, " T"] | Integer[Array, " T"]) -> FourierActivations:
        """All intermediates for one input."""
        tokens = self.tokens(x)
        attention = jax.nn.softmax((tokens @ (self.score @ self.key)) @ tokens.T, axis=-1)
        mixture = attention @ (tokens @ self.value)
        read = mixture[:, -1:] * self.expand[None] if self.expand.ndim == 1 else mixture @ self.expand.T
        hidden = jax.nn.relu(read - self.threshold[None])
        kept = tokens.at[:, -1].set(0)  # R
        if self.contract.ndim == 1:
            state = kept.at[:, -1].set(hidden @ self.contract)
        else:
            state = kept + hidden @ self.contract.T
        query = state[self.context_length]
        selection = jax.nn.softmax(jnp.einsum("d,hde,ne->hn", query, self.select, state), axis=-1)
        output = jnp.einsum("hn,nd,hd->", selection, state, self.readout)
        if self.bias is not None:
            output = output + self.bias
        return FourierActivations(attention, hidden, state, selection, output)

    def __call__(self, x: Bool[Array, " T"] | Integer[Array, " T"]) -> Float[Array, ""]:
        """The output for one input of bits."""
        return self.activations(x).output
