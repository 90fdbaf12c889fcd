"""Numbers with their uncertainty: means with standard errors, shares with intervals.

Source: Wilson 1927; Clopper and Pearson 1934.
Guarantee: Clopper–Pearson intervals cover at least at their level; Wilson's nearly so.
"""

import math
from dataclasses import dataclass

import numpy as np
import scipy  # whose parts load on first use: a listing of studies needs none of them

from genscope.refusal import Refusal

_DECIMALS = 6  # more are written as powers of ten


@dataclass(frozen=True)
class Estimate:
    """A Monte Carlo mean and its standard error."""

    mean: float
    sem: float

    @classmethod
    def of(cls, samples: np.ndarray) -> "Estimate":
        """Mean of independent samples; the standard error needs two.

        >>> Estimate.of(np.array([1.0, 2.0, 3.0]))
        Estimate(mean=2.0, sem=0.5773502691896258)
        """
        samples = np.asarray(samples, float)
        if samples.ndim != 1 or len(samples) < 2:
            raise Refusal(
                f"Estimate.of got an array of shape {samples.shape}: a standard error needs a list of at least two "
                "samples. Draw more, or flatten them."
            )
        return cls(float(samples.mean()), float(samples.std(ddof=1) / np.sqrt(len(samples))))

    def __str__(self) -> str:
        """Mean ± standard error, with two digits of the error and none of the mean beyond them.

        >>> print(Estimate(4.52902, 1.2345), Estimate(5.23334, 0.0031), Estimate(7.02, 1.0), sep="; ")
        4.5 ± 1.2; 5.2333 ± 0.0031; 7.0 ± 1.0
        """
        if not 0 < self.sem < math.inf:
            return f"{self.mean:.4g} ± {self.sem:.2g}"
        digits = 1 - math.floor(math.log10(self.sem))
        if 0 <= digits <= _DECIMALS:
            return f"{self.mean:.{digits}f} ± {self.sem:.{digits}f}"
        return f"{round(self.mean, digits):.10g} ± {self.sem:.2g}"


def wilson(successes: int, trials: int, *, confidence: float = 0.95) -> tuple[float, float]:
    r"""Wilson's interval for a share: near its level on average, never outside [0, 1].

    All $p$ with $|\hat p - p| \le z \sqrt{p (1 - p) / n}$.

    >>> [round(end, 3) for end in wilson(8, 10)]
    [0.49, 0.943]
    """
    _check(successes, trials, confidence)
    square = float(scipy.special.ndtri((1 + confidence) / 2)) ** 2
    middle = (successes + square / 2) / (trials + square)
    reach = math.sqrt(square * (successes * (trials - successes) / trials + square / 4)) / (trials + square)
    return 0.0 if successes == 0 else middle - reach, 1.0 if successes == trials else middle + reach


def clopper_pearson(successes: int, trials: int, *, confidence: float = 0.95) -> tuple[float, float]:
    """The exact interval for a share: covers at least at its level, whatever the share.

    All shares that neither one-sided binomial test rejects.

    >>> [round(end, 3) for end in clopper_pearson(8, 10)]
    [0.444, 0.975]
    """
    _check(successes, trials, confidence)
    tail, failures = (1 - confidence) / 2, trials - successes
    low = 0.0 if successes == 0 else float(scipy.special.betaincinv(successes, failures + 1, tail))
    high = 1.0 if failures == 0 else float(scipy.special.betaincinv(successes + 1, failures, 1 - tail))
    return low, high


def _check(successes: int, trials: int, confidence: float) -> None:
    if not (0 <= successes <= trials and trials > 0 and 0 < confidence < 1):
        raise Refusal(
            f"got {successes} successes in {trials} trials at confidence={confidence!r}: there must be at least one "
            "trial, no more successes than trials, and a confidence between 0 and 1. Check the counts."
        )
