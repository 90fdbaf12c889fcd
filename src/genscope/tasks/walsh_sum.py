r"""Random sparse Fourier–Walsh expansions of one degree, on uniform bits.

Source: lintilhac2026, Section 2.1 (degree k, s components, coefficients $|N(0,1)|$).
Departures: coefficients are scaled to length 1, as in `fourier.walsh`: the paper's "centered with variance 1" is a
property of the function.
Guarantee: exact; every list of distinct supports has the same probability up to a relative error of s T / 2^32 each.

Inputs are booleans of shape [T]; labels are float32. Components are kept as sets of positions, row by row, so that
functions of one sparsity can be stacked and drawn inside jit whatever their degrees.
"""

import math
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from genscope.fourier import WalshFunction
from genscope.random import biased_bits, stream
from genscope.refusal import Refusal
from genscope.tasks._base import AbstractTask
from genscope.tasks._support import draw_support


class WalshSum(AbstractTask):
    r"""$c+\sum_i\alpha_i\chi_{S_i}(x)$, where row i of `members` marks $S_i$."""

    members: Bool[Array, "s T"]
    coefficients: Float[Array, " s"]
    constant: Float[Array, ""]

    @classmethod
    def draw(
        cls,
        key: Key[Array, ""],
        *,
        context_length: int,
        degree: int,
        sparsity: int,
        basis: Literal["chi", "phi"] = "chi",
    ) -> "WalshSum":
        r"""A random function: distinct uniform supports of `degree` positions, positive coefficients of length 1.

        Basis "chi" gives mean 0 and variance 1. Basis "phi" has the components $\varphi_S=(1+\chi_S)/2$ instead.
        """
        sets = math.comb(context_length, degree) if 1 <= degree <= context_length else 0
        if not 1 <= sparsity <= sets or basis not in ("chi", "phi"):
            raise Refusal(
                f"WalshSum.draw got {degree=}, {sparsity=}, {basis=} with {context_length=}: supports must be "
                f"different sets of `degree` positions, of which there are {sets}, and the basis 'chi' or 'phi'. "
                "Reduce the sparsity, or change the degree."
            )
        members = _distinct(stream(key, "supports"), context_length, degree, sparsity)
        sizes = jnp.abs(jr.normal(stream(key, "coefficients"), (sparsity,)))
        sizes = sizes / jnp.sqrt(jnp.sum(sizes**2))
        if basis == "phi":
            return cls(members, sizes / 2, jnp.sum(sizes) / 2)
        return cls(members, sizes, jnp.zeros(()))

    @classmethod
    def of(cls, function: WalshFunction) -> "WalshSum":
        """The task of learning a given function."""
        chi = function.to_chi()
        members = np.zeros((len(chi.supports), chi.dim), bool)
        for row, support in zip(members, chi.supports, strict=True):
            row[list(support)] = True
        return cls(jnp.asarray(members), jnp.asarray(chi.coefficients, jnp.float32), jnp.float32(chi.constant))

    @property
    def context_length(self) -> int:
        """The number of bits."""
        return self.members.shape[-1]

    def function(self) -> WalshFunction:
        """The target, in the basis of characters."""
        supports = [tuple(np.flatnonzero(row).tolist()) for row in np.asarray(self.members)]
        order = sorted(range(len(supports)), key=supports.__getitem__)
        values = np.asarray(self.coefficients, float)
        return WalshFunction(
            self.context_length,
            tuple(supports[i] for i in order),
            tuple(float(values[i]) for i in order),
            "chi",
            float(self.constant),
        )

    def inputs(self, key: Key[Array, ""], size: int) -> Bool[Array, "size T"]:
        """Independent uniform bits."""
        return biased_bits(key, (size, self.context_length), 0.5)

    def target(self, x: Bool[Array, " T"]) -> Float[Array, ""]:
        """The sum of the signed coefficients."""
        if x.shape != (self.context_length,):
            raise Refusal(
                f"WalshSum.target got an input of shape {x.shape}: one example has {self.context_length} bits. Use "
                "jax.vmap for several examples, or change the length."
            )
        ones = self.members.astype(jnp.float32) @ x.astype(jnp.float32)  # counts below 2^24 are exact
        odd = (ones.astype(jnp.int32) % 2).astype(jnp.float32)
        return self.constant + self.coefficients @ (1 - 2 * odd)


@eqx.filter_jit
def _distinct(key: Key[Array, ""], context_length: int, degree: int, sparsity: int) -> Bool[Array, "s T"]:
    """Rows are drawn again as long as they repeat an earlier one.

    The result is uniform, since the rule treats all sets of positions alike: exchanging two of them everywhere leaves
    the law of the draws as it is, hence that of the result.
    """

    def rows(round_key: Key[Array, ""]) -> Bool[Array, "s T"]:
        def row(key: Key[Array, ""]) -> Bool[Array, " T"]:
            support = draw_support(key, context_length=context_length, support_size=degree)
            return jnp.zeros(context_length, bool).at[support].set(True)

        return jax.vmap(row)(jr.split(round_key, sparsity))

    def repeated(members: Bool[Array, "s T"]) -> Bool[Array, " s"]:
        same = jnp.all(members[:, None] == members[None], axis=-1)
        return jnp.any(jnp.tril(same, -1), axis=1)

    def again(state):
        round_number, members = state
        fresh = rows(jr.fold_in(key, round_number))
        return round_number + 1, jnp.where(repeated(members)[:, None], fresh, members)

    start = (jnp.int32(1), rows(jr.fold_in(key, 0)))
    return jax.lax.while_loop(lambda state: jnp.any(repeated(state[1])), again, start)[1]
