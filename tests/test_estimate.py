import subprocess
import sys

import numpy as np
import pytest
from scipy import stats

from genscope.estimate import Estimate, clopper_pearson, wilson


def coverage(interval, shares, trials, confidence=0.95):
    """Exact coverage at each share, by summing the binomial law over the outcomes whose interval holds it."""
    low, high = np.array([interval(k, trials, confidence=confidence) for k in range(trials + 1)]).T
    weights = stats.binom.pmf(np.arange(trials + 1), trials, shares[:, None])
    return np.sum(weights * ((low <= shares[:, None]) & (shares[:, None] <= high)), axis=1)


@pytest.mark.parametrize("trials", [5, 20, 60])
def test_the_exact_interval_never_covers_less_than_its_level(trials):
    shares = np.linspace(0.02, 0.98, 25)
    assert (coverage(clopper_pearson, shares, trials) >= 0.95).all()
    assert (coverage(clopper_pearson, shares, trials, 0.975) >= 0.975).all()


def test_wilson_covers_at_its_level_on_average_and_a_narrower_one_does_not():
    shares = np.linspace(0.05, 0.95, 91)
    assert coverage(wilson, shares, 40).mean() == pytest.approx(0.95, abs=0.01)

    def narrowed(k, n, confidence):
        low, high = wilson(k, n, confidence=confidence)
        return low + 0.15 * (high - low), high - 0.15 * (high - low)

    assert coverage(narrowed, shares, 40).mean() < 0.9


def test_wilson_solves_its_equation():
    low, high = wilson(13, 20)
    for end in (low, high):
        assert abs(13 / 20 - end) == pytest.approx(stats.norm.ppf(0.975) * np.sqrt(end * (1 - end) / 20))


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
@pytest.mark.parametrize(("successes", "trials"), [(0, 1), (1, 1), (0, 10), (8, 10), (10, 10), (37, 100), (999, 1000)])
def test_intervals_agree_with_scipy(successes, trials, confidence):
    test = stats.binomtest(successes, trials)
    for ours, method in ((wilson, "wilson"), (clopper_pearson, "exact")):
        theirs = test.proportion_ci(confidence, method=method)
        found = ours(successes, trials, confidence=confidence)
        assert found == pytest.approx(
            (theirs.low, theirs.high), abs=1e-10
        )  # scipy's exact ends come from a root search


def test_edges():
    assert clopper_pearson(0, 10)[0] == 0
    assert clopper_pearson(10, 10)[1] == 1
    assert clopper_pearson(0, 10)[1] == pytest.approx(1 - 0.025**0.1)


@pytest.mark.parametrize("interval", [wilson, clopper_pearson])
def test_impossible_counts_are_refused(interval):
    for counts in ((3, 2), (-1, 2), (0, 0)):
        with pytest.raises(ValueError, match="Check the counts"):
            interval(*counts)
    with pytest.raises(ValueError, match="a confidence between 0 and 1"):
        interval(1, 2, confidence=95.0)


def test_an_estimate_is_a_mean_with_its_standard_error():
    found = Estimate.of(np.array([1.0, 2.0, 3.0, 6.0]))
    assert found.mean == 3
    assert found.sem == pytest.approx(np.sqrt(14 / 3 / 4))
    assert str(Estimate(3.14159, 0.0123)) == "3.142 ± 0.012"
    assert str(Estimate(7.04, 1.02)) == "7.0 ± 1.0"  # two digits of the error, whatever they are
    assert str(Estimate(123456.0, 789.0)) == "123460 ± 7.9e+02"


def test_intervals_and_thresholds_need_no_jax_and_no_slow_statistics():
    code = (
        "import sys, genscope.estimate, genscope.lab.statistics.scaling; "
        "sys.exit(bool({'jax', 'scipy.stats'} & {*sys.modules}))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_one_sample_has_no_standard_error():
    with pytest.raises(ValueError, match="Draw more"):
        Estimate.of(np.array([1.0]))
