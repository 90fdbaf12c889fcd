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
from jaxtyping import Bool, UInt64
from numpy.lib.stride_tricks import sliding_window_view

from genscope.refusal import Refusal

Words = UInt64[np.ndarray, " W"]
Columns = UInt64[np.ndarray, "T W"]


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
) -> tuple[int, ...] | None:
    """Another placement of the variables of a function, all of which matter, that fits and is another function.

    `values` are those at 0, ..., s ones if the function is symmetric, and its truth table otherwise. Variables are
    placed one by one (in increasing order if they are interchangeable). What is placed so far sorts the examples by
    pattern; where it already decides the value, examples with the other label say what the next column must not be.
    """
    dim = len(support)
    columns, ones, everything = pack(x), pack(y[:, None])[0], pack(np.ones((len(y), 1), bool))[0]

    def extend(placed: tuple[int, ...], patterns: Columns) -> tuple[int, ...] | None:
        depth = len(placed)
        if depth == dim:
            same = set(placed) == set(support) if symmetric else _same_function(placed, support, values)
            return None if same else placed
        # For each pattern after one more variable: the values that the others can still give.
        open_values = sliding_window_view(values, dim - depth) if symmetric else values.reshape(-1, 2 ** (depth + 1)).T
        always, never = np.all(open_values, axis=1, keepdims=True), ~np.any(open_values, axis=1, keepdims=True)
        wrong = np.where(always, everything & ~ones, 0) | np.where(never, ones, 0)
        wrong_if_zero, wrong_if_one = wrong[: len(patterns)], wrong[-len(patterns) :]
        must_be_one = np.bitwise_or.reduce(patterns & wrong_if_zero, axis=0)
        must_be_zero = np.bitwise_or.reduce(patterns & wrong_if_one, axis=0)
        start = placed[-1] + 1 if symmetric and placed else 0
        effort.spend(columns[start:].size + patterns.size)
        unfit = ((~columns[start:] & must_be_one) | (columns[start:] & must_be_zero)).any(axis=1)
        for column in start + np.flatnonzero(~unfit):
            if column not in placed:
                low, high = patterns & ~columns[column], patterns & columns[column]
                none = np.zeros((1 if symmetric else len(patterns), patterns.shape[1]), np.uint64)
                found = extend((*placed, int(column)), np.concatenate([low, none]) | np.concatenate([none, high]))
                if found:
                    return found
        return None

    return extend((), everything[None])


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
