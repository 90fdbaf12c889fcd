"""The rules of A8 and A9 on made-up thresholds: each can hold, fail and stay undecided."""

import math

import polars as pl
import pytest

from genscope.claims.edelman2022 import published_fits
from genscope.claims.edelman2022_restarts import A8, A9, growth, halves, sufficient
from genscope.lab import Reading
from genscope.lab.results.verdict import combine
from genscope.lab.statistics.scaling import measured
from genscope.studies.edelman2022_and_restarts import STUDY
from genscope.studies.edelman2022_and_restarts_long import STUDY as LONG
from genscope.tasks import ideal_sample_size

LENGTHS = (50, 200, 800, 3200, 10_000)
IDEAL = {length: ideal_sample_size("x0 & x1 & x2", context_length=length) for length in LENGTHS}


def thresholds(size, deviation, lengths=LENGTHS):
    """Thresholds with a normal likelihood of this relative deviation."""
    reach = 1.96 * deviation
    return {at: measured(size(at), size(at) * (1 - reach), size(at) * (1 + reach)) for at in lengths}


def a8(ratio, deviation=0.04, lengths=LENGTHS):
    return combine(
        [part.decision for part in sufficient(thresholds(lambda at: ratio(at) * IDEAL[at], deviation, lengths))]
    )


def test_a8_holds_fails_and_stays_open():
    assert a8(lambda at: 1.6 * (at / 50) ** 0.05) == "holds"
    assert a8(lambda at: 1.6 * (at / 50) ** 0.26) == "fails"  # as the published points grow
    assert a8(lambda at: 3.0) == "fails"  # no growth, but too many samples
    assert a8(lambda at: 1.0 * (at / 50) ** 0.15) == "undecided"
    assert a8(lambda at: 1.6 * (at / 50) ** 0.05, deviation=0.3) == "undecided"


def test_the_slope_and_its_interval_are_those_of_least_squares():
    found = thresholds(lambda at: 1.7 * (at / 50) ** 0.1 * IDEAL[at], 0.05)
    slope, low, high = growth(found, 0.95)
    assert slope == pytest.approx(0.1, abs=0.002)
    x = [math.log(at) for at in LENGTHS]
    spread = math.sqrt(sum((each - sum(x) / 5) ** 2 for each in x))
    assert high - slope == pytest.approx(1.96 * 0.05 / spread, rel=0.1)
    assert slope - low == pytest.approx(high - slope)


def test_a8_does_not_guess_a_slope_where_a_threshold_is_missing():
    empty = Reading(pl.DataFrame(), (), 0)
    assert A8.verdict([empty], budget="quick", seconds=0.0).verdict == "undecided"
    assert growth({50: thresholds(lambda at: 40, 0.05, [50])[50]}, 0.95) == (None, None, None)


def a9(size, deviation=0.025, lengths=LENGTHS):
    return combine([part.decision for part in halves(thresholds(size, deviation, lengths))])


def test_a9_holds_fails_and_stays_open():
    assert a9(lambda at: 13.9 * math.log(at) - 20) == "holds"
    assert a9(lambda at: 8 * at**0.38) == "fails"
    assert a9(lambda at: 40 + 0.02 * at) == "fails"
    assert a9(lambda at: 13.9 * math.log(at) - 20, deviation=0.2) == "undecided"  # too blunt to tell
    assert a9(lambda at: 13.9 * math.log(at) - 20, lengths=(50, 200, 800)) == "undecided"  # by design
    assert A9.verdict([Reading(pl.DataFrame(), (), 0)], budget="quick", seconds=0.0).verdict == "undecided"


def test_the_published_points_are_fitted_by_the_same_code():
    # The numbers of a fit by other code, with bars read as 95 % intervals.
    fits = published_fits()
    assert fits.lead("log", "power") == pytest.approx(-31.6, abs=0.5)
    assert fits.lead("log", "linear") == pytest.approx(-38.6, abs=0.5)
    assert fits.laws["power"].slope == pytest.approx(0.35, abs=0.01)
    assert len(fits.lengths) == 18


def test_a_measured_threshold_lies_in_its_interval():
    with pytest.raises(ValueError, match="Check the numbers"):
        measured(50, 51, 60)


def test_both_claims_read_the_same_trials_and_say_nothing_at_quick():
    for claim in (A8, A9):
        assert claim.studies == {"quick": (), "standard": (STUDY, LONG), "paper": (STUDY, LONG)}
        assert claim.verdict([], budget="quick", seconds=0.0).verdict == "undecided"
