import contextlib
import dataclasses
import json
import os
import signal
import sqlite3
import time

import pytest

from genscope import claims
from genscope.claims import Claim, Part
from genscope.cli import _claims_table, _output
from genscope.lab import Store
from genscope.lab.execution.runner import Progress
from tests.cli import study_file

ALONE = ("--workers", "1")


def claim(name, decision, *studies, number=1.0):
    return Claim(
        id=name,
        statement=f"statement of {name}",
        source="tests",
        rule="none",
        studies=dict.fromkeys(("quick", "standard", "paper"), studies),
        decide=lambda readings: [Part("part", decision, {"trials": sum(len(r.frame) for r in readings), "x": number})],
        departures={"quick": (f"departure of {name}",)},
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
    result = call("reproduce", *ALONE)
    said = [line for line in result.stderr.splitlines() if line.startswith("T")]
    assert said == ["T10 undecided: statement of T10", "T2 fails: statement of T2", "T1 holds: statement of T1"]
    assert result.stderr.count("toy: 1 of 1 trials") == 1  # the study that two claims rest on runs once
    assert "statement of T1 (tests)" in result.stdout
    words = " ".join(result.stdout.split())
    assert "departs - departure of T10" in words
    assert "by - none" in words
    assert "1 holds, 1 fails, 1 is undecided at this budget." in words
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
    facts = call_json("reproduce", "--out", "place", "--budget", "standard", *ALONE)
    assert [verdict["id"] for verdict in facts["claims"]] == ["T1", "T2", "T10"]
    assert {"claims", "budget", "seconds", "versions"} <= {*facts}
    promised = {"id", "statement", "source", "verdict", "numbers", "rule", "parts", "departures", "seconds"}
    assert all(promised <= {*verdict} for verdict in facts["claims"])
    assert facts["claims"][1]["numbers"] == {"trials": 8, "x": None}
    assert facts["claims"][1]["seconds"] >= 0
    assert facts["budget"] == "standard"
    assert facts["versions"]["jax"]
    assert facts["versions"]["python"]
    assert facts["seconds"] > 0
    assert (directory / "place" / "report.html").exists()


def test_the_directory_of_the_report_is_made(table, call, directory):
    call("reproduce", "--only", "T10", "--out", "new", *ALONE)
    assert (directory / "new" / "report.html").is_file()


def test_a_claim_that_fails_is_a_result_unless_strict(table, call, call_json):
    call("reproduce", "--only", "T2", *ALONE)
    strict = call("reproduce", "--only", "T2", "--strict", "--json", status=1)  # all is stored: no process starts
    assert json.loads(strict.stdout)["claims"]
    call("reproduce", "--only", "T1,T10", "--strict", *ALONE)
    assert [v["id"] for v in call_json("reproduce", "--only", "T2", "--only", "T10")["claims"]] == ["T2", "T10"]


def test_two_workers_and_a_trial_that_kills_them(monkeypatch, call, directory):
    listed = (
        claim("T1", "holds", study_file.study),
        claim("T2", "holds", study_file.deadly),
        claim("T3", "holds", study_file.search),
    )
    monkeypatch.setattr(claims, "ALL", listed)
    result = call("reproduce", "--json", "--workers", "2")
    facts = json.loads(result.stdout)
    assert [verdict["verdict"] for verdict in facts["claims"]] == ["holds", "undecided", "holds"]
    assert (
        "raised an exception, and nothing here counts them; the first says: the trial's process ended with status 7"
        in result.stderr
    )
    assert "T3 holds" in result.stderr
    assert "statement of T3" in (directory / "report.html").read_text()


def test_a_rule_that_falls_over_costs_its_own_verdict_only(monkeypatch, call):
    wrong = claim("T1", "holds", study_file.study)
    object.__setattr__(wrong, "decide", lambda readings: readings[7])
    monkeypatch.setattr(claims, "ALL", (wrong, claim("T2", "holds")))
    result = call("reproduce", "--json", *ALONE, status=1)
    facts = json.loads(result.stdout)
    assert [verdict["id"] for verdict in facts["claims"]] == ["T2"]
    assert "IndexError" in facts["broken"]["T1"]
    assert "T1 will have no verdict: IndexError" in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interruption_ends_every_process_and_the_same_command_goes_on(number, status, program, call_json):
    process = program("reproduce", "--only", "A3", "--workers", "2")
    while not _rows("SELECT id FROM trial"):
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.1)
    holders = {pid for (pid,) in _rows("SELECT pid FROM lease")}
    process.send_signal(number)
    _, err = process.communicate(timeout=120)
    assert process.returncode == status
    assert "the same command continues from there" in err.splitlines()[-1]
    assert "Traceback" not in err
    for pid in holders:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    assert _rows("SELECT * FROM lease") == []
    stored = {name for (name,) in _rows("SELECT id FROM trial")}
    assert [verdict["verdict"] for verdict in call_json("reproduce", "--only", "A3", *ALONE)["claims"]] == ["holds"]
    assert stored < {name for (name,) in _rows("SELECT id FROM trial")}


def _rows(query):
    try:
        with contextlib.closing(sqlite3.connect("file:genscope.db?mode=ro", uri=True)) as connection:
            return connection.execute(query).fetchall()
    except sqlite3.OperationalError:  # not yet made
        return []


def test_the_live_table_shows_what_runs_and_fits_the_terminal(table):
    def shown(height):
        terminal = _output.console(stderr=True)
        terminal.height = height
        live = _claims_table.ClaimsTable(claims.ALL, "quick", terminal)
        now = Progress("toy", "size=1", done=3, total=8, exact=True, failed=0, rate=2.0, seconds_left=2.5)
        live.progress(now)
        live.decided(dataclasses.replace(claims.ALL[1].verdict([], budget="quick", seconds=0.0), verdict="fails"))
        with terminal.capture() as captured:
            terminal.print(live.table())
        return " ".join(captured.get().split())

    tall = shown(40)
    assert "T1 statement of T1 3 of 8 trials, 2.0 trials/s, 0:00:03 left, size=1" in tall
    assert "fails" in tall
    assert "T10 statement of T10 waits" in tall
    assert "1 of 3 claims are decided, 1 wait" in tall
    low = shown(7)
    assert "T1 " in low
    assert "waits" not in low


def test_the_live_table_keeps_the_sample_size_at_80_columns(table):
    terminal = _output.console(stderr=True)
    terminal.width, terminal.height = 80, 40
    live = _claims_table.ClaimsTable(claims.ALL, "quick", terminal)
    doing = "context_length=300 preset=tuned sample_size=70"
    live.progress(Progress("toy", doing, done=0, total=80, exact=False, failed=0, rate=0.0, seconds_left=None))
    with terminal.capture() as captured:
        terminal.print(live.table())
    text = captured.get()
    assert "0 of ≥ 80 trials, sample_size=70" in text
    assert "verdict" in text
    assert max(map(len, text.splitlines())) <= 80


def test_requests_that_make_no_sense(table, refused, directory):
    assert "claims are T1, T2, T10. Choose one of them" in refused("reproduce", "--only", "T3")
    assert "Give 1 or more" in refused("reproduce", "--workers", "0")
    (directory / "file").write_text("")
    assert "not a directory" in refused("reproduce", "--out", "file")
    assert "not a directory" in refused("reproduce", "--out", "absent/deeper")
    assert [path.name for path in directory.iterdir()] == ["file"]
