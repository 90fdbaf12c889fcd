r"""Sparse Boolean functions of independent bits: AND, OR, majority, threshold, parity, any expression or truth table.

Source: edelman2022, Section 5 (s-sparse functions) and Figures 2 to 4 (AND with balanced labels, parity).
Departures: bits have the p that balances the labels for every function, not only for the AND of three; a function
that no p balances gets the p that comes nearest.
Guarantee: exact; bits are 1 with probability p to within 2^{-32}, and `label_mean` is exact up to rounding.

Inputs are booleans of shape [T]; labels are 0 and 1 in float32, as losses want them. The positions may be traced, so
that tasks of one kind can be stacked and drawn inside jit; how the bits combine is fixed.
"""

import abc
import dataclasses
from collections.abc import Sequence
from typing import Any, TypeVar

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import scipy  # whose parts load on first use: a listing of studies needs none of them
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int, Key

from genscope.fourier import number_of_table, parse, points, table_of_number
from genscope.fourier.expression import Expression
from genscope.random import biased_bits, stream
from genscope.refusal import Refusal
from genscope.tasks._balance import balanced_probability, one_probability, weight_counts
from genscope.tasks._base import AbstractTask
from genscope.tasks._support import draw_support

Positions = Int[Array, " s"] | Int[np.ndarray, " s"] | Sequence[int]
Task = TypeVar("Task", bound="AbstractSparseBoolean")
Symmetric = TypeVar("Symmetric", bound="AbstractSymmetric")


class AbstractSparseBoolean(AbstractTask):
    """A function of the bits at `support`, on inputs whose bits are 1 with `probability`."""

    support: Int[Array, " s"]
    context_length: int = eqx.field(static=True)
    probability: float = eqx.field(static=True)

    def __check_init__(self):
        if not 0 <= self.probability <= 1:
            raise Refusal(
                f"{type(self).__name__} got probability={self.probability}: the probability that a bit is 1 must lie "
                "between 0 and 1. Leave it out for balanced labels."
            )
        if isinstance(self.support, Tracer):
            return
        positions = np.asarray(self.support)
        if len(np.unique(positions)) < len(positions) or ((positions < 0) | (positions >= self.context_length)).any():
            raise Refusal(
                f"{type(self).__name__} got support={positions.tolist()} with context_length={self.context_length}: "
                f"the support must be a list of distinct positions from 0 to {self.context_length - 1}. Correct the "
                "positions or lengthen the context."
            )

    @abc.abstractmethod
    def combine(self, bits: Bool[Array, " s"]) -> Bool[Array, ""]:
        """The value of the function, given the bits at the support in its order."""

    @abc.abstractmethod
    def one_probability(self, probability: float) -> float:
        """P[f = 1] when bits are 1 with the given probability."""

    @abc.abstractmethod
    def balanced_probability(self) -> float:
        """The probability of a bit that brings P[f = 1] nearest 1/2; among several the one nearest 1/2."""

    @abc.abstractmethod
    def truth_table(self) -> Bool[np.ndarray, " entries"]:
        """Values at the 2^s inputs of the support, its first position varying fastest."""

    @property
    def support_size(self) -> int:
        """The number of positions in the support."""
        return self.support.shape[-1]

    @property
    def label_mean(self) -> float:
        """The expected label under the law of the inputs."""
        return self.one_probability(self.probability)

    def inputs(self, key: Key[Array, ""], size: int) -> Bool[Array, "size T"]:
        """Independent bits."""
        return biased_bits(key, (size, self.context_length), self.probability)

    def target(self, x: Bool[Array, " T"]) -> Float[Array, ""]:
        """The function of the bits at the support, as 0 or 1."""
        if x.shape != (self.context_length,):  # JAX does not complain about positions outside
            raise Refusal(
                f"{type(self).__name__}.target got an input of shape {x.shape}: one example has context_length="
                f"{self.context_length} bits. Use jax.vmap for several examples, or change the length."
            )
        return self.combine(x[self.support]).astype(jnp.float32)


