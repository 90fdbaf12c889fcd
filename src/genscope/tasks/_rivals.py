"""Searches for a rival: the same function at other positions that fits the same examples.

Source: edelman2022, Section 6; that training sets consistent with more than one hypothesis are rejected is recalled
from the paper and not in the texts we have.
Departures: the paper's procedure for finding rivals is not stated; these searches are ours.
Guarantee: exact. A search either names a rival, or proves that there is none, or raises because it would take longer
than its limit.

Examples are packed 64 to a word: a column of the data (one position) is a row of words, and a set of examples too.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int, UInt64
from numpy.lib.stride_tricks import sliding_window_view

from genscope.refusal import Refusal

Words = UInt64[np.ndarray, " W"]
Columns = UInt64[np.ndarray, "T W"]
States = Int[np.ndarray, " m"]
PRODUCTS = 64  # of a matrix product, that take as long as reading a word
HEAD = 256  # examples, on which few pairs fit by chance
BLOCK = 2**22  # pairs at once


@dataclass
class Effort:
    """Words a search may still look at; about 10^9 of them take some seconds."""

    limit: int
    hypotheses: int
    spent: int = 0

    def spend(self, words: int) -> None:
        """Count work, and refuse to go beyond the limit."""
        self.spent += words
        if self.spent > self.limit:
            raise Refusal(
                f"the search for rivals among {self.hypotheses:,} hypotheses read {self.spent:,} words of data without "
                f"an answer: the limit is {self.limit:,}. Use more examples, a shorter context or a smaller support, "
                "or increase the limit."
            )


def rival_and(
    x: Bool[np.ndarray, "m T"], y: Bool[np.ndarray, " m"], support: Sequence[int], effort: Effort
) -> tuple[int, ...] | None:
    """Another set of positions whose AND fits.

    It consists of candidates, the columns that are 1 on all positive examples, and hits (has a 0 in) every negative
    one. A set of the same size that is not the support leaves out some position of it, which gives one search per
    position for any hitting set among the others.
    """
    size = len(support)
    candidates = np.flatnonzero(x[y].all(axis=0))
    zeros = ~x[~y][:, candidates]
    rarest_first = np.argsort(zeros.sum(axis=1), kind="stable")
    masks, group, copies = np.unique(pack(zeros[rarest_first]), axis=0, return_inverse=True, return_counts=True)
    negatives = pack(np.ones((len(zeros), 1), bool))[0]
    for left_out in support:
        others = candidates != left_out
        if others.sum() < size:
            continue
        # Columns with equal zeros are interchangeable: one of each group is enough, as long as one remains.
        usable = copies - np.bincount(group[~others], minlength=len(copies)) > 0
        hitting = _hitting_set(masks[usable], negatives, size, effort)
        if hitting is not None:
            chosen = [int(candidates[others & (group == g)][0]) for g in np.flatnonzero(usable)[list(hitting)]]
            spare = (int(j) for j in candidates[others] if j not in chosen)
            return tuple(sorted([*chosen, *itertools.islice(spare, size - len(chosen))]))
    return None


def _hitting_set(masks: Columns, remaining: Words, size: int, effort: Effort) -> tuple[int, ...] | None:
    """At most `size` masks that together contain all the remaining examples, which come with the rarest first."""
    if not remaining.any():
        return ()
    if not size or not len(masks):
        return None
    effort.spend(masks.size)
    hits = np.bitwise_count(masks & remaining).sum(axis=1, dtype=np.int64)
    wanted, most = int(np.bitwise_count(remaining).sum()), int(hits.max())
    if most == wanted:
        return (int(hits.argmax()),)
    if size == 1:
        return None
    # The others can add at most `most` each, so the first must hit the rest.
    needed = wanted - (size - 1) * most
    word = int(np.flatnonzero(remaining)[0])
    lowest = remaining[word] & (~remaining[word] + np.uint64(1))
    branches = np.flatnonzero((masks[:, word] & lowest).astype(bool) & (hits >= needed))
    for branch in branches[np.argsort(-hits[branches], kind="stable")]:
        rest = _hitting_set(masks, remaining & ~masks[branch], size - 1, effort)
        if rest is not None:
            return (int(branch), *rest)
    return None


def rival_parity(
    x: Bool[np.ndarray, "m T"], y: Bool[np.ndarray, " m"], support: Sequence[int], effort: Effort
) -> tuple[int, ...] | None:
    """Another set of positions whose parity fits: all columns but the last are tried, and the last is looked up."""
    columns, target = pack(x), pack(y[:, None])[0]
    size, length = len(support), len(columns)
    keys = np.sort(columns[:, 0])
    for first in itertools.combinations(range(length), max(0, size - 2)):
        rest = target ^ np.bitwise_xor.reduce(columns[list(first)], axis=0)
        start = first[-1] + 1 if first else 0
        # What the last column must be, for each choice of the one before it.
        needs = rest ^ columns[start:] if size > 1 else rest[None]
        effort.spend(len(needs) * max(1, length.bit_length()))
        place = np.minimum(np.searchsorted(keys, needs[:, 0]), length - 1)
        for found in np.flatnonzero(keys[place] == needs[:, 0]):
            effort.spend(columns.size)
            before = (*first, start + int(found)) if size > 1 else ()
            for last in np.flatnonzero((columns == needs[found]).all(axis=1)):
                rival = {*before, int(last)}
                if len(rival) == size and rival != set(support):
                    return tuple(sorted(rival))
    return None


def rival_placement(
    x: Bool[np.ndarray, "m T"],
    y: Bool[np.ndarray, " m"],
    support: Sequence[int],
    values: Bool[np.ndarray, " values"],
    effort: Effort,
    *,
    symmetric: bool,
    errors: int = 0,
) -> tuple[int, ...] | None:
    """Another placement of the variables of a function, all of which matter, with at most so many labels wrong.

    `values` are those at 0, ..., s ones if the function is symmetric, and its truth table otherwise. Variables are
    placed one by one, those that can be exchanged in increasing order. What is placed so far gives each example a
    state; where that and the next column decide the value, the wrong labels are counted, and columns with too many of
    them are left out. The last two variables are placed at once: given the states, the number of wrong labels is
    bilinear in their columns, so that a matrix product has it for all pairs.
    """
    dim, length = len(support), x.shape[1]
    columns = np.ascontiguousarray(x.T, dtype=np.float32)  # whose sums over examples are exact
    leader = exchangeable(values, dim, symmetric=symmetric)

    def after(state: States, depth: int, bit: int | States) -> States:
        return state + bit if symmetric else state + (bit << depth)

    def wrong(state: States, depth: int) -> Float[np.ndarray, " m"]:
        """Whether the label is wrong whatever the variables from `depth` on are."""
        open_values = sliding_window_view(values, dim - depth + 1) if symmetric else values.reshape(-1, 2**depth).T
        always, never = np.all(open_values, axis=1), ~np.any(open_values, axis=1)
        return ((always[state] & ~y) | (never[state] & y)).astype(np.float32)

    def first_place(placed: tuple[int, ...], variable: int) -> int:
        """After the variables that it can be exchanged with."""
        return max((placed[j] + 1 for j in range(len(placed)) if leader[j] == leader[variable]), default=0)

    def extend(placed: tuple[int, ...], state: States) -> tuple[int, ...] | None:
        depth = len(placed)
        if depth == dim:
            return rival(placed)
        effort.spend(columns.size // PRODUCTS + 64)
        zero, one = (wrong(after(state, depth, bit), depth + 1) for bit in (0, 1))
        fits = zero.sum() + columns @ (one - zero) <= errors
        fits[list(placed)] = False
        fits[: first_place(placed, depth)] = False
        chosen = np.flatnonzero(fits)
        if depth == dim - 2:
            return pair(placed, state, chosen)
        for column in chosen:
            if found := extend((*placed, int(column)), after(state, depth, x[:, column].astype(np.int64))):
                return found
        return None

    seen = len(y) if errors else min(len(y), HEAD)  # examples that a pair is first compared on

    def pair(placed: tuple[int, ...], state: States, chosen: np.ndarray) -> tuple[int, ...] | None:
        depth, some = len(placed), columns[:, :seen]
        one, two = first_place(placed, depth + 1), leader[depth] == leader[depth + 1]
        (w00, w01), (w10, w11) = (
            [wrong(after(after(state, depth, bit), depth + 1, last), dim)[:seen] for last in (0, 1)] for bit in (0, 1)
        )
        for start in range(0, len(chosen), rows := max(1, BLOCK // length)):
            block = chosen[start : start + rows]
            effort.spend(len(block) * length * seen // PRODUCTS + 64)
            left = some[block]
            found = (left * (w11 - w10 - w01 + w00) + (w01 - w00)) @ some.T
            found += (w00.sum() + left @ (w10 - w00))[:, None]
            for row, last in np.argwhere(found <= errors):
                before = int(block[row])
                if last < one or last in placed or last == before or (two and last < before):
                    continue
                if named := rival((*placed, before, int(last))):
                    return named
        return None

    def rival(placed: tuple[int, ...]) -> tuple[int, ...] | None:
        state = np.zeros(len(y), np.int64)
        for depth, column in enumerate(placed):
            state = after(state, depth, x[:, column].astype(np.int64))
        same = set(placed) == set(support) if symmetric else _same_function(placed, support, values)
        return None if same or (values[state] != y).sum() > errors else placed

    return extend((), np.zeros(len(y), np.int64))


def exchangeable(values: Bool[np.ndarray, " values"], dim: int, *, symmetric: bool) -> list[int]:
    """For each variable the first one that it can be exchanged with, which may be itself."""
    if symmetric:
        return [0] * dim
    cube = values.reshape((2,) * dim)  # axis -1-j belongs to variable j
    return [
        next(i for i in range(j + 1) if (cube.swapaxes(dim - 1 - i, dim - 1 - j) == cube).all()) for j in range(dim)
    ]


def _same_function(placed: Sequence[int], support: Sequence[int], table: Bool[np.ndarray, " entries"]) -> bool:
    """Whether a table whose variables all matter is the same function at two placements."""
    if set(placed) != set(support):
        return False
    cube = table.reshape((2,) * len(support))  # axis -1-j belongs to variable j
    axes = [len(support) - 1 - placed.index(position) for position in reversed(support)]
    return bool((cube.transpose(axes) == cube).all())


def pack(x: Bool[np.ndarray, "m T"]) -> Columns:
    """Columns as rows of 64-bit words, example i in bit i % 64 of word i // 64; one empty word without examples."""
    words = max(1, math.ceil(len(x) / 64))
    packed = np.packbits(np.pad(x, ((0, 64 * words - len(x)), (0, 0))), axis=0, bitorder="little")
    return np.ascontiguousarray(packed.T).view("<u8").astype(np.uint64, copy=False)
