r"""Does a function agree with a sum of Fourier components? Asked at fresh random inputs.

Guarantee: if no disagreement is seen at m independent inputs, then with confidence $1 - \delta$ at most a share
$\log(1/\delta)/m$ of all inputs disagree. A sum of w characters that is not zero is non-zero on at least a share $1/w$
of the inputs, one of degree k on at least $2^{-k}$: a difference of at most $m/\log(1/\delta)$ components, or of degree
at most its binary logarithm, would have been seen. A tolerance E is a share of the function's energy, which is its
variance: the constant is no part of it, and a function may be multiplied by a number or have one added. Either the mean
squared difference is bounded by E times the variance, by empirical Bernstein intervals of both whose range rests on a
bound of |f|, or, if no square above that is seen, it is at most that on all but such a share of the inputs (`share` is
then less than 1).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64

from genscope.probe.oracle import Oracle

TERMS = 1024  # a difference of so many components is seen with the confidence asked for
_FIRST = 64  # inputs of the first look: most wrong sums end there
_LOOK = 1024  # inputs of the first look with a tolerance; each doubles them


@dataclass(frozen=True)
class Agreement:
    """What m fresh inputs say; `reached` is None if they were too few to tell."""

    reached: bool | None
    inputs: int
    share: float  # of inputs that may disagree, with the confidence asked for; 1 if a mean was bounded, or nothing
    mean_squared_error: float
    largest_error: float
    variance: float  # of the function at these inputs

    @property
    def left_out(self) -> float:
        """The mean squared error as a share of the function's energy."""
        if not self.mean_squared_error:
            return 0.0
        return self.mean_squared_error / self.variance if self.variance else math.inf

    @property
    def terms(self) -> int:
        """A non-zero difference of at most this many components would have been seen."""
        return int(1 / self.share)


def agree(
    oracle: Oracle,
    function: Callable[[Bool[np.ndarray, "n dim"]], Float64[np.ndarray, " n"]],
    *,
    rng: np.random.Generator,
    confidence: float,
    tolerance: float = 0.0,
    bound: float | None = None,
    other_bound: float | None = None,
) -> Agreement:
    """Compare at fresh inputs; with a tolerance E, whether the mean squared difference is at most E of the energy.

    Without one, inputs near zeros and ones are asked too: they are no sample, and can only show a disagreement.

    `bound` is one of |f|, and `other_bound` of what it is compared with; None takes the largest value of f seen.
    """
    if tolerance:
        return _close(oracle, function, rng, confidence, tolerance, bound, other_bound)
    wanted = inputs_needed(confidence)
    seen = _compare(oracle, function, rng, min(_FIRST, wanted))
    right = not (seen[1] > oracle.resolution).any() and _right_at_special_inputs(oracle, function)
    if right:
        seen = np.append(seen, _compare(oracle, function, rng, max(0, wanted - _FIRST)), axis=1)
    if not right or (seen[1] > oracle.resolution).any():
        return _said(False, seen, 1.0)
    if seen.shape[1] < wanted:
        return _said(None, seen, 1.0)
    return _said(True, seen, math.log(1 / (1 - confidence)) / wanted)


def inputs_needed(confidence: float) -> int:
    r"""$1024\log(1/\delta)$ fresh inputs: fewer could not promise what is promised, and nothing is said of them."""
    return math.ceil(TERMS * math.log(1 / (1 - confidence)))


def _close(oracle, function, rng, confidence, tolerance, bound, other_bound) -> Agreement:
    seen, look, most_left = np.zeros((2, 0)), 0, oracle.left // 2  # the other half for those who go on searching
    while (size := min(max(seen.shape[1], _LOOK), most_left - seen.shape[1])) > 0:
        seen = np.append(seen, _compare(oracle, function, rng, size), axis=1)
        look += 1
        most = oracle.scale if bound is None else bound
        apart = most + (oracle.scale if other_bound is None else other_bound)
        # A third each for the mean, the variance and the largest.
        delta = (1 - confidence) / (look * (look + 1)) / 3
        low, high = mean_interval(seen[1] ** 2, apart**2, delta)
        least, largest = (tolerance * each for each in variance_interval(seen[0], most, delta))
        if low > largest or high <= least:
            return _said(high <= least, seen, 1.0)
        if seen.shape[1] >= TERMS * math.log(1 / delta) and seen[1].max() <= max(oracle.resolution, math.sqrt(least)):
            return _said(True, seen, math.log(1 / delta) / seen.shape[1])
    return _said(None, seen, 1.0)


def _right_at_special_inputs(oracle: Oracle, function: Callable) -> bool:
    """Zeros, ones, and either with one bit flipped: no sample, but what an AND or OR of many bits does there shows."""
    near = np.concatenate([np.zeros((1, oracle.dim), bool), np.eye(oracle.dim, dtype=bool)])
    special = np.concatenate([near[:1], ~near[:1], near[1:], ~near[1:]])[: max(oracle.left // 4, 0)]
    return not len(special) or not (np.abs(oracle(special) - function(special)) > oracle.resolution).any()


def _compare(oracle: Oracle, function: Callable, rng: np.random.Generator, size: int) -> np.ndarray:
    """Values at fresh inputs, and how far the function is from them."""
    x = rng.integers(0, 2, (min(size, max(oracle.left, 0)), oracle.dim), dtype=np.int8).astype(bool)
    if not len(x):
        return np.zeros((2, 0))
    values = oracle(x)
    return np.stack([values, np.abs(values - function(x))])


def _said(reached: bool | None, seen: np.ndarray, share: float) -> Agreement:
    values, errors = seen
    square, variance = (float(np.mean(errors**2)), float(np.var(values))) if len(errors) else (math.nan, math.nan)
    return Agreement(reached, len(errors), share, square, float(errors.max(initial=0.0)), variance)


def variance_interval(values: np.ndarray, bound: float, delta: float) -> tuple[float, float]:
    r"""Interval for the variance of independent numbers in [-bound, bound], from half the squared differences of pairs.

    Covers with probability $1 - \delta$; no such variance exceeds the square of the bound.
    """
    pairs = values[: len(values) // 2 * 2].reshape(-1, 2)
    low, high = mean_interval((pairs[:, 0] - pairs[:, 1]) ** 2 / 2, 2 * bound**2, delta)
    return low, min(high, bound**2)


def mean_interval(samples: np.ndarray, most: float, delta: float) -> tuple[float, float]:
    r"""Interval for the mean of independent numbers in [0, most] that covers with probability $1 - \delta$.

    $\bar x \pm (\sqrt{2 V \log(4/\delta)/n} + 7\,\mathrm{most} \log(4/\delta)/(3(n - 1)))$, half of δ on either side.
    """
    count = len(samples)
    if count < 2:
        return 0.0, most
    log = math.log(4 / delta)
    reach = math.sqrt(2 * float(samples.var(ddof=1)) * log / count) + 7 * most * log / (3 * (count - 1))
    middle = float(samples.mean())
    return max(0.0, middle - reach), min(most, middle + reach)
