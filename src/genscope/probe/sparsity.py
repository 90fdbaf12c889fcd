r"""How many Fourier components has a function? Restrictions that hash them into buckets.

Source: lintilhac2026, Appendix H; Gopalan et al. 2011.
Departures: affine restrictions by default. The paper restricts to coordinates, where components that agree on the free
coordinates merge: the count is biased low, and the more so the more bits there are (its Figure 8 "wilts").
Guarantee: the number of occupied buckets is never more than the number of components (rounding aside), and the tail of
a restriction beyond its s largest buckets is on average at most the tail $\tau_s(f) = \min_g \mathbb E(f - g)^2$ over
sums g of s components. That no more buckets are occupied proves little: components may cancel in all of them, as those
of an AND of many bits do. So `find_sparsity` counts the components of a witness (`probe.witness`), with the promise
that `probe.degree` states; without one it cannot tell. A caller who knows that the coefficients are in general position
(`generic`), or that there are at most `max_sparsity` of them, needs none: occupied buckets are then right with the
confidence, if the restriction is affine.
`sparsity_at_most` rejects by tails and accepts by a sum of s components that is close, so both answers are proved, with
a tolerance and without general position.
"""

import math

import numpy as np

from genscope.probe.agreement import mean_interval, variance_interval
from genscope.probe.oracle import Oracle
from genscope.probe.outcome import CANNOT_TELL, Finding, Outcome, check_confidence
from genscope.probe.recovery import recover
from genscope.probe.restriction import Kind, Restriction, draw_matrix, restrict
from genscope.probe.witness import Witness, find_witness
from genscope.refusal import Refusal

_FIRST = 4  # restrictions of the first look


def rows_and_repeats(max_sparsity: int, confidence: float) -> tuple[int, int]:
    r"""Size r and number n of affine restrictions that all merge some of s components with probability at most δ.

    A pair of the s components and the constant meets with probability $2^{-r}$, so one restriction merges with
    probability at most $p = \frac{s(s+1)}2 2^{-r} \le \frac14$, and all n with at most $p^n$.
    """
    pairs = max_sparsity * (max_sparsity + 1) / 2
    rows = math.ceil(math.log2(pairs)) + 2
    return rows, math.ceil(math.log(1 - confidence) / math.log(pairs / 2**rows))


def find_sparsity(
    oracle: Oracle,
    *,
    rng: np.random.Generator,
    max_sparsity: int = 32,
    confidence: float = 0.99,
    generic: bool = False,
    kind: Kind = "affine",
    rows: int | None = None,
    repeats: int | None = None,
) -> Finding:
    """The components of a witness; in general position, the largest number of occupied buckets over restrictions.

    That is None if it exceeds `max_sparsity`. Levels are swept at no further cost: the first s whose tail is empty in
    every restriction. `kind`, `rows` and `repeats` are for comparisons with other settings; the confidence is that of
    the default ones.
    """
    check_confidence(confidence)
    if max_sparsity < 1:
        raise Refusal(f"find_sparsity got {max_sparsity=}: it must be at least 1. Give 1 or more.")
    before = oracle.queries
    if not generic:
        found = find_witness(oracle, rng=rng, confidence=confidence)
        if isinstance(found, Witness):
            count = found.tabled.sparsity
            return Finding(count, count, confidence, oracle.queries - before, found.guarantee)
        return Finding(None, found.recovery.at_least, confidence, oracle.queries - before, CANNOT_TELL)
    needed, times = rows_and_repeats(max_sparsity, confidence)
    needed = min(oracle.dim, needed if rows is None else rows)
    times = 1 if needed == oracle.dim else times if repeats is None else repeats
    most = 0
    for _ in range(times):
        if oracle.left < 2**needed:
            return Finding(None, most, confidence, oracle.queries - before, CANNOT_TELL)
        most = max(most, _restricted(oracle, kind, needed, rng).counted(oracle.resolution))
        if most > max_sparsity:
            return Finding(None, most, confidence, oracle.queries - before, f"Above {max_sparsity}, the last level.")
    guarantee = f"With the confidence, if there are at most {max_sparsity} components, or in general position."
    return Finding(most, most, confidence, oracle.queries - before, guarantee)


def sparsity_at_most(
    oracle: Oracle,
    sparsity: int,
    *,
    tolerance: float,
    bound: float,
    rng: np.random.Generator,
    confidence: float = 0.99,
    kind: Kind = "affine",
    rows: int = 8,
) -> Outcome:
    r"""Whether $\tau_s(f)$, the energy outside the s largest components, is at most a share of all, the tolerance.

    For |f| <= `bound`. Accepts with a witness: a sum of at most s components which `recover` finds and which is close
    at fresh inputs. Rejects if the mean tail of restrictions is larger. Half of δ goes to either, and half of the
    queries.
    """
    check_confidence(confidence)
    if sparsity < 0 or not (0 < tolerance < 1 and bound > 0):
        raise Refusal(
            f"sparsity_at_most got sparsity={sparsity!r}, tolerance={tolerance!r} and bound={bound!r}: the sparsity "
            "must not be negative, the tolerance must be a share between 0 and 1, and the bound must be positive. "
            "Use find_sparsity for tolerance 0, and give a bound that |f| never exceeds."
        )
    before, half = oracle.queries, 1 - (1 - confidence) / 2
    guarantee = f"With confidence {confidence:g}, if |f| never exceeds {bound:g}."
    stop = oracle.queries + oracle.left // 2
    tails, values, look = np.zeros(0), np.zeros(0), 0
    while (size := min(max(len(tails), _FIRST), (stop - oracle.queries) >> rows)) > 0:
        drawn = [_restricted(oracle, kind, min(rows, oracle.dim), rng) for _ in range(size)]
        tails = np.append(tails, [tail_beyond(each, sparsity) for each in drawn])
        values = np.append(values, [each.buckets[0].sum() for each in drawn])  # at the base: a random input
        look += 1
        delta = (1 - half) / (look * (look + 1)) / 2  # half for the tails, half for the variance
        low, high = mean_interval(tails, bound**2, delta)
        least, largest = (tolerance * each for each in variance_interval(values, bound, delta))
        if low > largest:
            return Outcome(False, confidence, oracle.queries - before, guarantee)
        if high <= least:  # no proof that τ is small: merging hides energy. But there is nothing left to see
            break
    recovered = recover(oracle, rng=rng, confidence=half, tolerance=tolerance, bound=bound)
    proved = recovered.complete and recovered.agreement.share == 1  # of the mean, and not point by point
    if proved and recovered.function.sparsity <= sparsity:
        return Outcome(True, confidence, oracle.queries - before, guarantee)
    return Outcome(None, confidence, oracle.queries - before, CANNOT_TELL)


def _restricted(oracle: Oracle, kind: Kind, rows: int, rng: np.random.Generator) -> Restriction:
    base = rng.integers(0, 2, oracle.dim, dtype=np.int8).astype(bool)
    return restrict(oracle, draw_matrix(kind, rows, oracle.dim, rng), base)


def tail_beyond(restriction: Restriction, sparsity: int) -> float:
    """Energy outside the largest buckets; the first, where the constant falls, is left out of it."""
    squares = np.sort(restriction.buckets[0, 1:] ** 2)
    return float(squares[: max(0, len(squares) - sparsity)].sum())
