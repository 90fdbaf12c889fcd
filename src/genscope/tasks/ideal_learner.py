r"""What an ideal learner of a sparse function needs: a sample that few other placements of the function fit.

The hypotheses are the placements of a function's $s$ variables at distinct positions, those that compute the same
function counted once. A *rival* is another function among them that agrees with the target on the whole sample. Bits
are independent, so whether two placements agree on an example depends on which variables share a position alone:

$$E = \frac1{|\mathrm{Aut}|}\sum_{\text{overlaps}} \frac{(T-s)!}{(T-s-r)!}\,a^m,$$

over the partial injections of the rival's variables into the target's, $r$ variables outside, $a$ the probability of
agreement; Aut are the permutations of the variables that leave the function as it is.

Source: none; edelman2022, Section 6, compares with no ideal learner.
Guarantee: exact up to rounding, for symmetric functions of any number of variables (AND, OR, majority, threshold,
parity) and for all others of at most 8, beyond which it is refused.
"""

import functools
import itertools
import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool

from genscope.fourier import points
from genscope.fourier.expression import Expression, parse, reduce_table
from genscope.refusal import Refusal
from genscope.tasks._balance import balanced_probability, weight_counts
from genscope.tasks.sparse_boolean import AbstractSparseBoolean

MOST_VARIABLES = 8  # of a function that is not symmetric: 46,233 permutations of the variables that are shared

Function = str | Expression | AbstractSparseBoolean


class _Overlap(NamedTuple):
    """Rivals with `outside` variables where the target has none: `ways` (T-s)!/(T-s-outside)! of them."""

    outside: int
    ways: float
    agreement: float


def expected_rivals(
    function: Function, *, sample_size: int, context_length: int | None = None, probability: float | None = None
) -> float:
    """The expected number of other functions among the placements that fit so many random examples.

    `function` is an expression (`"maj(x0, x1, x2)"`) or a task, whose context length and probability of a 1 are taken
    where none are given; for an expression labels are balanced by default.

    >>> expected_rivals("x0 & x1", context_length=4, sample_size=0)  # C(4, 2) - 1
    5.0
    """
    table, length, p = _arguments(function, context_length, probability)
    rest = length - _variables(table)
    return math.fsum(
        overlap.ways * math.perm(rest, overlap.outside) * overlap.agreement**sample_size
        for overlap in _overlaps(table.tobytes(), p)
    )


def ideal_sample_size(
    function: Function, *, context_length: int | None = None, failure: float = 0.2, probability: float | None = None
) -> int:
    """The smallest sample at which at most `failure` rivals are expected.

    A learner that returns any consistent placement then fails with at most that probability (Markov's inequality).

    >>> ideal_sample_size("x0 & x1 & x2", context_length=800)
    41
    """
    if not failure > 0:
        raise Refusal(
            f"ideal_sample_size got {failure=}: a rival always has some probability to survive. Give a positive number."
        )
    asked = functools.partial(expected_rivals, function, context_length=context_length, probability=probability)
    high = 1
    while asked(sample_size=high) > failure:
        high *= 2
    low = -1  # not enough, or never asked: the answer lies in (low, high]
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if asked(sample_size=middle) <= failure else (middle, high)
    return high


def information_bound(function: Function, *, context_length: int | None = None) -> float:
    r"""$\log_2$ of the number of hypotheses: each label carries at most one bit, and so many bits name one of them."""
    table, length, _ = _arguments(function, context_length, 0.5)
    size = _variables(table)
    return math.log2(math.perm(length, size)) - math.log2(_automorphisms(table.tobytes()))


def _arguments(
    function: Function, context_length: int | None, probability: float | None
) -> tuple[Bool[np.ndarray, " entries"], int, float]:
    """The truth table on the variables that matter, the context length and the probability of a 1."""
    if isinstance(function, AbstractSparseBoolean):
        table = reduce_table(tuple(range(function.support_size)), function.truth_table())[1]
        context_length = function.context_length if context_length is None else context_length
        probability = float(function.probability) if probability is None else probability
    else:
        table = (parse(function) if isinstance(function, str) else function).reduced[1]
    if context_length is None:
        raise Refusal(
            "an ideal learner got an expression without a context length, so it does not know among how many bits to "
            "look. Give a context length."
        )
    size = _variables(table)
    if not 1 <= size <= context_length:
        raise Refusal(
            f"an ideal learner got a function of {size} variables with {context_length=}: there must be 1 to "
            f"{context_length} variables. Choose a smaller support or a longer context."
        )
    probability = balanced_probability(weight_counts(table)) if probability is None else probability
    if not 0 < probability < 1:
        raise Refusal(
            f"an ideal learner got {probability=}: the probability of a 1 must lie strictly between 0 and 1. Change it."
        )
    return table, context_length, probability


