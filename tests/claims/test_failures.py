"""A verdict never hides that trials of its studies failed."""

import polars as pl
import pytest

from genscope.claims import A6
from genscope.lab import Reading


def reading(succeeded, good, failed):
    row = {"preset": "tuned", "status": "ok", "success": True, "best_mass": 0.95, "on_support": True}
    bad = row | {"on_support": False}
    lost = dict.fromkeys(row) | {"preset": "tuned", "status": "failed"}
    rows = [row] * good + [bad] * (succeeded - good) + [lost] * failed
    return Reading(pl.DataFrame(rows, schema_overrides={"best_mass": pl.Float64}), (), 0)


@pytest.mark.parametrize(("good", "decided"), [(20, "holds"), (5, "fails")])
def test_failed_trials_leave_a_claim_undecided(good, decided):
    calm, disturbed = (A6.verdict([reading(20, good, failed)], budget="quick", seconds=0.0) for failed in (0, 2))
    assert (calm.verdict, disturbed.verdict) == (decided, "undecided")
    assert disturbed.parts[0] == calm.parts[0]  # the numbers are shown all the same
    assert disturbed.numbers["failed trials"] == "2 of 22"
    assert any("--retry failed" in reason for reason in disturbed.reasons)
