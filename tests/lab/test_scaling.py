import dataclasses
import json
import math

import numpy as np
import pytest
from scipy import stats

from genscope.lab.statistics.scaling import FORMS, fit_laws
from genscope.lab.statistics.threshold import Threshold
from tests.chance import Seldom

LONG, SHORT = (50, 100, 200, 400, 800, 1600, 3200), (50, 100, 200, 400)
TRUTHS = {
    "log": lambda length: -20 + 16 * np.log(length),
    "power": lambda length: 15 * length**0.28,
    "linear": lambda length: 40 + 0.1 * length,
}


def gaussian(size, *, sem=0.05, state="crossed"):
    """A threshold whose log likelihood is a parabola in its logarithm; `sem` 0.05 is an interval of ±10 %."""
    grid = np.linspace(0, 12, 2401)
    likelihood = -0.5 * ((grid - math.log(size)) / sem) ** 2
    if state == "above":
        likelihood = np.where(grid > math.log(size), 0.0, likelihood)
    return Threshold(size, None, None, 100, state, log_sizes=tuple(grid), log_likelihood=tuple(likelihood))


def predicted(fits, law, length):
    """A prediction, where there is one."""
    found = fits.predict(law, length)
    assert found is not None
    return found


@pytest.mark.parametrize("name", list(FORMS))
def test_each_law_is_recovered_from_its_own_thresholds(name):
    fits = fit_laws(LONG, [gaussian(TRUTHS[name](length), sem=0.03) for length in LONG])
    assert fits.best == name
    assert fits.laws[name].log_likelihood == pytest.approx(0, abs=0.02)
    assert min(fits.lead(name, rival) for rival in FORMS if rival != name) > 3
    for length in (70, 300, 5000):
        size, low, high = predicted(fits, name, length)
        assert size == pytest.approx(TRUTHS[name](length), rel=5e-3)
        assert low < size < high
    assert "clearly" in fits.verdict


def test_numbers_of_a_law_agree_with_weighted_least_squares():
    rng = np.random.default_rng(0)
    sizes = [15 * length**0.28 * math.exp(0.05 * rng.normal()) for length in LONG]
    law = fit_laws(LONG, [gaussian(size) for size in sizes]).laws["power"]
    slope, intercept = np.polyfit(np.log(LONG), np.log(sizes), 1)
    parameters = law.parameters()
    assert parameters["b"]["value"] == pytest.approx(slope, abs=1e-3)
    assert parameters["a"]["value"] == pytest.approx(math.exp(intercept), rel=5e-3)
    spread = 1.96 * 0.05 / np.sqrt(np.sum((np.log(LONG) - np.mean(np.log(LONG))) ** 2))
    assert parameters["b"]["high"] - parameters["b"]["value"] == pytest.approx(spread, rel=0.1)


def test_intervals_of_predictions_cover_at_their_level():
    # the planted fault: intervals of 15 % of their length, which miss three times in four
    rng, law, missed, narrowed = np.random.default_rng(1), Seldom(60, 0.05, planted=0.7), 0, 0
    for _ in range(law.trials):
        thresholds = [gaussian(TRUTHS["log"](length) * math.exp(0.05 * rng.normal())) for length in LONG]
        size, low, high = predicted(fit_laws(LONG, thresholds), "log", 300)
        truth = TRUTHS["log"](300)
        missed += not low <= truth <= high
        narrowed += not size - 0.15 * (size - low) <= truth <= size + 0.15 * (high - size)
    assert law.explains(missed)
    assert not law.explains(narrowed)


def test_a_short_range_cannot_tell_a_logarithm_from_a_power_and_a_long_one_can():
    short = fit_laws(SHORT, [gaussian(TRUTHS["log"](length)) for length in SHORT])
    assert 0 <= short.lead("log", "power") < 1
    assert "by a hair" in short.verdict
    long = fit_laws(LONG, [gaussian(TRUTHS["log"](length)) for length in LONG])
    assert long.lead("log", "power") > 2


def test_a_threshold_known_from_below_counts_on_that_side_only():
    lengths = (50, 100, 200, 400)
    thresholds = [gaussian(TRUTHS["log"](length)) for length in lengths[:3]]
    low = fit_laws(lengths, [*thresholds, gaussian(30, state="above")])  # already satisfied
    assert low.laws["log"].log_likelihood == pytest.approx(0, abs=0.02)
    high = fit_laws(lengths, [*thresholds, gaussian(300, state="above")])
    assert high.laws["log"].log_likelihood < -1


