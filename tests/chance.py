"""Statistical tests of a stated size and a stated power.

Code that is right fails a comparison once in 10^9 runs (FALSE_ALARM). A test that cannot fail does so too, so each
comparison also names an error that it has to find, `planted`, and misses that once in 10^6 runs at most (MISS): where
the sample is too small for that, the test itself is refused, whatever its seed. A suite of some hundred comparisons on
fresh seeds then fails once in some thousand runs.
"""

from dataclasses import dataclass

import numpy as np
from scipy.stats import binom, norm

from genscope.estimate import Estimate

FALSE_ALARM, MISS = 1e-9, 1e-6
FEWEST = 1000  # samples of a mean whose law is taken for normal


class NoPowerError(Exception):
    """A test that would miss the error that it has to find."""


def assert_estimate(found, truth, *, planted):
    """An estimate is `truth` within its error, and would not be if the truth were `planted`; normal limits."""
    reach = norm.isf(FALSE_ALARM / 2) * found.sem
    needed = reach + norm.isf(MISS) * found.sem
    apart = abs(planted - truth)
    if apart < needed:
        raise NoPowerError(f"{truth:.6g} and {planted:.6g} are {apart:.3g} apart: errors of {needed:.3g} are found")
    assert abs(found.mean - truth) <= reach, f"{found} is not {truth:.6g}"
    assert abs(found.mean - planted) > reach, f"{found} passes for {planted:.6g}"


def assert_mean(samples, truth, *, planted):
    """The same for the mean of independent samples."""
    samples = np.asarray(samples, float)
    assert len(samples) >= FEWEST, f"{len(samples)} samples are too few for a normal limit"
    assert_estimate(Estimate.of(samples), truth, planted=planted)


def assert_at_most(samples, bound, *, planted):
    """The mean of independent samples is not above the bound, beyond chance; one of `planted` would be found to be."""
    samples = np.asarray(samples, float)
    assert len(samples) >= FEWEST, f"{len(samples)} samples are too few for a normal limit"
    found = Estimate.of(samples)
    reach = norm.isf(FALSE_ALARM) * found.sem
    needed = reach + norm.isf(MISS) * found.sem
    if planted - bound < needed:
        raise NoPowerError(
            f"{planted:.6g} is {planted - bound:.3g} above {bound:.6g}: excesses of {needed:.3g} are found"
        )
    assert found.mean - bound <= reach, f"{found} is above {bound:.6g}"


def assert_at_least(samples, bound, *, planted):
    """The same from below."""
    assert_at_most(-np.asarray(samples, float), -bound, planted=-planted)


def assert_count(count, trials, share, *, planted):
    """A count is binomial with the share, and would not be with the share `planted`; exact limits."""
    low, high = binom.ppf(FALSE_ALARM / 2, trials, share), binom.isf(FALSE_ALARM / 2, trials, share)
    missed = binom.cdf(high, trials, planted) - binom.cdf(low - 1, trials, planted)
    if missed > MISS:
        raise NoPowerError(f"a share of {planted:.6g} passes for {share:.6g} in a share {missed:.2g} of all runs")
    assert low <= count <= high, f"{count} of {trials} are not a share of {share}"


@dataclass(frozen=True)
class Seldom:
    """Something that happens in at most a share of independent trials, where a planted error makes it `planted`.

    `explains` says whether a count is one that the share allows; `planted` is a share that the error exceeds.
    """

    trials: int
    share: float
    planted: float

    def __post_init__(self):
        missed = binom.cdf(self.most, self.trials, self.planted)
        if missed > MISS:
            raise NoPowerError(f"a share of {self.planted} passes for {self.share} in a share {missed:.2g} of all runs")

    @property
    def most(self):
        return int(binom.isf(FALSE_ALARM, self.trials, self.share))

    def explains(self, count):
        assert 0 <= count <= self.trials
        return count <= self.most
