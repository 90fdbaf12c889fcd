"""Training sets that identify their hypothesis: rejection of ambiguous draws.

Source: edelman2022, Section 6; that training sets which fit more than one support are rejected is recalled from the
paper and not in the texts we have.
Departures: the search for rivals is ours.
Guarantee: exact. AND, OR and parity have searches of their own where no label is wrong; everything else is searched
with pruning, and a search that would pass its limit raises instead of guessing.
"""

import math
from collections import Counter
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Key

from genscope.fourier import points
from genscope.fourier.expression import reduce_table
from genscope.refusal import Refusal
from genscope.tasks._base import Batch
from genscope.tasks._rivals import Effort, exchangeable, rival_and, rival_parity, rival_placement
from genscope.tasks.sparse_boolean import AbstractSparseBoolean, AbstractSymmetric

LIMIT = 2**31  # words of data looked at in one search: some seconds


def find_rival(
    task: AbstractSparseBoolean, x: ArrayLike, y: ArrayLike, *, errors: int = 0, limit: int = LIMIT
) -> tuple[int, ...] | None:
    """Positions at which the task's function is another function and fits the examples too, or None if there are none.

    With `errors`, a function fits that has at most so many labels wrong. For a symmetric function the hypotheses are
    the sets of as many positions, and the rival comes in increasing order; otherwise they are the placements of the
    variables that matter, in the order of the task's support.
    """
    x, y = _examples(task, x, y)
    support, values, symmetric = _function(task)
    if not support:
        return None  # a constant is the same function everywhere
    effort = Effort(limit, _orders(values, len(support), x.shape[1], symmetric)[-1])
    match _method(values, symmetric and not errors):
        case "and":
            return rival_and(x, y, support, effort)
        case "or":  # by De Morgan's law
            return rival_and(~x, ~y, support, effort)
        case "parity":
            return rival_parity(x, y ^ values[0], support, effort)
    return rival_placement(x, y, support, values, effort, symmetric=symmetric, errors=errors)


class Cost(NamedTuple):
    """The placements that a search for rivals faces, and about the seconds that it takes on one core."""

    placements: int
    seconds: float


def search_cost(task: AbstractSparseBoolean, *, sample_size: int = 100, errors: bool = False) -> Cost:
    """What `find_rival` takes where no rival ends the search early and no column can be left out; measured once.

    An AND or an OR without errors takes milliseconds. All others place all variables but two in turn, and a matrix
    product (of a parity without errors, a look-up) does the rest.
    """
    support, values, symmetric = _function(task)
    if not support:
        return Cost(1, 0.0)
    length = task.context_length
    ordered = _orders(values, len(support), length, symmetric)
    nodes = sum(ordered[: max(1, len(support) - 1)])
    match _method(values, symmetric and not errors):
        case "and" | "or":
            return Cost(ordered[-1], 0.0)
        case "parity":
            return Cost(ordered[-1], nodes * (1e-5 + 1e-7 * length))
    return Cost(ordered[-1], nodes * (6e-5 + 2e-11 * length**2 * sample_size))


def _orders(values: Bool[np.ndarray, " values"], size: int, length: int, symmetric: bool) -> list[int]:
    """In how many ways 0, ..., all variables can be placed, those that can be exchanged in increasing order."""
    leaders = exchangeable(values, size, symmetric=symmetric)
    same = [math.prod(map(math.factorial, Counter(leaders[:placed]).values())) for placed in range(size + 1)]
    return [math.perm(length, placed) // same[placed] for placed in range(size + 1)]


def _method(values: Bool[np.ndarray, " values"], symmetric: bool) -> str:
    """Which search a function has; its value at no ones is 0 where all others are 1, or it were constant."""
    if symmetric and not values[:-1].any():
        return "and"
    if symmetric and values[1:].all():
        return "or"
    return "parity" if symmetric and (values[1:] != values[:-1]).all() else "placement"


class UniqueDraw(NamedTuple):
    """A training set, how many before it were rejected, and whether it identifies the function."""

    batch: Batch
    rejected: int
    identified: bool


def draw_unique(
    key: Key[Array, ""],
    task: AbstractSparseBoolean,
    size: int,
    *,
    attempts: int = 100,
    capacity: int | None = None,
    limit: int = LIMIT,
) -> UniqueDraw:
    """The first training set among those of attempt 0, 1, ... that no rival fits.

    When all attempts are rejected, the last set comes back with `identified=False`. With a `capacity`, that many
    examples are drawn and the first `size` kept, so that all sizes up to it share one compilation.
    """
    drawn = size if capacity is None else capacity
    if attempts < 1 or not 0 <= size <= drawn:
        raise Refusal(
            f"draw_unique got {size=}, {attempts=}, {capacity=}: attempts must be at least 1, and capacity at least "
            "size. Increase the one that is not, or leave the capacity out."
        )
    attempt = 0
    while True:
        batch = _sample(task, jr.fold_in(key, attempt), drawn)
        x, y = np.asarray(batch.x)[:size], np.asarray(batch.y)[:size]
        identified = find_rival(task, x, y, limit=limit) is None
        attempt += 1
        if identified or attempt == attempts:
            return UniqueDraw(Batch(jnp.asarray(x), jnp.asarray(y)), attempt - identified, identified)


def draw_any(key: Key[Array, ""], task: AbstractSparseBoolean, size: int, *, capacity: int) -> UniqueDraw:
    """The training set of attempt 0, whether it identifies the function or not: nobody looks."""
    batch = _sample(task, jr.fold_in(key, 0), capacity)
    return UniqueDraw(Batch(batch.x[:size], batch.y[:size]), 0, False)


@eqx.filter_jit
def _sample(task: AbstractSparseBoolean, key: Key[Array, ""], size: int) -> Batch:
    return task.sample(key, size)


def _examples(
    task: AbstractSparseBoolean, x: ArrayLike, y: ArrayLike
) -> tuple[Bool[np.ndarray, "m T"], Bool[np.ndarray, " m"]]:
    x, y = np.asarray(x), np.asarray(y)
    bits = all(array.dtype == bool or np.isin(array, (0, 1)).all() for array in (x, y))
    if y.ndim != 1 or x.shape != (len(y), task.context_length) or not bits:
        raise Refusal(
            f"find_rival got x of shape {x.shape} and y of shape {y.shape}: both must consist of bits 0 or 1, x of "
            f"shape [m, {task.context_length}] and y of shape [m]. Give a batch drawn from the task."
        )
    return x.astype(bool, copy=False), y.astype(bool, copy=False)


def _function(task: AbstractSparseBoolean) -> tuple[tuple[int, ...], Bool[np.ndarray, " values"], bool]:
    """Positions that matter; the values by number of ones if these are interchangeable, else the truth table."""
    positions = tuple(int(position) for position in task.support)
    if isinstance(task, AbstractSymmetric):
        return positions, task.levels, True
    support, table = reduce_table(positions, task.truth_table())
    weights = points(len(support)).sum(axis=1)
    levels = np.array([table[weights == weight][0] for weight in range(len(support) + 1)])
    return (support, levels, True) if (levels[weights] == table).all() else (support, table, False)
