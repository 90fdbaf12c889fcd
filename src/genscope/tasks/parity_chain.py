r"""Parity with its intermediate steps: uniform bits and the running parity of those at a support.

Source: lintilhac2026, Theorem 7 and Appendix G: $y_t=x_t\oplus y_{t-1}$, $y_{-1}=0$, for all T bits.
Departures: parities of some of the bits, $y_t=y_{t-1}$ at the others: the parity of all bits does not change when
positions are exchanged, which makes it easier than most.
Guarantee: exact.

Inputs are booleans of shape [T]; labels are the T running parities, 0 and 1 in float32. The last one is the answer.
"""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, Num

from genscope.random import biased_bits
from genscope.refusal import Refusal
from genscope.tasks._base import AbstractTask
from genscope.tasks._support import draw_support


class ParityChain(AbstractTask):
    """Running parities of the bits where `relevant`."""

    relevant: Bool[Array, " T"]
    context_length: int = eqx.field(static=True)

    def __check_init__(self):
        if self.relevant.shape != (self.context_length,):
            raise Refusal(
                f"ParityChain got relevant of shape {self.relevant.shape} with context_length={self.context_length}: "
                "it must say of every position whether it is relevant. Give one truth value for each, or use "
                "ParityChain.at."
            )

    @classmethod
    def at(cls, support: Sequence[int] | Int[np.ndarray, " s"], *, context_length: int) -> "ParityChain":
        """The parity of the bits at given positions."""
        positions = np.asarray(support, int)
        inside = positions.ndim == 1 and positions.size and ((positions >= 0) & (positions < context_length)).all()
        if not inside or len(np.unique(positions)) < len(positions):
            raise Refusal(
                f"ParityChain.at got support={positions.tolist()} with {context_length=}: the support must be a list "
                f"of distinct positions from 0 to {context_length - 1}, at least one. Correct the positions."
            )
        return cls(jnp.zeros(context_length, bool).at[positions].set(True), context_length)

    @classmethod
    def draw(cls, key: Key[Array, ""], *, context_length: int, support_size: int | None = None) -> "ParityChain":
        """The parity of a uniform support; of all bits without a `support_size`."""
        size = context_length if support_size is None else support_size
        support = draw_support(key, context_length=context_length, support_size=size)
        return cls(jnp.zeros(context_length, bool).at[support].set(True), context_length)

    def inputs(self, key: Key[Array, ""], size: int) -> Bool[Array, "size T"]:
        """Uniform bits."""
        return biased_bits(key, (size, self.context_length), 0.5)

    def target(self, x: Bool[Array, " T"]) -> Float[Array, " T"]:
        """The running parities."""
        return (jnp.cumsum(x & self.relevant, dtype=jnp.int32) % 2).astype(jnp.float32)


def prompts(x: Bool[Array, "... T"], chain: Num[Array, "... T"]) -> Bool[Array, "... positions"]:
    r"""Bits and, from position T on, $0,y_0,\dots,y_{T-2}$: what every step sees when all earlier ones were right."""
    written = jnp.concatenate([jnp.zeros_like(x[..., :1]), chain[..., :-1] > 0.5], axis=-1)
    return jnp.concatenate([x, written], axis=-1)
