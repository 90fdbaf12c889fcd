r"""Short codes of cyclic positions: T unit vectors of dimension far below T, no two of them close.

Source: none; lintilhac2026 codes positions by one-hot vectors or by random projections (Appendix B.2).
Departures: none.
Guarantee: the largest inner product of two different codes is computed over all of them; that no other choice of
frequencies has a smaller one is not claimed. The same arguments give the same code.

The code of position t is $u_t=K^{-1/2}(\cos\frac{2\pi f_it}T,\sin\frac{2\pi f_it}T)_{i<K}$, so that $\langle
u_s,u_t\rangle=\frac1K\sum_i\cos\frac{2\pi f_i(s-t)}T$ depends on the distance alone and the first position is as good
as any. Frequencies are found by exchanging one at a time while the largest inner product falls.
"""

import functools
import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from genscope.refusal import Refusal

LONGEST = 4096  # positions: the search goes over all pairs of distance and frequency
_STARTS = 16
_GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True)
class CyclicCode:
    """Frequencies of a code of `context_length` positions, and the largest inner product of two of its vectors."""

    context_length: int
    frequencies: tuple[int, ...]
    coherence: float

    @property
    def dim(self) -> int:
        """Entries of a vector."""
        return 2 * len(self.frequencies)


def usual_dim(context_length: int) -> int:
    """A dimension that grows like the logarithm: twice 1.2 log₂ T, rounded down, as far as there are frequencies."""
    return 2 * min(math.floor(1.2 * math.log2(context_length)), (context_length - 1) // 2)


@functools.lru_cache(maxsize=64)
def cyclic_code(context_length: int, dim: int) -> CyclicCode:
    """A code of that dimension, which is even and below T."""
    largest = (context_length - 1) // 2
    if not 3 <= context_length <= LONGEST or dim % 2 or not 2 <= dim <= 2 * largest:
        raise Refusal(
            f"cyclic_code got {context_length=} and {dim=}: there must be 3 to {LONGEST} positions, and the dimension "
            f"must be even, here from 2 to {max(2 * largest, 2)}. Correct the one that is out of range."
        )
    waves = _waves(context_length)[1 : context_length // 2 + 1]  # distance 0 is a code with itself
    found = min(
        (_exchange(waves, _start(dim // 2, largest, number)) for number in range(1, _STARTS + 1)),
        key=lambda frequencies: (_worst(waves, frequencies), frequencies),
    )
    return CyclicCode(context_length, found, _worst(waves, found))


def _waves(context_length: int) -> Float[np.ndarray, "distances frequencies"]:
    """cos(2π f t / T) by distance t and frequency f; products are reduced before they are rounded."""
    table = np.cos(2 * np.pi * np.arange(context_length) / context_length)
    return table[np.outer(np.arange(context_length), np.arange((context_length - 1) // 2 + 1)) % context_length]


def _start(size: int, largest: int, number: int) -> list[int]:
    """Different frequencies, spread by multiples of the golden ratio."""
    chosen: list[int] = []
    for i in range(size):
        candidate = 1 + int(largest * (_GOLDEN * number * (i + 1) ** 2 % 1.0))
        while candidate in chosen or candidate > largest:
            candidate = candidate % largest + 1
        chosen.append(candidate)
    return chosen


def _exchange(waves: Float[np.ndarray, "distances frequencies"], chosen: list[int]) -> tuple[int, ...]:
    best, moved = _worst(waves, tuple(chosen)), True
    while moved:
        moved = False
        for i in range(len(chosen)):
            others = chosen[:i] + chosen[i + 1 :]
            worst = (waves[:, others].sum(axis=1)[:, None] + waves).max(axis=0) / len(chosen)
            worst[[0, *others]] = np.inf
            candidate = int(worst.argmin())
            if worst[candidate] < best - 1e-12:
                best, chosen[i], moved = float(worst[candidate]), candidate, True
    return tuple(sorted(chosen))


def _worst(waves: Float[np.ndarray, "distances frequencies"], frequencies: tuple[int, ...]) -> float:
    return float(waves[:, list(frequencies)].mean(axis=1).max())
