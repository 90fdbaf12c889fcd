r"""The testers of Appendix H as they are published, to be compared with ours: they may be wrong, and say so.

Degree: at every level k, $\frac1\varepsilon\log\frac1\delta$ trials of an alternating sum over the $2^q$ corners,
q = k + 1, of a cube with random sides: the value at one corner against the polynomial of degree k through the others.
The text leaves open which sides. With random *directions* (the cited test of Alon et al. 2003, with signs in place of
arithmetic modulo 2) the character of S survives if every side holds an odd number of its bits, which has the
probability $2^{-q}$ for every S but the empty one: the first level that is accepted tells how many trials there were
and how many components there are, and nothing of the degree. With random *coordinates*, one bit a side, S survives if
it contains all of them, with the probability $\binom{|S|}q/\binom Tq$ (`containment`): degrees are never
overestimated, and underestimated ("wilting") unless $\varepsilon$ is below about $s/\binom Tk$, which falls with T. The
blocks of `probe.degree` have at least $q!/(q+1)^q$, whatever T.

Sparsity: the tail beyond the s largest buckets of a restriction to r coordinates, against the share ε of the
restriction's energy, in $\lceil\log\frac1\delta\rceil$ restrictions.

Source: lintilhac2026, Appendix H.
Departures: the numbers of trials and of free coordinates are lost in our text; these are the least that its prose asks
for. Energies are shares, not absolute.
Guarantee: none of what is accepted. With coordinates a level is rejected by something that is not zero, so that degree
and sparsity are at least what is found, rounding aside.
"""

import math
from typing import Literal

import numpy as np

from genscope.probe.degree import LARGEST, alternating_means
from genscope.probe.oracle import BATCH, Oracle
from genscope.probe.outcome import CANNOT_TELL, Finding, Outcome, check_confidence, sweep
from genscope.probe.restriction import draw_matrix, restrict
from genscope.probe.sparsity import tail_beyond
from genscope.refusal import Refusal

Sides = Literal["coordinates", "directions"]
ROWS = 12  # free coordinates
_NO_PROMISE = "As published: an accepted level may be too low."
_NO_DEGREE = "As published: random directions see every component alike, so that this is no degree."


def containment(sides: int, size: int, dim: int) -> float:
    r"""$\binom mq/\binom Tq$: how often m bits of T contain q random ones.

    >>> containment(1, 5, 20), round(1 / containment(5, 5, 20)), round(1 / containment(5, 5, 64))
    (0.25, 15504, 7624512)
    """
    return math.comb(size, sides) / math.comb(dim, sides)


def trials_of(proximity: float, confidence: float) -> int:
    r"""$\lceil\frac1\varepsilon\log\frac1\delta\rceil$."""
    return math.ceil(-math.log1p(-confidence) / proximity)


def published_degree(
    oracle: Oracle,
    *,
    proximity: float,
    rng: np.random.Generator,
    sides: Sides = "coordinates",
    max_degree: int = 8,
    confidence: float = 0.99,
) -> Finding:
    """The first level whose trials all vanish."""
    _check(proximity, confidence)
    if sides not in ("coordinates", "directions") or not 0 <= max_degree <= LARGEST:
        raise Refusal(
            f"published_degree got {sides=} and {max_degree=}: sides must be coordinates or directions, and max_degree "
            f"0 to {LARGEST}. Correct the one that is not."
        )
    trials = trials_of(proximity, confidence)
    guarantee = _NO_PROMISE if sides == "coordinates" else _NO_DEGREE

    def vanishes(degree: int, _: float) -> Outcome:
        before = oracle.queries
        if degree >= oracle.dim:
            return Outcome(True, confidence, 0, guarantee)
        blocks, done = degree + 1, 0
        while done < trials:
            size = min(max(1, BATCH >> blocks), trials - done, oracle.left >> blocks)
            if size <= 0:
                return Outcome(None, confidence, oracle.queries - before, CANNOT_TELL)
            base = rng.integers(0, 2, (size, oracle.dim), dtype=np.int8).astype(bool)
            found = alternating_means(oracle, base, _drawn_sides(sides, blocks, size, oracle.dim, rng))
            if (np.abs(found) > oracle.resolution).any():
                return Outcome(False, confidence, oracle.queries - before, guarantee)
            done += size
        return Outcome(True, confidence, oracle.queries - before, guarantee)

    return sweep(vanishes, range(min(max_degree, oracle.dim) + 1), confidence=confidence)


def published_sparsity(
    oracle: Oracle,
    *,
    proximity: float,
    rng: np.random.Generator,
    rows: int = ROWS,
    max_sparsity: int = 32,
    confidence: float = 0.99,
) -> Finding:
    """The first s for which no restriction to coordinates has more than the share ε of its energy beyond s buckets."""
    _check(proximity, confidence, least=0.0)
    if rows < 1 or max_sparsity < 1:
        raise Refusal(
            f"published_sparsity got {rows=} and {max_sparsity=}: both must be at least 1. Increase the one that is "
            "not."
        )
    before, most, free = oracle.queries, 0, min(rows, oracle.dim)
    for _ in range(1 if free == oracle.dim else math.ceil(-math.log1p(-confidence))):
        if oracle.left < 2**free:
            return Finding(None, most, confidence, oracle.queries - before, CANNOT_TELL)
        base = rng.integers(0, 2, oracle.dim, dtype=np.int8).astype(bool)
        found = restrict(oracle, draw_matrix("coordinate", free, oracle.dim, rng), base)
        counted = found.counted(oracle.resolution)
        allowed = proximity * tail_beyond(found, 0)
        most = max(most, next(s for s in range(counted + 1) if s == counted or tail_beyond(found, s) <= allowed))
    value = most if most <= max_sparsity else None
    return Finding(value, most, confidence, oracle.queries - before, _NO_PROMISE)


def _drawn_sides(sides: Sides, count: int, trials: int, dim: int, rng: np.random.Generator) -> list[np.ndarray]:
    if sides == "directions":
        return list(rng.integers(0, 2, (count, trials, dim), dtype=np.int8).astype(bool))
    order = np.argsort(rng.random((trials, dim)), axis=1)[:, :count]  # different coordinates
    return [np.arange(dim) == order[:, side : side + 1] for side in range(count)]


def _check(proximity: float, confidence: float, *, least: float = 1e-9) -> None:
    check_confidence(confidence)
    if not least <= proximity < 1:
        raise Refusal(
            f"a published tester got {proximity=}: it must be a share, at least {least:g} and below 1. Give, for "
            "example, 0.01."
        )