class AbstractSymmetric(AbstractSparseBoolean):
    """A function of the number of ones among the bits at the support."""

    def __check_init__(self):
        if self.support_size == 0:
            raise Refusal(
                f"{type(self).__name__} got an empty support: it needs at least one bit. Name at least one position, "
                "or write a constant as SparseExpression.parse('1', context_length=...)."
            )

    @classmethod
    def at(
        cls: type[Symmetric],
        support: Positions,
        *,
        context_length: int,
        probability: float | None = None,
        **options: Any,
    ) -> Symmetric:
        """The function of the bits at given positions; without a `probability`, labels are balanced."""
        return _with_probability(cls(_array(support), context_length, 0.5, **options), probability)

    @classmethod
    def draw(
        cls: type[Symmetric],
        key: Key[Array, ""],
        *,
        context_length: int,
        support_size: int,
        probability: float | None = None,
        **options: Any,
    ) -> Symmetric:
        """The function on a uniform support; without a `probability`, labels are balanced."""
        support = draw_support(key, context_length=context_length, support_size=support_size)
        return cls.at(support, context_length=context_length, probability=probability, **options)

    @abc.abstractmethod
    def accepts(self, ones: Any) -> Any:
        """Whether inputs with so many ones at the support give 1; whole arrays of either library."""

    def combine(self, bits: Bool[Array, " s"]) -> Bool[Array, ""]:
        """The value, by counting."""
        return self.accepts(jnp.sum(bits, dtype=jnp.int32))

    @property
    def levels(self) -> Bool[np.ndarray, " weights"]:
        """The values at 0, 1, ..., s ones."""
        return self.accepts(np.arange(self.support_size + 1))

    def one_probability(self, probability: float) -> float:
        """The binomial law of the number of ones, summed over the levels that give 1."""
        ones = np.flatnonzero(self.levels)
        zeros = self.support_size - ones
        special = scipy.special
        choices = special.gammaln(ones + zeros + 1) - special.gammaln(ones + 1) - special.gammaln(zeros + 1)
        return float(np.exp(choices + special.xlogy(ones, probability) + special.xlog1py(zeros, -probability)).sum())

    def truth_table(self) -> Bool[np.ndarray, " entries"]:
        """Values at the 2^s inputs of the support, its first position varying fastest."""
        return self.levels[points(self.support_size).sum(axis=1)]


class SparseAnd(AbstractSymmetric):
    """1 if all bits at the support are 1."""

    def accepts(self, ones: Any) -> Any:
        """All of them."""
        return ones == self.support_size

    def balanced_probability(self) -> float:
        """p^s = 1/2."""
        return 0.5 ** (1 / self.support_size)


class SparseOr(AbstractSymmetric):
    """1 if some bit at the support is 1."""

    def accepts(self, ones: Any) -> Any:
        """At least one."""
        return ones > 0

    def balanced_probability(self) -> float:
        """(1-p)^s = 1/2."""
        return 1 - 0.5 ** (1 / self.support_size)


