r"""Is the Fourier degree of a function at most k? Differences along disjoint random blocks of bits.

Each bit gets one of the labels 1, ..., q = k + 1 or the label *dead*, at random, and
$D = 2^{-q} \sum_{y \in \{0,1\}^q} (-1)^{|y|} f(z \oplus \bigoplus_b y_b 1_{B_b})$ at a random z. The character of S
survives iff every block holds an odd number of bits of S: D = 0 for degree at most k, and
$\mathbb E D^2 = \sum_S \hat f(S)^2 \pi_q(|S|)$ with $\pi_q$ = `survival`, at least $q!/(q+1)^q$ for $|S| \ge q$.

Source: lintilhac2026, Appendix H.
Departures: the paper cites a test of the degree over the field of two elements (Alon et al. 2003), by which every
parity is linear. Without dead bits only the S with |S| of the parity of q would be seen. One could multiply
the trials by a bound of the sparsity where coefficients are not in general position; a witness costs far less.
Guarantee: a level is rejected by a difference that is not zero, which is certain (rounding aside). Differences that
vanish prove little: surviving characters may cancel at z, as those of an AND do. So the degree that is found is that of
a witness (`probe.witness`), which with the confidence agrees with the function on all but one input in 1024: it is the
function's own if that differs from it by at most 1024 components or by a function of degree at most 10, whatever the
coefficients. Without a witness the answer is that it cannot be told. A caller who knows that the coefficients are in
general position (`generic`), as drawn ones are, needs none: then a lower level is accepted with probability at most
1 - confidence. `degree_within` needs neither, but a bound of |f|, and decides whether the energy above degree k exceeds
the share E.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float64

from genscope.probe.agreement import mean_interval, variance_interval
from genscope.probe.oracle import BATCH, Oracle
from genscope.probe.outcome import CANNOT_TELL, CERTAIN, Finding, Outcome, check_confidence, sweep
from genscope.probe.witness import Witness, find_witness
from genscope.refusal import Refusal

LARGEST = 16  # levels: a trial takes 2^(k + 1) queries, and there are e^k of them
_FIRST = 8  # trials of the first look
_GENERIC = "With the confidence, if the coefficients are in general position."


def survival(blocks: int, size: int) -> float:
    r"""$\pi_q(m) = 2^{-q} \sum_j (-1)^j \binom qj (1 - 2j/(q+1))^m$: how often m bits fall oddly into all q blocks.

    >>> survival(1, 1), survival(2, 1), round(survival(2, 3), 4)
    (0.5, 0.0, 0.2222)
    """
    terms = [(-1) ** j * math.comb(blocks, j) * (1 - 2 * j / (blocks + 1)) ** size for j in range(blocks + 1)]
    return math.fsum(terms) / 2**blocks if size >= blocks else 0.0


def degree_at_most(
    oracle: Oracle, degree: int, *, rng: np.random.Generator, confidence: float = 0.99, generic: bool = False
) -> Outcome:
    """Whether the degree is at most `degree`; rejects at the first difference that is not zero.

    `generic` is the caller's word that the coefficients are in general position; otherwise a witness is looked for.
    """
    _check(degree, confidence)
    if degree >= oracle.dim:
        return Outcome(True, confidence, 0, CERTAIN)
    trials = trials_needed(degree, confidence=confidence)
    before, done = oracle.queries, 0
    while done < trials:
        size = min(max(done, _FIRST), trials - done, oracle.left >> (degree + 1))
        if size <= 0:
            return Outcome(None, confidence, oracle.queries - before, CANNOT_TELL)
        if (np.abs(differences(oracle, degree + 1, size, rng)) > oracle.resolution).any():
            return Outcome(False, confidence, oracle.queries - before, CERTAIN)
        done += size
    if generic:
        return Outcome(True, confidence, oracle.queries - before, _GENERIC)
    found = find_witness(oracle, rng=rng, confidence=confidence)
    if not isinstance(found, Witness):
        return Outcome(None, confidence, oracle.queries - before, CANNOT_TELL)
    return Outcome(found.tabled.degree <= degree, confidence, oracle.queries - before, found.guarantee)


def trials_needed(degree: int, *, confidence: float) -> int:
    r"""$\lceil \log(1/\delta) (q+1)^q/q! \rceil$ trials of $2^q$ queries."""
    blocks = degree + 1
    return math.ceil(math.log(1 / (1 - confidence)) * (blocks + 1) ** blocks / math.factorial(blocks))


def degree_within(
    oracle: Oracle,
    degree: int,
    *,
    tolerance: float,
    bound: float,
    rng: np.random.Generator,
    confidence: float = 0.99,
) -> Outcome:
    r"""Whether $W^{>k}$, the energy above the degree, is at most the share ε = `tolerance` of the variance V.

    For a function with |f| <= `bound`. Accepts if it is proved that $W^{>k} \le \varepsilon V$, rejects if
    $\mathbb E D^2 > \varepsilon V\,q!/(q+1)^q$ is, which proves $W^{>k} > 2^q\varepsilon V\,q!/(q+1)^q$; doubles the
    trials until one of them, or cannot tell.
    """
    _check(degree, confidence)
    if not (0 < tolerance < 1 and bound > 0):
        raise Refusal(
            f"degree_within got {tolerance=} and {bound=}: the tolerance must be a share between 0 and 1, and the "
            "bound must be positive. Use degree_at_most for tolerance 0, and give a bound that |f| never exceeds."
        )
    blocks = degree + 1
    share = tolerance * survival(blocks, blocks)
    before, look, squares, values = oracle.queries, 0, np.zeros(0), np.zeros(0)
    while (size := min(max(len(squares), _FIRST), oracle.left // (2**blocks + 1))) > 0:
        squares = np.append(squares, differences(oracle, blocks, size, rng) ** 2)
        x = rng.integers(0, 2, (size, oracle.dim), dtype=np.int8).astype(bool)
        values = np.append(values, oracle(x))
        look += 1
        delta = (1 - confidence) / (look * (look + 1)) / 2  # half for the differences, half for the variance
        low, high = mean_interval(squares, bound**2, delta)
        least, largest = (share * each for each in variance_interval(values, bound, delta))
        if low > largest or high <= least:
            guarantee = f"With confidence {confidence:g}, if |f| never exceeds {bound:g}."
            return Outcome(high <= least, confidence, oracle.queries - before, guarantee)
    return Outcome(None, confidence, oracle.queries - before, CANNOT_TELL)


def find_degree(
    oracle: Oracle,
    *,
    rng: np.random.Generator,
    max_degree: int = 8,
    confidence: float = 0.99,
    generic: bool = False,
) -> Finding:
    """The degree of a witness; in general position, the first level to `max_degree` that `degree_at_most` accepts.

    Without a witness the degree is None, and not below the levels to `max_degree` that differences reject.
    """
    _check(max_degree, confidence)
    before = oracle.queries
    found = None if generic else find_witness(oracle, rng=rng, confidence=confidence)
    if isinstance(found, Witness):
        degree = found.tabled.degree
        return Finding(degree, degree, confidence, oracle.queries - before, found.guarantee)
    swept = sweep(
        lambda degree, each: degree_at_most(oracle, degree, rng=rng, confidence=each, generic=True),
        range(min(max_degree, oracle.dim) + 1),
        confidence=confidence,
    )
    if generic:
        return swept
    return replace(swept, value=None, queries=oracle.queries - before, guarantee=CANNOT_TELL)


def find_degree_within(
    oracle: Oracle,
    *,
    tolerance: float,
    bound: float,
    rng: np.random.Generator,
    max_degree: int = 8,
    confidence: float = 0.99,
) -> Finding:
    """The first level that `degree_within` accepts; None if it cannot tell at some level before."""
    _check(max_degree, confidence)
    return sweep(
        lambda degree, each: degree_within(oracle, degree, tolerance=tolerance, bound=bound, rng=rng, confidence=each),
        range(min(max_degree, oracle.dim) + 1),
        confidence=confidence,
    )


def differences(oracle: Oracle, blocks: int, trials: int, rng: np.random.Generator) -> Float64[np.ndarray, " trials"]:
    """D of independent trials, at 2^blocks queries each."""
    parts = []
    together = max(1, BATCH >> blocks)
    for start in range(0, trials, together):
        size = min(together, trials - start)
        labels = rng.integers(0, blocks + 1, (size, oracle.dim), dtype=np.int8)  # label 0 is dead
        base = rng.integers(0, 2, (size, oracle.dim), dtype=np.int8).astype(bool)
        parts.append(alternating_means(oracle, base, [labels == block for block in range(1, blocks + 1)]))
    return np.concatenate(parts)


def alternating_means(
    oracle: Oracle, base: Bool[np.ndarray, "trials dim"], flips: Sequence[Bool[np.ndarray, "trials dim"]]
) -> Float64[np.ndarray, " trials"]:
    r"""$2^{-q}\sum_y(-1)^{|y|}f(z\oplus\bigoplus_by_bd_b)$ of each trial, from base z along q directions."""
    x, sign = base[None], np.ones(1)
    for flip in flips:
        x, sign = np.concatenate([x, x ^ flip]), np.concatenate([sign, -sign])
    return sign @ oracle(x.reshape(-1, oracle.dim)).reshape(len(sign), len(base)) / len(sign)


def _check(degree: int, confidence: float) -> None:
    check_confidence(confidence)
    if not 0 <= degree <= LARGEST:
        raise Refusal(
            f"got {degree=}: testing a degree k takes about e^k 2^(k+1) queries, so it must be 0 to {LARGEST}. Use "
            "recover instead, which finds the components at any degree."
        )
