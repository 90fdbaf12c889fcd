r"""The law that shows why q heads are needed: half of the tokens are silent, and ask for the same q of the others.

Source: mousavi2025, Propositions 4 and 21: $x_i\sim\mathcal N(0,I_d)$ for $i\le N/2$ and 0 beyond; beyond,
$t_i=(1,\dots,q)$ and $y_i=\frac1{\sqrt{qd}}\sum_{j\le q}(\|x_j\|^2-d)$. (The proof of Proposition 4 has the halves the
wrong way round.)
Departures: tokens of the first half ask for q silent ones, so that their labels are 0 and predicting 0 has risk 1.
Guarantee: exact.

One input is the tokens [N, d]; what they ask for is fixed. `encode` gives the rows that a network reads.
"""

import math

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Int, Key

from genscope.refusal import Refusal
from genscope.tasks._base import AbstractTask
from genscope.tasks.links import SquaredNorm
from genscope.tasks.token_encoding import rademacher_encoding


class SilentHalf(AbstractTask):
    """Sums of squared norms of the first q tokens, asked for by the silent half."""

    encoding: Float[Array, "N d_e"]
    sparsity: int = eqx.field(static=True)
    dim: int = eqx.field(static=True)

    def __check_init__(self):
        n = self.encoding.shape[-2]
        if n % 2 or not 1 <= self.sparsity <= n // 2 or self.dim < 1:
            raise Refusal(
                f"SilentHalf got {n} tokens, sparsity={self.sparsity}, dim={self.dim}: the number of tokens must be "
                "even, half of them must hold the q that are asked for, and dim must be at least 1. Correct the one "
                "that is not."
            )

    @classmethod
    def draw(
        cls,
        key: Key[Array, ""],
        *,
        context_length: int,
        sparsity: int,
        dim: int,
        encoding_dim: int,
        max_correlation: float | None = None,
    ) -> "SilentHalf":
        """Random encodings."""
        sizes = {"tokens": context_length, "dim": encoding_dim, "max_correlation": max_correlation}
        return cls(rademacher_encoding(key, **sizes), sparsity, dim)

    @property
    def context_length(self) -> int:
        """The number N of tokens."""
        return self.encoding.shape[-2]

    @property
    def positions(self) -> Int[np.ndarray, "N q"]:
        """What each token asks for: the first q, or of the first half the first q silent ones."""
        half = self.context_length // 2
        first = np.where(np.arange(self.context_length) < half, half, 0)
        return first[:, None] + np.arange(self.sparsity)

    def inputs(self, key: Key[Array, ""], size: int) -> Float[Array, "size N d"]:
        """Normal tokens, then silent ones."""
        half = self.context_length // 2
        x = jr.normal(key, (size * half * self.dim,)).reshape(size, half, self.dim)
        return jnp.concatenate([x, jnp.zeros_like(x)], axis=1)

    def target(self, x: Float[Array, "N d"]) -> Float[Array, " N"]:
        """0 in the first half, the centered sum of squares in the second."""
        half = self.context_length // 2
        value = SquaredNorm(self.sparsity, self.dim)(x[: self.sparsity])
        return jnp.where(jnp.arange(self.context_length) < half, 0, value)

    def encode(self, x: Float[Array, "N d"]) -> Float[Array, "N D"]:
        r"""$z_i=(x_i,\sqrt{d/q}(\omega_i,\omega_{t_{i1}},\dots,\omega_{t_{iq}}))$."""
        marks = math.sqrt(self.dim / self.sparsity) * self.encoding
        asked = marks[self.positions].reshape(self.context_length, -1)
        return jnp.concatenate([x, marks, asked], axis=1)