def test_beyond_what_is_known_a_likelihood_goes_on_falling():
    def narrow(size):
        whole = gaussian(size)
        near = [i for i, value in enumerate(whole.log_likelihood) if value > -8]
        return Threshold(
            *(size, None, None, 100, "crossed"),
            log_sizes=whole.log_sizes[near[0] : near[-1] + 1],
            log_likelihood=whole.log_likelihood[near[0] : near[-1] + 1],
        )

    sizes = [TRUTHS["linear"](length) for length in LONG]
    leads = [fit_laws(LONG, [made(size) for size in sizes]).lead("linear", "log") for made in (gaussian, narrow)]
    assert leads[0] > leads[1] > 50  # a tangent lies above its parabola


def test_an_end_that_nothing_bounds_is_open():
    known = [gaussian(TRUTHS["log"](length), sem=0.2) for length in (50, 55)]
    fits = fit_laws((50, 55, 3200), [*known, gaussian(60, state="above")])
    law = fits.laws["power"]
    assert law.degrees == 0
    assert law.p_value is None
    assert law.parameters()["b"]["low"] is not None
    assert law.parameters()["b"]["high"] is None
    assert law.predict(3200)[2] == math.inf
    size, low, high = predicted(fits, "power", 3200)
    assert low is not None
    assert low < size
    assert high is None
    json.dumps(fits.as_dict(), allow_nan=False)


def test_a_law_below_zero_predicts_nothing():
    fits = fit_laws(LONG, [gaussian(TRUTHS["log"](length)) for length in LONG])
    assert fits.predict("log", 2) is None  # -20 + 16 log 2 < 0
    assert fits.predict("power", 2)[0] > 0


def test_a_misfit_has_a_small_p_value():
    fits = fit_laws(LONG, [gaussian(TRUTHS["log"](length)) for length in LONG])
    assert fits.laws["log"].degrees == len(LONG) - 2
    assert fits.laws["log"].p_value > 0.99
    assert fits.laws["linear"].p_value == pytest.approx(
        stats.chi2.sf(-2 * fits.laws["linear"].log_likelihood, len(LONG) - 2)
    )
    bad = fit_laws(LONG, [gaussian(size) for size in (50, 150, 50, 150, 50, 150, 50)])
    assert "It fits poorly itself" in bad.verdict


def test_thresholds_known_from_one_side_only_are_no_law():
    fits = fit_laws(SHORT, [gaussian(50), *(gaussian(60, state="above") for _ in SHORT[1:])])
    assert fits.best is None
    assert "two of them known from both sides; there are 4" in fits.verdict


def test_a_curve_that_probably_levels_off_is_left_out():
    thresholds = [gaussian(TRUTHS["log"](length)) for length in SHORT]
    doubtful = dataclasses.replace(thresholds[1], state="unresolved", levels_off=0.7)
    assert fit_laws(SHORT, [thresholds[0], doubtful, *thresholds[2:]]).left_out == (100,)


def test_plateaus_are_left_out_and_named():
    thresholds = [gaussian(TRUTHS["log"](length)) for length in LONG[:-1]]
    fits = fit_laws(LONG, [*thresholds, gaussian(100, state="plateau")])
    assert fits.left_out == (3200,)
    assert "No threshold at 3200" in fits.verdict


def test_too_few_thresholds_are_an_answer():
    fits = fit_laws((50, 100), [gaussian(49), gaussian(63)])
    assert fits.best is None
    assert fits.predict("log", 300) is None
    assert fits.lead("log", "power") is None
    assert "Three thresholds are needed" in fits.verdict


def test_facts_are_plain_json():
    facts = fit_laws(LONG, [gaussian(TRUTHS["log"](length)) for length in LONG]).as_dict()
    assert set(facts["laws"]) == {"log", "power", "linear"}
    assert facts["laws"]["log"]["behind"] == 0
    json.dumps(facts, allow_nan=False)


def test_lengths_and_thresholds_go_together():
    with pytest.raises(ValueError, match="as many"):
        fit_laws((50,), [])
