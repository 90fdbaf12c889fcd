r"""How many Fourier components has a function? Restrictions that hash them into buckets.

Source: lintilhac2026, Appendix H; Gopalan et al. 2011.
Departures: affine restrictions by default. The paper restricts to coordinates, where components that agree on the free
coordinates merge: the count is biased low, and the more so the more bits there are (its Figure 8 "wilts").
Guarantee: the number of occupied buckets is never more than the number of components (rounding aside), and the tail of
a restriction beyond its s largest buckets is on average at most the tail $\tau_s(f) = \min_g \mathbb E(f - g)^2$ over
sums g of s components. `find_sparsity` is right with its confidence if f has at most `max_sparsity` components and the
restriction is affine; if it has more, in general position, the answer is "more". `sparsity_at_most` rejects by tails
and accepts by a sum of s components that is close, so both answers are proved, with a tolerance and without general
position.
"""

import math

import numpy as np

from genscope.probe.agreement import mean_interval
from genscope.probe.oracle import Oracle
from genscope.probe.recovery import recover
from genscope.probe.restriction import Kind, Restriction, draw_matrix, restrict
from genscope.probe.verdict import Finding, Verdict, check_confidence

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
    kind: Kind = "affine",
    rows: int | None = None,
    repeats: int | None = None,
) -> Finding:
    """The largest number of occupied buckets over several restrictions, or None if it exceeds `max_sparsity`.

    Levels are swept at no further cost: the first s whose tail is empty in every restriction. `rows` and `repeats` are
    for comparisons with other settings; the confidence is that of the default ones.
    """
    check_confidence(confidence)
    if max_sparsity < 1:
        raise ValueError(f"find_sparsity got {max_sparsity=}: it counts up to 1 or more. Give such a number.")
    needed, times = rows_and_repeats(max_sparsity, confidence)
    needed = min(oracle.dim, needed if rows is None else rows)
    times = 1 if needed == oracle.dim else times if repeats is None else repeats
    before, most = oracle.queries, 0
    for _ in range(times):
        if oracle.left < 2**needed:
            return Finding(None, most, confidence, oracle.queries - before)
        most = max(most, _restricted(oracle, kind, needed, rng).counted(oracle.resolution))
        if most > max_sparsity:
            return Finding(None, most, confidence, oracle.queries - before)
    return Finding(most, most, confidence, oracle.queries - before)


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
) -> Verdict:
    r"""Whether $\tau_s(f)$, the energy outside the s largest components, is at most `tolerance`, for |f| <= `bound`.

    Accepts with a witness: a sum of at most s components which `recover` finds and which is close at fresh inputs.
    Rejects if the mean tail of restrictions is larger. Half of δ goes to either, and half of the queries.
    """
    check_confidence(confidence)
    if sparsity < 0 or not (tolerance > 0 and bound > 0):
        raise ValueError(
            f"sparsity_at_most got {sparsity=}, {tolerance=} and {bound=}: the first is not negative and the others "
            "are positive. Use find_sparsity for tolerance 0, and give a number that |f| never exceeds."
        )
    before, half = oracle.queries, 1 - (1 - confidence) / 2
    stop = oracle.queries + oracle.left // 2
    tails, look = np.zeros(0), 0
    while (size := min(max(len(tails), _FIRST), (stop - oracle.queries) >> rows)) > 0:
        drawn = [_tail(_restricted(oracle, kind, min(rows, oracle.dim), rng), sparsity) for _ in range(size)]
        tails = np.append(tails, drawn)
        look += 1
        low, high = mean_interval(tails, bound**2, (1 - half) / (look * (look + 1)))
        if low > tolerance:
            return Verdict(False, confidence, oracle.queries - before)
        if high <= tolerance:  # no proof that τ is small: merging hides energy. But there is nothing left to see
            break
    recovered = recover(oracle, rng=rng, confidence=half, tolerance=tolerance, bound=bound)
    proved = recovered.complete and recovered.agreement.share == 1  # of the mean, and not point by point
    if proved and recovered.function.sparsity <= sparsity:
        return Verdict(True, confidence, oracle.queries - before)
    return Verdict(None, confidence, oracle.queries - before)


def _restricted(oracle: Oracle, kind: Kind, rows: int, rng: np.random.Generator) -> Restriction:
    base = rng.integers(0, 2, oracle.dim, dtype=np.int8).astype(bool)
    return restrict(oracle, draw_matrix(kind, rows, oracle.dim, rng), base)


def _tail(restriction: Restriction, sparsity: int) -> float:
    """Energy outside the largest buckets; the first, where the constant falls, is left out of it."""
    squares = np.sort(restriction.buckets[0, 1:] ** 2)
    return float(squares[: max(0, len(squares) - sparsity)].sum())