def _variables(table: Bool[np.ndarray, " entries"]) -> int:
    return len(table).bit_length() - 1


def _levels(table: Bool[np.ndarray, " entries"]) -> Bool[np.ndarray, " weights"] | None:
    """The values by number of ones, of a symmetric function."""
    weights = points(_variables(table)).sum(axis=1)
    levels = np.array([table[weights == weight][0] for weight in range(_variables(table) + 1)])
    return levels if (levels[weights] == table).all() else None


def _cube(table: Bool[np.ndarray, " entries"]) -> Bool[np.ndarray, "*bits"]:
    """One axis for each variable, the last one first."""
    return table.reshape((2,) * _variables(table))


@functools.lru_cache(maxsize=64)
def _automorphisms(packed: bytes) -> int:
    table = np.frombuffer(packed, bool)
    size = _variables(table)
    if _levels(table) is not None:
        return math.factorial(size)
    _check(size)
    cube = _cube(table)
    return sum(bool((cube.transpose(order) == cube).all()) for order in itertools.permutations(range(size)))


def _check(size: int) -> None:
    if size > MOST_VARIABLES:
        raise Refusal(
            f"an ideal learner got a function of {size} variables that are not interchangeable: overlaps can be "
            f"enumerated for at most {MOST_VARIABLES}. Use a smaller or a symmetric function."
        )


@functools.lru_cache(maxsize=64)
def _overlaps(packed: bytes, probability: float) -> tuple[_Overlap, ...]:
    table = np.frombuffer(packed, bool)
    levels = _levels(table)
    if levels is not None:
        return tuple(_symmetric(levels, probability))
    _check(_variables(table))
    return tuple(_general(table, probability, _automorphisms(packed)))


def _binomial(size: int, probability: float) -> np.ndarray:
    ones = np.arange(size + 1)
    choices = np.array([float(math.comb(size, k)) for k in ones])
    return choices * probability**ones * (1 - probability) ** (size - ones)


def _symmetric(levels: Bool[np.ndarray, " weights"], probability: float):
    """Sets that share so many positions with the support agree where both or none of them see a 1."""
    size = len(levels) - 1
    for shared in range(size):
        own = np.convolve(levels[::-1].astype(float), _binomial(size - shared, probability))[::-1]
        given = own[size - shared : size + 1]  # P[f = 1], given the number of ones among the shared positions
        agreement = _binomial(shared, probability) @ (given**2 + (1 - given) ** 2)
        yield _Overlap(size - shared, math.comb(size, shared) / math.factorial(size - shared), float(agreement))


def _general(table: Bool[np.ndarray, " entries"], probability: float, automorphisms: int):
    """Given the bits at shared positions both placements are independent: P[f = 1] given these is enough."""
    size, cube = _variables(table), _cube(table)
    law = np.array([1 - probability, probability])
    for shared in range(size + 1):
        kept = list(itertools.combinations(range(size), shared))
        given = np.array([_averaged(cube.astype(float), axes, law) for axes in kept])
        weight = functools.reduce(np.multiply.outer, [law] * shared, np.ones(()))
        flat = given.reshape(len(kept), -1)
        for order in itertools.permutations(range(shared)):
            other = np.array([each.transpose(order) for each in given]).reshape(len(kept), -1)
            agreement = (flat * weight.ravel()) @ other.T + ((1 - flat) * weight.ravel()) @ (1 - other).T
            if shared == size and (other == flat).all():
                continue  # the same function
            for value in agreement.ravel():
                yield _Overlap(size - shared, 1 / automorphisms, float(value))


def _averaged(cube: np.ndarray, kept: tuple[int, ...], law: np.ndarray) -> np.ndarray:
    """The mean over the axes that are not kept."""
    for axis in reversed(range(cube.ndim)):
        if axis not in kept:
            cube = np.tensordot(cube, law, axes=(axis, 0))
    return cube
