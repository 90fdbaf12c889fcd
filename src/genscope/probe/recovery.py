r"""All Fourier components of a function that has few of them, from few queries: the sparse Walsh–Hadamard transform.

A random affine restriction sends each component into a random one of $2^r$ buckets, at $2^r$ queries; the same
restriction shifted by each unit vector turns the sign of exactly the components that contain this bit. A bucket whose
absolute value stays the same under all shifts holds one component, and the signs spell it. It is subtracted everywhere,
which empties other buckets until one component is left in them, and so on. New restrictions, as small as what is left
allows, follow until fresh random inputs agree with the sum.

Source: Scheibler, Haghighatshoar and Vetterli 2015; Li et al. 2015 (peeling).
Departures: r is found by restrictions without shifts, which cost little: the smallest with three quarters of the
buckets empty. Three components in one bucket can look like one; what is subtracted then is wrong, and is mended by
itself, since later rounds see the function less the sum.
Guarantee: that of `probe.agreement` for the sum that is returned; `complete` is never true without it.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64

from genscope.fourier import signs
from genscope.fourier.walsh import WalshFunction
from genscope.probe.agreement import Agreement, agree, inputs_needed
from genscope.probe.oracle import Oracle
from genscope.probe.restriction import Restriction, add_shifts, bucket_of, draw_matrix, restrict

_FEWEST_ROWS = 3
_SPARSE = 4  # a spectrum is sparse if at most one bucket in four is occupied
_LOOKED = 256  # inputs from which the function's energy is guessed, to tell a component from what may be left out
_PEELS = 100
_CLEAR, _ALIKE = 8.0, 6.0  # standard deviations of the noise: a bucket that is read, and two values that are alike

Components = Mapping[tuple[int, ...], float]


@dataclass(frozen=True)
class Recovery:
    """A sum of components and how far it is the function."""

    function: WalshFunction
    complete: bool | None  # it is the function, as far as `agreement` tells; None: cannot tell with these queries
    agreement: Agreement
    at_least: int  # non-constant components that the function has for certain (rounding aside)
    confidence: float
    queries: int


@dataclass(frozen=True)
class _Round:
    """A restriction with all its shifts, and the standard deviation of what is no component but noise."""

    restriction: Restriction
    noise: float


def recover(
    oracle: Oracle,
    *,
    rng: np.random.Generator,
    confidence: float = 0.99,
    tolerance: float = 0.0,
    bound: float | None = None,
) -> Recovery:
    """Find the components; with a tolerance E, a sum that leaves out at most the share E of the function's energy.

    `bound` is one of |f|, for the intervals of energies; None takes the largest value seen.
    """
    before = oracle.queries
    neglected = tolerance * _guessed_energy(oracle, rng) if tolerance else 0.0
    found: Components = {}
    rounds: list[_Round] = []
    at_least, least, looks = 0, _FEWEST_ROWS, 0
    agreement: Agreement | None = None

    def compare() -> Agreement:
        level = 1 - (1 - confidence) / (looks * (looks + 1))  # the sum of 1 / (j (j + 1)) over all looks is 1
        return agree(
            oracle,
            _as_function(found, oracle.dim),
            rng=rng,
            confidence=level,
            tolerance=tolerance,
            bound=bound,
            other_bound=sum(map(abs, found.values())),
        )

    while (most := _affordable_rows(oracle, confidence)) >= least:
        restriction, occupied = _scout(oracle, found, least, most, neglected, rng)
        rows = len(restriction.matrix)
        dense = occupied > 2**rows / _SPARSE
        if not found:
            at_least = max(at_least, restriction.counted(oracle.resolution))
        if occupied:
            noise = math.sqrt(neglected / 2**rows)
            if dense:  # then what is usual in a bucket is noise
                noise = max(noise, float(np.median(np.abs(_less(restriction, found).buckets[0]))) / 0.6745)
            rounds.append(_Round(add_shifts(oracle, restriction), noise))
            peeled = _peel(rounds, found, oracle.resolution)
            least = rows + 2 if peeled == found else _FEWEST_ROWS
            found, agreement = peeled, None
            if not dense:
                continue
        looks += 1
        found = _fewest(found, tolerance / 2)
        agreement = compare()
        if agreement.reached or dense:
            break
        least = max(least, rows) + 2
    if agreement is None:
        looks += 1
        agreement = compare()
    if agreement.reached and not tolerance:
        at_least = sum(1 for support in found if support)
    function = _as_function(found, oracle.dim)
    return Recovery(function, agreement.reached, agreement, at_least, confidence, oracle.queries - before)


def _guessed_energy(oracle: Oracle, rng: np.random.Generator) -> float:
    """The variance at a few random inputs: it guides the search, and no answer rests on it."""
    x = rng.integers(0, 2, (min(_LOOKED, max(oracle.left // 8, 0)), oracle.dim), dtype=np.int8).astype(bool)
    return float(np.var(oracle(x))) if len(x) else 0.0


def _affordable_rows(oracle: Oracle, confidence: float) -> int:
    """The largest r for which a restriction, the smaller ones before it, and all shifts can be asked for.

    Queries for the comparison at fresh inputs, up to the fourth, or half of the limit, are kept.
    """
    spare = oracle.left - min(inputs_needed(1 - (1 - confidence) / 20), oracle.limit // 2)
    return min(oracle.dim, math.floor(math.log2(max(spare, 1) / (oracle.dim + 2))))


def _scout(
    oracle: Oracle, found: Components, least: int, most: int, neglected: float, rng: np.random.Generator
) -> tuple[Restriction, int]:
    """The smallest restriction in which what is not found yet is sparse, or the largest; and its occupied buckets."""
    rows = least
    while True:
        base = rng.integers(0, 2, oracle.dim, dtype=np.int8).astype(bool)
        restriction = restrict(oracle, draw_matrix("affine", rows, oracle.dim, rng), base)
        threshold = max(oracle.resolution, _CLEAR * math.sqrt(neglected / 2**rows))
        occupied = int((np.abs(_less(restriction, found).buckets[0]) > threshold).sum())
        if occupied <= 2**rows / _SPARSE or rows == most:
            return restriction, occupied
        rows += 1


def _peel(rounds: list[_Round], found: Components, resolution: float) -> Components:
    """Read lonely components in any restriction, subtract them in all, and so on."""
    sums = dict(found)
    for _ in range(_PEELS):
        read = 0
        for each in rounds:
            residual = _less(each.restriction, sums)
            supports, coefficients = _lonely(residual, each.noise, resolution)
            for support, coefficient in zip(supports, coefficients.tolist(), strict=True):
                positions = tuple(np.flatnonzero(support).tolist())
                sums[positions] = sums.get(positions, 0.0) + coefficient
            read += len(supports)
        sums = {support: value for support, value in sums.items() if abs(value) > resolution}
        if not read:
            break
    return sums


def _lonely(
    residual: Restriction, noise: float, resolution: float
) -> tuple[Bool[np.ndarray, "s dim"], Float64[np.ndarray, " s"]]:
    """Components that are alone in their buckets, and their coefficients."""
    clear = np.flatnonzero(np.abs(residual.buckets[0]) > max(resolution, _CLEAR * noise))
    first, others = residual.buckets[0, clear], residual.buckets[1:, clear]
    turns = others * first < 0  # bit i is in S if the shift by i turns the sign
    alike = (np.abs(np.abs(others) - np.abs(first)) <= max(resolution, _ALIKE * noise)).all(axis=0)
    right = alike & (bucket_of(residual.matrix, turns.T) == clear)
    supports = turns.T[right]
    straight = np.concatenate([first[None], others * signs(turns, np.float64)])[:, right]
    characters = signs(np.logical_xor.reduce(supports & residual.base, axis=1), np.float64)
    return supports, straight.mean(axis=0) * characters


def _fewest(found: Components, share: float) -> Components:
    """The largest components, such that the others have at most that share of the energy together."""
    ordered = sorted((support for support in found if support), key=lambda support: abs(found[support]))
    energies = np.cumsum([found[support] ** 2 for support in ordered])
    dropped = set(ordered[: int((energies <= share * energies[-1]).sum())] if share and ordered else ())
    return {support: value for support, value in found.items() if support not in dropped}


def _less(restriction: Restriction, found: Components) -> Restriction:
    supports = np.zeros((len(found), restriction.matrix.shape[1]), bool)
    for row, support in zip(supports, found, strict=True):
        row[list(support)] = True
    return restriction.without(supports, np.array(list(found.values()), float))


def _as_function(found: Components, dim: int) -> WalshFunction:
    supports = tuple(sorted(support for support in found if support))
    return WalshFunction(
        dim, supports, tuple(found[support] for support in supports), basis="chi", constant=found.get((), 0.0)
    )
