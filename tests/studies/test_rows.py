"""Same seeds, same rows: cheap trials of every study give the values that were recorded.

Exactly, with the processor and the JAX that recorded them; elsewhere the rows marked `everywhere` in rows.json within
1e-4, and the others have values of the same names and kinds. A study whose numbers must change gets a new revision, and

    python -m tests.studies.rows --record

records all rows anew and says which changed (`tests/studies/rows.py`, which also lists the trials).
"""

import json

import pytest

from genscope.studies import ALL
from tests.studies import rows

RECORD = json.loads(rows.FILE.read_text())


def replay(slow):
    recorded = [row for row in RECORD["rows"] if row["slow"] is slow]
    exact = RECORD["made_with"] == rows.made_with()
    replayed = rows.compute([(row["study"], row["point"]) for row in recorded])
    return {
        rows.identity(old): found
        for old, new in zip(recorded, replayed, strict=True)
        if (found := compare(old, new, exact=exact))
    }


def compare(old, new, *, exact):
    if exact or old["everywhere"]:
        return rows.differences(old, new, 0.0 if exact else rows.TOLERANCE)
    return [] if old["values"].keys() == new["values"].keys() else [f"values are {', '.join(new['values'])}"]


def test_cheap_trials_give_the_recorded_rows():
    assert replay(slow=False) == {}


@pytest.mark.slow
@pytest.mark.timeout(1800)  # four minutes on an idle core
def test_other_trials_give_the_recorded_rows():
    assert replay(slow=True) == {}


def test_every_study_has_a_row_and_every_listed_trial_is_recorded():
    listed = [(row["study"], row["point"]) for row in RECORD["rows"]]
    assert {name for name, _ in listed} == {study.name for study in ALL}
    assert listed == rows.FAST + rows.SLOW
    assert any(row["everywhere"] and "loss_curve" in row["values"] for row in RECORD["rows"])


def test_a_changed_last_digit_is_a_difference():
    old = {"revision": 1, "values": {"risk": 0.5, "curve": [1.0, float("nan")], "steps": 3}}
    assert rows.differences(old, old) == []
    for changed in ({"risk": 0.5000000000000001}, {"curve": [1.0, 1.0]}, {"steps": 3.0}, {"more": None}):
        assert rows.differences(old, {"revision": 1, "values": old["values"] | changed})
    assert rows.differences(old, {"revision": 2, "values": old["values"]}) == ["revision 1 became 2"]
    near = {"revision": 1, "values": old["values"] | {"risk": 0.50004}}
    assert rows.differences(old, near, rows.TOLERANCE) == []
    assert rows.differences(old, near, rows.TOLERANCE / 10)
