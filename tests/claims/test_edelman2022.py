"""Each rule on made-up readings: it can hold, fail and stay undecided."""

import json
import math

import polars as pl
import pytest

from genscope.claims import ALL
from genscope.claims._base import above
from genscope.claims.edelman2022 import A4, A5, A6, A7
from genscope.lab.results.reading import Reading
from genscope.lab.results.verdict import Verdict, combine
from genscope.lab.statistics.estimation import estimate
from genscope.lab.statistics.threshold import Search

SEARCH = Search(lowest=16, highest=4000, start=70)


def reading(rows):
    return Reading(pl.DataFrame(rows) if rows else pl.DataFrame({"status": []}), (), 0)


def thresholds(truth, lengths, trials=400):
    """Thresholds as sharp as a thousand trials near the truth make them."""
    found = []
    for length in lengths:
        centre = truth(length)
        counts = {}
        for ratio in (0.8, 0.9, 1.0, 1.1, 1.25):
            size = round(centre * ratio)
            rate = 1 / (1 + math.exp(-(math.log(4) + 8 * math.log(size / centre))))
            counts[size] = (round(trials * rate), trials)
        found.append(({"context_length": length, "preset": "tuned"}, estimate(SEARCH, counts)))
    return Reading(pl.DataFrame(), tuple(found), 0)


def decide(claim, *readings):
    return claim.verdict(readings, budget="standard", seconds=0.0).verdict


LONG = [50, 100, 200, 400, 800, 1600, 3200]


def test_a4_tells_a_logarithm_from_a_power_and_a_line():
    assert decide(A4, thresholds(lambda length: -20 + 16 * math.log(length), LONG)) == "holds"
    assert decide(A4, thresholds(lambda length: 15 * length**0.28, LONG)) == "fails"
    assert decide(A4, thresholds(lambda length: 40 + 0.1 * length, LONG)) == "fails"


def test_a4_fails_when_the_threshold_is_elsewhere():
    assert decide(A4, thresholds(lambda length: -60 + 48 * math.log(length), LONG)) == "fails"


def test_a4_is_undecided_on_a_short_range_and_without_data():
    assert decide(A4, thresholds(lambda length: -20 + 16 * math.log(length), [50, 100, 200], trials=20)) == "undecided"
    assert decide(A4, Reading(pl.DataFrame(), (), 0)) == "undecided"


def curves(large, small, total=20):
    """`large` of the runs at m = 200 generalize, `small` of those at m = 50; all fit their sample."""
    return reading(
        [
            {"preset": "minGPT", "status": "ok", "sample_size": size, "success": i < right, "fitted": True}
            for size, right in ((200, large), (50, small))
            for i in range(total)
        ]
    )


def test_a5_needs_a_majority_on_both_sides():
    assert decide(A5, curves(20, 1)) == "holds"
    assert decide(A5, curves(20, 19)) == "fails"
    assert decide(A5, curves(2, 1)) == "fails"
    assert decide(A5, curves(13, 1)) == "undecided"


def test_a5_does_not_count_runs_that_did_not_fit():
    frame = curves(20, 0).frame.with_columns(fitted=pl.col("sample_size") == 200)
    assert decide(A5, Reading(frame, (), 0)) == "fails"


def heads(good, total=10, succeeded=True):
    return reading(
        [
            {"preset": "tuned", "status": "ok", "success": succeeded, "best_mass": 0.95, "on_support": i < good}
            for i in range(total)
        ]
    )


def test_a6_counts_runs_that_succeeded():
    assert decide(A6, heads(8)) == "holds"
    assert decide(A6, heads(7)) == "fails"
    assert decide(A6, heads(9, total=9)) == "undecided"
    assert decide(A6, heads(10, succeeded=False)) == "undecided"


def parities(learned, sudden, total=10):
    return reading(
        [
            {
                "status": "ok",
                "rate": 3e-4,
                "context_length": 10,
                "first_perfect": 500 if i < learned else None,
                "last_high": 400 if i < learned else None,
                "first_low": (450 if i < sudden else 501) if i < learned else None,
            }
            for i in range(total)
        ]
    )


def test_a7_needs_learning_and_a_sudden_drop():
    assert decide(A7, parities(8, 8)) == "holds"
    assert decide(A7, parities(7, 7)) == "fails"
    assert decide(A7, parities(10, 7)) == "fails"
    assert decide(A7, parities(9, 9, total=9)) == "undecided"


def test_combining_parts():
    assert combine([]) == "undecided"
    assert combine(["holds", "undecided", "fails"]) == "fails"
    assert above(None, 0.4, 0.5) == "fails"
    assert above(0.6, None, 0.5) == "holds"
    assert above(0.4, 0.6, 0.5) == "undecided"


def test_a_verdict_has_all_its_fields():
    verdict = A4.verdict([Reading(pl.DataFrame({"status": []}), (), 0)], budget="quick", seconds=1.5)
    wanted = {"id", "statement", "source", "verdict", "numbers", "rule", "parts", "departures", "seconds"}
    kept = {"budget", "remark", "studies", "cautions", "rule_digest", "before", "changed_rule", "planted"}
    assert set(verdict.as_dict()) == wanted | kept


@pytest.mark.parametrize("claim", ALL, ids=lambda claim: claim.id)
def test_a_verdict_comes_back_from_json(claim):
    verdict = claim.verdict([], budget="quick", seconds=1.5)
    assert Verdict.from_dict(json.loads(json.dumps(verdict.as_dict()))) == verdict


@pytest.mark.parametrize("claim", ALL, ids=lambda claim: claim.id)
def test_a_claim_has_studies_at_every_budget(claim):
    assert set(claim.studies) == {"quick", "standard", "paper"}
