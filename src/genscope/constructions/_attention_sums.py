r"""What a head sees of bits: sums over tokens, and the bits that make such sums extreme.

Guarantee: exact up to rounding, in NumPy and float64: a second route to what the model computes. `extremes` solves
$\max u^\top N/D$ over all choices of bits (Dinkelbach 1967): at the optimum $\theta$ every bit maximizes
$u^\top N-\theta D$ by itself, and $\theta\leftarrow u^\top N/D$ increases to it.

Shapes: T bits, v values, sums have v + 1 columns, the last being D.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from genscope.constructions._base import Matrix, Vector, only_head
from genscope.models.edelman2022 import Transformer
from genscope.models.encoding import AbstractEncoding, Bag, Coordinates, Positional

Sums = Float[np.ndarray, "_ columns"]

_CACHED = 2**16  # entries of the widest layer that are computed at a time: they stay in the cache


class Terms(NamedTuple):
    """The terms of tokens in the sums: where the bit is 0, where it is 1."""

    zero: Float[np.ndarray, "tokens columns"]
    one: Float[np.ndarray, "tokens columns"]

    def at(self, positions: Int[np.ndarray, " tokens"]) -> "Terms":
        """The terms of these tokens."""
        return Terms(self.zero[positions], self.one[positions])

    def all_choices(self) -> Sums:
        """Sums for all 2^tokens bit strings, the first token varying fastest."""
        sums = np.zeros((1, self.zero.shape[1]))
        for zero, one in zip(self.zero, self.one, strict=True):
            sums = np.concatenate([sums + zero, sums + one])
        return sums

    @property
    def alike(self) -> bool:
        """Whether no token differs from another, so that only the number of ones counts."""
        return bool((self.zero == self.zero[:1]).all() and (self.one == self.one[:1]).all())

    def different_choices(self) -> Sums:
        """All sums that occur: of all bit strings, or if the tokens are alike of all numbers of ones."""
        if not self.alike:
            return self.all_choices()
        ones = np.arange(len(self.zero) + 1)[:, None]
        return ones[::-1] * self.zero[:1].sum(axis=0) + ones * self.one[:1].sum(axis=0)

    def choice(self, bits: np.ndarray) -> Vector:
        """Sums for one bit string."""
        return np.where(bits[:, None], self.one, self.zero).sum(axis=0)


def attention_terms(model: Transformer) -> tuple[Terms, Vector]:
    """The terms of the positions, and that of CLS (0 if it is no key)."""
    head, vectors = only_head(model), model.encoding.vectors
    weights = [np.asarray(w, float) for w in (head.w_q, head.w_k, head.w_v)]
    width = weights[0].shape[1]
    read = np.column_stack(weights)
    read = read[: vectors.count] if isinstance(vectors, Coordinates) else np.asarray(vectors) @ read
    score = read[:, width : 2 * width] @ read[0, :width]  # the first vector is that of CLS, whose query it is
    tokens = _TOKENS[type(model.encoding)](np.column_stack([score, read[:, 2 * width :]]))
    tokens = tokens if model.cls_is_key else tokens[:2]
    highest = max(token[:, 0].max() for token in tokens)  # one reference for all inputs
    zero, one, *cls = (np.exp(t[:, :1] - highest) * np.column_stack([t[:, 1:], np.ones(len(t))]) for t in tokens)
    return Terms(zero, one), sum(cls, np.zeros((1, zero.shape[1])))[0]


# What each encoding makes of its vectors: tokens of zeros, of ones, and CLS (genscope.models.encoding).
_TOKENS: Mapping[type[AbstractEncoding], Callable[[Matrix], tuple[Matrix, Matrix, Matrix]]] = {
    Positional: lambda rows: (rows[3:] + rows[1], rows[3:] + rows[2], rows[:1]),
    Bag: lambda rows: (0 * rows[1:], rows[1:], rows[:1]),
}


def outputs(model: Transformer, sums: Sums) -> Vector:
    """What the model makes of the sums."""
    head = only_head(model)
    w_c = None if head.w_c is None else np.asarray(head.w_c, float)
    layers = [
        (np.asarray(layer.weight, float), 0.0 if layer.bias is None else np.asarray(layer.bias, float))
        for layer in model.readout.hidden
    ]
    w = np.asarray(model.readout.w, float)
    rows = max(16, _CACHED // max(sums.shape[1], *(len(a.T) for a, _ in layers), 1))

    def of(block: Sums) -> Vector:
        y = np.maximum(block[:, :-1] / block[:, -1:], 0)
        y = y if w_c is None else y @ w_c
        for weight, bias in layers:
            y = y @ weight
            y += bias
            np.maximum(y, 0, out=y)
        return y @ w

    return np.concatenate([of(sums[start : start + rows]) for start in range(0, len(sums), rows)])


def directions(model: Transformer) -> Iterator[Vector]:
    """Functionals of the mixture that the first units after attention read, and their negatives.

    A wide first layer, with units for patterns, reads bits off the values: then the values themselves.
    """
    head = only_head(model)
    units = np.eye(head.w_v.shape[1])
    if model.readout.hidden and model.readout.hidden[0].weight.shape[1] <= 4 * len(units):
        weight = np.asarray(model.readout.hidden[0].weight, float)
        units = weight if head.w_c is None else np.asarray(head.w_c, float) @ weight
    for unit in np.unique(units.T, axis=0):
        yield unit
        yield -unit


def extremes(terms: Terms, fixed: Sums, direction: Vector) -> Sums:
    """For each row of `fixed`, the sums of the choice of bits that makes direction · N / D of both together largest.

    A bit is 1 where the gain in N outweighs theta times the gain in D, so as theta rises each bit changes once, at the
    quotient of its gains: sorted by these, all optimal choices are the beginnings of one list.
    """
    gain = terms.one - terms.zero
    gain_n, gain_d = gain[:, :-1] @ direction, gain[:, -1]
    moving = gain_d != 0
    first = np.where(moving, gain_d > 0, gain_n > 0)  # the choice at theta = -infinity
    quotients = gain_n[moving] / gain_d[moving]
    order = np.argsort(quotients)
    changes = (-np.sign(gain_d[moving])[:, None] * gain[moving])[order]
    choices = terms.choice(first) + np.concatenate([np.zeros((1, gain.shape[1])), np.cumsum(changes, axis=0)])
    sums = choices[0] + fixed
    theta = sums[:, :-1] @ direction / sums[:, -1]
    while True:
        candidates = choices[np.searchsorted(quotients[order], theta)] + fixed
        higher = candidates[:, :-1] @ direction / candidates[:, -1]
        better = higher > theta
        if not better.any():
            return sums
        sums, theta = np.where(better[:, None], candidates, sums), np.where(better, higher, theta)
