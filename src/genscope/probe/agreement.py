r"""Does a function agree with a sum of Fourier components? Asked at fresh random inputs.

Source: None (Clopper and Pearson 1934 for shares; Maurer and Pontil 2009, Theorem 4, for means).
Departures: None.
Guarantee: if no disagreement is seen at m independent inputs, then with confidence $1 - \delta$ at most a share
$\log(1/\delta)/m$ of all inputs disagree. A sum of w characters that is not zero is non-zero on at least a share $1/w$
of the inputs, one of degree k on at least $2^{-k}$: a difference of at most $m/\log(1/\delta)$ components, or of degree
at most its binary logarithm, would have been seen. With a tolerance E, either the mean squared difference is bounded by
an empirical Bernstein interval, whose range rests on a bound of |f|, or, if no square above E is seen, it is at most E
on all but such a share of the inputs (`share` is then less than 1).
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
_FEWEST = 16  # with fewer inputs nothing is said


@dataclass(frozen=True)
class Agreement:
    """What m fresh inputs say; `reached` is None if they were too few to tell."""

    reached: bool | None
    inputs: int
    share: float  # of inputs that may disagree, with the confidence asked for; 1 if a mean was bounded, or nothing
    mean_squared_error: float
    largest_error: float

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
) -> Agreement:
    """Compare at fresh inputs; with a tolerance E, whether the mean squared difference is at most E.

    Without one, inputs near zeros and ones are asked too: they are no sample, and can only show a disagreement.

    `bound` is one of the absolute values of both functions' difference; None takes twice the largest value seen.
    """
    if tolerance:
        return _close(oracle, function, rng, confidence, tolerance, bound)
    wanted = math.ceil(TERMS * math.log(1 / (1 - confidence)))
    errors = _errors(oracle, function, rng, min(_FIRST, wanted))
    right = not (errors > oracle.resolution).any() and _right_at_special_inputs(oracle, function)
    if right:
        errors = np.append(errors, _errors(oracle, function, rng, max(0, wanted - _FIRST)))
    if not right or (errors > oracle.resolution).any():
        return _said(False, errors, 1.0)
    if len(errors) < _FEWEST:
        return _said(None, errors, 1.0)
    return _said(True, errors, min(1.0, math.log(1 / (1 - confidence)) / len(errors)))


def _close(oracle, function, rng, confidence, tolerance, bound) -> Agreement:
    errors, look, most_left = np.zeros(0), 0, oracle.left // 2  # the other half for those who go on searching
    while (size := min(max(len(errors), _LOOK), most_left - len(errors))) > 0:
        errors = np.append(errors, _errors(oracle, function, rng, size))
        look += 1
        most = 2 * oracle.scale if bound is None else bound
        delta = (1 - confidence) / (look * (look + 1)) / 2  # half for the mean, half for the largest
        low, high = mean_interval(errors**2, most**2, delta)
        if low > tolerance or high <= tolerance:
            return _said(high <= tolerance, errors, 1.0)
        if len(errors) >= TERMS * math.log(1 / delta) and errors.max() ** 2 <= tolerance:
            return _said(True, errors, math.log(1 / delta) / len(errors))
    return _said(None, errors, 1.0)


def _right_at_special_inputs(oracle: Oracle, function: Callable) -> bool:
    """Zeros, ones, and either with one bit flipped: no sample, but what an AND or OR of many bits does there shows."""
    near = np.concatenate([np.zeros((1, oracle.dim), bool), np.eye(oracle.dim, dtype=bool)])
    special = np.concatenate([near[:1], ~near[:1], near[1:], ~near[1:]])[: max(oracle.left // 4, 0)]
    return not len(special) or not (np.abs(oracle(special) - function(special)) > oracle.resolution).any()


def _errors(oracle: Oracle, function: Callable, rng: np.random.Generator, size: int) -> np.ndarray:
    x = rng.integers(0, 2, (min(size, max(oracle.left, 0)), oracle.dim), dtype=np.int8).astype(bool)
    return np.abs(oracle(x) - function(x)) if len(x) else np.zeros(0)


def _said(reached: bool | None, errors: np.ndarray, share: float) -> Agreement:
    square = float(np.mean(errors**2)) if len(errors) else math.nan
    return Agreement(reached, len(errors), share, square, float(errors.max(initial=0.0)))


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
