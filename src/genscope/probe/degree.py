r"""Is the Fourier degree of a function at most k? Differences along disjoint random blocks of bits.

Each bit gets one of the labels 1, ..., q = k + 1 or the label *dead*, at random, and
$D = 2^{-q} \sum_{y \in \{0,1\}^q} (-1)^{|y|} f(z \oplus \bigoplus_b y_b 1_{B_b})$ at a random z. The character of S
survives iff every block holds an odd number of bits of S: D = 0 for degree at most k, and
$\mathbb E D^2 = \sum_S \hat f(S)^2 \pi_q(|S|)$ with $\pi_q$ = `survival`, at least $q!/(q+1)^q$ for $|S| \ge q$.

Source: lintilhac2026, Appendix H; sharpness.md, Section 5.1.
Departures: the paper cites a test of the degree over the field of two elements (Alon et al. 2003), by which every
parity is linear. Without dead bits only the S with |S| of the parity of q would be seen.
Guarantee: a level at or above the degree is always accepted by `degree_at_most` (rounding aside). A lower one is with
probability at most 1 - confidence: of coefficients in general position (`sparsity_bound` None), or of any function
with at most `sparsity_bound` components, since w surviving characters are non-zero on at least a share 1/w of all z.
`degree_within` needs neither, but a bound of |f|, and decides whether the energy above degree k exceeds E.
"""

import math

import numpy as np
from jaxtyping import Float64

from genscope.probe.agreement import mean_interval
from genscope.probe.oracle import BATCH, Oracle
from genscope.probe.verdict import Finding, Verdict, check_confidence, sweep

LARGEST = 16  # levels: a trial takes 2^(k + 1) queries, and there are e^k of them
_FIRST = 8  # trials of the first look


def survival(blocks: int, size: int) -> float:
    r"""$\pi_q(m) = 2^{-q} \sum_j (-1)^j \binom qj (1 - 2j/(q+1))^m$: how often m bits fall oddly into all q blocks.

    >>> survival(1, 1), survival(2, 1), round(survival(2, 3), 4)
    (0.5, 0.0, 0.2222)
    """
    terms = [(-1) ** j * math.comb(blocks, j) * (1 - 2 * j / (blocks + 1)) ** size for j in range(blocks + 1)]
    return math.fsum(terms) / 2**blocks if size >= blocks else 0.0


def degree_at_most(
    oracle: Oracle,
    degree: int,
    *,
    rng: np.random.Generator,
    confidence: float = 0.99,
    sparsity_bound: int | None = None,
) -> Verdict:
    """Whether the degree is at most `degree`; rejects at the first difference that is not zero."""
    _check(degree, confidence)
    if degree >= oracle.dim:
        return Verdict(True, confidence, 0)
    trials = trials_needed(degree, confidence=confidence, sparsity_bound=sparsity_bound)
    before, done = oracle.queries, 0
    while done < trials:
        size = min(max(done, _FIRST), trials - done, oracle.left >> (degree + 1))
        if size <= 0:
            return Verdict(None, confidence, oracle.queries - before)
        if (np.abs(differences(oracle, degree + 1, size, rng)) > oracle.resolution).any():
            return Verdict(False, confidence, oracle.queries - before)
        done += size
    return Verdict(True, confidence, oracle.queries - before)


def trials_needed(degree: int, *, confidence: float, sparsity_bound: int | None = None) -> int:
    r"""$\lceil \log(1/\delta) (q+1)^q/q! \rceil$ trials of $2^q$ queries, times the bound on the sparsity if given."""
    blocks = degree + 1
    rate = math.factorial(blocks) / (blocks + 1) ** blocks / (sparsity_bound or 1)
    return math.ceil(math.log(1 / (1 - confidence)) / rate)


def degree_within(
    oracle: Oracle,
    degree: int,
    *,
    tolerance: float,
    bound: float,
    rng: np.random.Generator,
    confidence: float = 0.99,
) -> Verdict:
    r"""Whether the energy $W^{>k}$ above the degree is at most `tolerance`, for a function with |f| <= `bound`.

    Accepts if it is proved that $W^{>k} \le \varepsilon$, rejects if $\mathbb E D^2 > \varepsilon\,q!/(q+1)^q$ is,
    which proves $W^{>k} > 2^q\varepsilon\,q!/(q+1)^q$; doubles the trials until one of them, or cannot tell.
    """
    _check(degree, confidence)
    if not (tolerance > 0 and bound > 0):
        raise ValueError(
            f"degree_within got {tolerance=} and {bound=}: both are positive. Use degree_at_most for tolerance 0, and "
            "give a number that |f| never exceeds."
        )
    blocks = degree + 1
    threshold = tolerance * survival(blocks, blocks)
    before, look, squares = oracle.queries, 0, np.zeros(0)
    while (size := min(max(len(squares), _FIRST), oracle.left >> blocks)) > 0:
        squares = np.append(squares, differences(oracle, blocks, size, rng) ** 2)
        look += 1
        low, high = mean_interval(squares, bound**2, (1 - confidence) / (look * (look + 1)))
        if low > threshold or high <= threshold:
            return Verdict(high <= threshold, confidence, oracle.queries - before)
    return Verdict(None, confidence, oracle.queries - before)


def find_degree(
    oracle: Oracle,
    *,
    rng: np.random.Generator,
    max_degree: int = 8,
    confidence: float = 0.99,
    sparsity_bound: int | None = None,
) -> Finding:
    """The first level that `degree_at_most` accepts, from 0 to `max_degree`."""
    _check(max_degree, confidence)
    return sweep(
        lambda degree, each: degree_at_most(oracle, degree, rng=rng, confidence=each, sparsity_bound=sparsity_bound),
        range(min(max_degree, oracle.dim) + 1),
        confidence=confidence,
    )


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
        x = rng.integers(0, 2, (1, size, oracle.dim), dtype=np.int8).astype(bool)
        sign = np.ones(1)
        for block in range(1, blocks + 1):
            x, sign = np.concatenate([x, x ^ (labels == block)]), np.concatenate([sign, -sign])
        values = oracle(x.reshape(-1, oracle.dim)).reshape(len(sign), size)
        parts.append(sign @ values / len(sign))
    return np.concatenate(parts)


def _check(degree: int, confidence: float) -> None:
    check_confidence(confidence)
    if not 0 <= degree <= LARGEST:
        raise ValueError(
            f"got {degree=}: the test of a degree takes about e^k 2^(k+1) queries and serves 0 to {LARGEST}. Recover "
            "the components instead: recover finds them at any degree."
        )
