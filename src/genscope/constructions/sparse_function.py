"""A sparse function: its support and its values at all patterns of those bits; what a construction represents.

Source: edelman2022, Section 5 (s-sparse, symmetric, monotone functions).
Guarantee: exact; real values, at most 12 positions, since weights and verification list all 2^s patterns.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from jaxtyping import Float

from genscope.fourier import parse, points
from genscope.refusal import Refusal
from genscope.tasks.sparse_boolean import AbstractSparseBoolean

LARGEST_SUPPORT = 12
Vector = Float[np.ndarray, "_"]


@dataclass(frozen=True, eq=False)
class SparseFunction:
    """f(b) = `values[i]`, where the bits at `support` are the digits of i, the first position being the lowest."""

    support: tuple[int, ...]
    values: Float[np.ndarray, " entries"]
    context_length: int

    def __post_init__(self) -> None:
        size, length = len(self.support), self.context_length
        inside = all(0 <= position < length for position in self.support)
        if length < 1 or not inside or len(set(self.support)) < size:
            raise Refusal(
                f"SparseFunction got support={list(self.support)} with context_length={length}: the support must be a "
                "list of distinct positions from 0 to context_length - 1. Correct the positions or lengthen the "
                "context."
            )
        if size > LARGEST_SUPPORT:
            raise Refusal(
                f"SparseFunction got {size} relevant positions: it lists all 2^s patterns, so at most "
                f"{LARGEST_SUPPORT} positions are allowed. Choose a function of fewer variables."
            )
        if self.values.shape != (2**size,) or not np.isfinite(self.values).all():
            raise Refusal(
                f"SparseFunction got values of shape {self.values.shape} for {size} positions: it needs a finite value "
                f"at each of the 2^{size} = {2**size} patterns. Give that many finite numbers."
            )

    @classmethod
    def parse(cls, text: str, *, context_length: int) -> Self:
        """The function of a Boolean expression, on the variables that it really depends on.

        >>> SparseFunction.parse("x2 & ~x2 | x5", context_length=8).support
        (5,)
        """
        support, table = parse(text, context_length).reduced
        return cls(support, table.astype(float), context_length)

    @classmethod
    def of(cls, task: AbstractSparseBoolean) -> Self:
        """The target of a task."""
        support = tuple(int(position) for position in np.asarray(task.support))
        return cls(support, task.truth_table().astype(float), task.context_length)

    @classmethod
    def symmetric(cls, support: Sequence[int], levels: Sequence[float] | Vector, *, context_length: int) -> Self:
        """The function g(n) of the number n of ones at the support, from g(0), ..., g(s)."""
        if len(levels) != len(support) + 1:
            raise Refusal(
                f"SparseFunction.symmetric got {len(levels)} levels for {len(support)} positions: it needs one for "
                "each number of ones, 0 to s. Give one more level than positions."
            )
        values = np.asarray(levels, float)[points(len(support)).sum(axis=1)]
        return cls(tuple(support), values, context_length)

    @classmethod
    def threshold(cls, support: Sequence[int], least: int, *, context_length: int) -> Self:
        """1 if at least so many of the bits at the support are 1."""
        levels = [float(ones >= least) for ones in range(len(support) + 1)]
        return cls.symmetric(support, levels, context_length=context_length)

    @property
    def support_size(self) -> int:
        """Number s of relevant positions."""
        return len(self.support)

    @property
    def levels(self) -> Float[np.ndarray, " weights"] | None:
        """g(0), ..., g(s) if the function is g of the number of ones, else None."""
        ones = points(self.support_size).sum(axis=1)
        levels = self.values[2 ** np.arange(self.support_size + 1) - 1]  # the patterns 0, 1, 11, 111, ...
        return levels if (levels[ones] == self.values).all() else None

    @property
    def least_ones(self) -> int | None:
        """The r of a threshold 1[n >= r] with 1 <= r <= s, else None: all monotone symmetric functions to {0, 1}
        besides the constants.
        """
        levels = self.levels
        if levels is None or levels[0] != 0 or levels[-1] != 1 or np.count_nonzero(np.diff(levels)) != 1:
            return None
        return int(np.argmax(levels))