class SparseMajority(AbstractSymmetric):
    """1 if more than half of the bits at the support are 1."""

    def accepts(self, ones: Any) -> Any:
        """More than half."""
        return 2 * ones > self.support_size

    def balanced_probability(self) -> float:
        """1/2 by symmetry for an odd number of bits, a little more for an even one."""
        size = self.support_size
        return 0.5 if size % 2 else _threshold_balance(size, size // 2 + 1)


class SparseThreshold(AbstractSymmetric):
    """1 if at least `threshold` of the bits at the support are 1."""

    threshold: int = eqx.field(static=True)

    def __check_init__(self):
        size = self.support_size
        if not 1 <= self.threshold <= size:
            raise Refusal(
                f"SparseThreshold got threshold={self.threshold} with {size} positions: the threshold must be 1 to "
                f"{size}. Change it, or write a constant as SparseExpression."
            )

    def accepts(self, ones: Any) -> Any:
        """At least the threshold."""
        return ones >= self.threshold

    def balanced_probability(self) -> float:
        """The median of a Beta law."""
        return _threshold_balance(self.support_size, self.threshold)


class SparseParity(AbstractSymmetric):
    """1 if an odd number of the bits at the support are 1."""

    def accepts(self, ones: Any) -> Any:
        """An odd number."""
        return ones % 2 == 1

    def balanced_probability(self) -> float:
        """P[f = 1] = (1 - (1-2p)^s) / 2 is 1/2 at p = 1/2."""
        return 0.5


class SparseExpression(AbstractSparseBoolean):
    """Any function of the bits at the support; bit i of `number` is its value where these bits are the digits of i."""

    number: int = eqx.field(static=True)

    def __check_init__(self):
        table_of_number(self.number, self.support_size)  # refuses a number with too many bits

    @classmethod
    def at(
        cls,
        support: Positions,
        table: Bool[np.ndarray, " entries"] | Sequence[int],
        *,
        context_length: int,
        probability: float | None = None,
    ) -> "SparseExpression":
        """The function with the given truth table, `support[0]` varying fastest."""
        entries = np.asarray(table)
        size = np.shape(support)[-1]
        if entries.shape != (2**size,) or not np.isin(entries, (0, 1)).all():
            raise Refusal(
                f"SparseExpression got a table of shape {entries.shape} for {size} positions: it must have a value "
                f"0 or 1 for each of the 2^{size} = {2**size} inputs. Give that many, with the first position "
                "varying fastest."
            )
        task = cls(_array(support), context_length, 0.5, number_of_table(entries.astype(bool)))
        return _with_probability(task, probability)

    @classmethod
    def parse(cls, text: str, *, context_length: int, probability: float | None = None) -> "SparseExpression":
        """The function written in `text`, with the variables where it says; its support is what it depends on."""
        support, table = parse(text, context_length).reduced
        return cls.at(support, table, context_length=context_length, probability=probability)

    @classmethod
    def draw(
        cls,
        key: Key[Array, ""],
        *,
        context_length: int,
        expression: str | Expression,
        probability: float | None = None,
    ) -> "SparseExpression":
        """The function of the expression, its variables placed at distinct uniform positions."""
        variables, table = (parse(expression) if isinstance(expression, str) else expression).reduced
        size = len(variables)
        support = draw_support(stream(key, "support"), context_length=context_length, support_size=size)
        order = jnp.argsort(jr.bits(stream(key, "order"), (size,), "uint32"))
        return cls.at(support[order], table, context_length=context_length, probability=probability)

    def combine(self, bits: Bool[Array, " s"]) -> Bool[Array, ""]:
        """The entry of the table whose number the bits spell."""
        place = jnp.asarray(2 ** np.arange(self.support_size), jnp.int32)
        return jnp.asarray(self.truth_table())[jnp.sum(place * bits.astype(jnp.int32))]

    def one_probability(self, probability: float) -> float:
        """The sum over the inputs that give 1."""
        return one_probability(weight_counts(self.truth_table()), probability)

    def balanced_probability(self) -> float:
        """By the roots of a polynomial in p."""
        return balanced_probability(weight_counts(self.truth_table()))

    def truth_table(self) -> Bool[np.ndarray, " entries"]:
        """Values at the 2^s inputs of the support, its first position varying fastest."""
        return table_of_number(self.number, self.support_size)


def _threshold_balance(size: int, threshold: int) -> float:
    """The p with P[Bin(s, p) >= r] = I_p(r, s-r+1) = 1/2."""
    return float(scipy.special.betaincinv(threshold, size - threshold + 1, 0.5))


def _array(support: Positions) -> Int[Array, " s"]:
    if isinstance(support, Tracer):
        return jnp.asarray(support)
    positions = np.asarray(support)
    if positions.ndim != 1 or not (positions.size == 0 or np.issubdtype(positions.dtype, np.integer)):
        raise Refusal(
            f"a sparse task got support={positions.tolist()}: the support must be a list of positions, which are "
            "integers. Give a list such as [5, 20, 30]."
        )
    return jnp.asarray(positions, dtype=jnp.int32)


def _with_probability(task: Task, probability: float | None) -> Task:
    return dataclasses.replace(task, probability=task.balanced_probability() if probability is None else probability)
