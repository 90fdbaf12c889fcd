import json

import pytest

from genscope import claims
from genscope.claims import Claim, Part
from genscope.lab import Store
from tests.cli import study_file


def claim(name, decision, *studies, number=1.0):
    return Claim(
        id=name,
        statement=f"statement of {name}",
        source="tests",
        rule="none",
        studies=dict.fromkeys(("quick", "standard", "paper"), studies),
        decide=lambda readings: [Part("part", decision, {"trials": sum(len(r.frame) for r in readings), "x": number})],
    )


@pytest.fixture
def table(monkeypatch):
    monkeypatch.setattr(
        claims,
        "ALL",
        (
            claim("T1", "holds", study_file.search, study_file.study),
            claim("T2", "fails", study_file.study, number=float("nan")),
            claim("T10", "undecided"),
        ),
    )


def test_every_claim_is_decided_stored_and_shown(table, call, directory):
    result = call("reproduce")
    said = [line for line in result.stderr.splitlines() if line.startswith("T")]
    assert said == ["T10 undecided: statement of T10", "T2 fails: statement of T2", "T1 holds: statement of T1"]
    assert result.stderr.count("toy: 1 of 1 trials") == 1  # the study that two claims rest on runs once
    assert "statement of T1" in result.stdout
    assert "report.html" in result.stdout
    assert "statement of T10" in (directory / "report.html").read_text()
    with Store("sqlite:///genscope.db", read_only=True) as store:
        assert {row["claim"]: row["verdict"]["verdict"] for row in store.verdicts()} == {
            "T1": "holds",
            "T2": "fails",
            "T10": "undecided",
        }


def test_json_in_the_order_of_the_table(table, call_json, directory):
    (directory / "place").mkdir()
    facts = call_json("reproduce", "--out", "place", "--budget", "standard")
    assert [verdict["id"] for verdict in facts["claims"]] == ["T1", "T2", "T10"]
    assert facts["claims"][1]["numbers"] == {"trials": 8, "x": None}
    assert facts["claims"][1]["seconds"] >= 0
    assert facts["budget"] == "standard"
    assert facts["versions"]["jax"]
    assert facts["versions"]["python"]
    assert facts["seconds"] > 0
    assert (directory / "place" / "report.html").exists()


def test_a_claim_that_fails_is_a_result_unless_strict(table, call, call_json):
    call("reproduce", "--only", "T2")
    assert json.loads(call("reproduce", "--only", "T2", "--strict", "--json", status=1).stdout)["claims"]
    call("reproduce", "--only", "T1,T10", "--strict")
    assert [v["id"] for v in call_json("reproduce", "--only", "T2", "--only", "T10")["claims"]] == ["T2", "T10"]


def test_requests_that_make_no_sense(table, refused, directory):
    assert "claims are T1, T2, T10. Choose among these" in refused("reproduce", "--only", "T3")
    (directory / "file").write_text("")
    assert "not a directory" in refused("reproduce", "--out", "file")
    assert "not a directory" in refused("reproduce", "--out", "absent")
    assert [path.name for path in directory.iterdir()] == ["file"]
