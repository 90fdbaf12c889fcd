"""Rules before data: every rule is written down with its date, and a changed one replaces nothing silently."""

import dataclasses
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from genscope import claims
from genscope.claims import _decide
from genscope.lab import Store, Verdict
from genscope.lab.results.verdict import earlier
from genscope.report import page
from genscope.report.verdicts import verdicts

_FILE = Path(__file__).parents[2] / "docs" / "make_preregistration.py"
_SPEC = importlib.util.spec_from_file_location("make_preregistration", _FILE)
registration = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(registration)


def test_every_rule_is_written_down_as_it_is():
    advice = "a rule changed: run python docs/make_preregistration.py, which writes it down with today's date"
    assert registration.updated("today") == registration.log(), advice


def test_the_page_says_what_the_claims_say(monkeypatch):
    """The simulated power takes a while, and is compared where it was written."""
    page = registration.PAGE.read_text()
    powers = iter([line.removeprefix("- Power: ")[:-1] for line in page.splitlines() if line.startswith("- Power: ")])
    monkeypatch.setattr(registration, "power", lambda claim: next(powers))
    assert registration.page(registration.log()) == page


@pytest.mark.slow
def test_the_power_is_what_the_rules_have():
    assert registration.page(registration.log()) == registration.PAGE.read_text()


def test_a_digest_follows_words_and_code():
    digest = claims.A6.rule_digest
    assert dataclasses.replace(claims.A6, rule="Another").rule_digest != digest
    assert dataclasses.replace(claims.A6, decide=claims.A5.decide).rule_digest != digest
    assert dataclasses.replace(claims.A6, weighs_failures=True).rule_digest != digest
    assert dataclasses.replace(claims.A6, statement="Another").rule_digest == digest


# An edit, and claims whose rules it changes and does not change.
EDITS = {
    "studies/lintilhac2026_tilings.py": ("VARIANCE = 0.25", "VARIANCE = 0.4", {"C9"}, {"A1", "A4"}),
    "lab/results/verdict.py": ('if "fails" in decisions:', 'if False and "fails" in decisions:', {"A1", "C9"}, set()),
    "lab/statistics/estimation.py": ("search.confidence", "0.5 * search.confidence", {"A4", "A8"}, {"A1", "B5"}),
    "claims/edelman2022_capacity.py": ("RISE = 0.05", "RISE = 0.10", {"A2"}, {"A1", "C9"}),
    "report/words.py": ("def ", "def another(): ...\n\n\ndef ", set(), {"A1", "A4", "C9"}),
}


@pytest.mark.slow
@pytest.mark.parametrize("file", EDITS)
def test_a_digest_follows_all_that_decides(file, tmp_path):
    """A kinder constant of a study, say, turned C9 from *fails* to *holds* under the same digest."""
    old, new, changed, kept = EDITS[file]
    shutil.copytree(
        Path(claims.__file__).parents[1], tmp_path / "genscope", ignore=shutil.ignore_patterns("__pycache__")
    )
    text = (tmp_path / "genscope" / file).read_text()
    assert old in text
    (tmp_path / "genscope" / file).write_text(text.replace(old, new, 1))
    code = "import json; from genscope import claims; print(json.dumps({c.id: c.rule_digest for c in claims.ALL}))"
    told = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": str(tmp_path)}, capture_output=True, check=True
    )
    found = json.loads(told.stdout)
    now = {claim.id: claim.rule_digest for claim in claims.ALL}
    assert all(found[name] != now[name] for name in changed)
    assert all(found[name] == now[name] for name in kept)


def made(verdict, *, rule="old", digest="1", budget="quick"):
    return Verdict("A6", "s", "edelman2022", verdict, rule, (), budget, rule_digest=digest)


@pytest.fixture
def store(tmp_path):
    with Store(f"sqlite:///{tmp_path}/store.db") as store:
        yield store


def test_the_newest_verdict_by_another_rule_is_remembered(store):
    store.put_verdict("A6", "quick", made("fails", digest="0", rule="oldest").as_dict())
    store.put_verdict("A6", "quick", made("fails").as_dict())
    store.put_verdict("A6", "standard", made("undecided", digest="3", budget="standard").as_dict())
    store.put_verdict("A6", "quick", made("holds", rule="new", digest="2").as_dict())
    history = store.verdicts(history=True)
    assert earlier(made("holds", rule="new", digest="2"), history)["rule"] == "old"  # though "new" was decided since
    assert earlier(made("fails"), history)["rule"] == "new"
    told = dataclasses.replace(made("holds", digest="2"), before=earlier(made("holds", digest="2"), history))
    assert "by the earlier one the claim failed on 20" in told.changed_rule
    assert Verdict.from_dict(told.as_dict()) == told


def test_verdicts_without_a_digest_are_told_by_their_words(store):
    store.put_verdict("A6", "quick", {**made("fails").as_dict(), "rule_digest": ""})
    history = store.verdicts(history=True)
    assert earlier(made("holds"), history) is None
    assert earlier(made("holds", rule="new"), history)["verdict"] == "fails"


def test_digests_of_another_length_are_told_by_their_words(store):
    """Until 2026-11-19 they covered less: what an older genscope decided by the same words is by the same rule."""
    store.put_verdict("A6", "quick", made("fails", rule="new", digest="123").as_dict())
    assert earlier(made("holds", rule="new"), store.verdicts(history=True)) is None
    assert earlier(made("holds"), store.verdicts(history=True))["verdict"] == "fails"


def test_a_verdict_by_an_older_rule_says_so_where_it_is_shown(store):
    store.put_verdict("A6", "quick", made("holds").as_dict())
    rules = {"A6": {"rule": "new", "rule_digest": "2"}}
    [marked] = verdicts(store.verdicts(), rules)
    assert "the rule has changed since this verdict" in marked.cautions[-1]
    assert "genscope reproduce --only A6 --budget quick" in marked.cautions[-1]
    assert marked.cautions[-1] in page.render(store, rules=rules)
    for same in ({"A6": {"rule": "old", "rule_digest": "1"}}, {"A1": rules["A6"]}, None):
        assert verdicts(store.verdicts(), same)[0].cautions == ()


def test_a_changed_rule_does_not_replace_a_verdict_silently(store, monkeypatch):
    """The claim is decided by one rule, the rule becomes kinder, and the next verdict says what the first was."""
    strict = dataclasses.replace(claims.C9, rule="Strict", decide=lambda readings: [claims.Part("p", "fails", {})])
    kind = dataclasses.replace(claims.C9, rule="Kind", decide=lambda readings: [claims.Part("p", "holds", {})])
    found = []
    for claim in (strict, kind, kind):
        monkeypatch.setattr(_decide, "chosen", lambda only, claim=claim: [claim])
        [verdict] = claims.decide(store, "quick", only=["C9"]).verdicts
        found.append((verdict.verdict, verdict.changed_rule.partition(" on 20")[0]))
    said = "The rule has changed: by the earlier one the claim failed"
    assert found == [("fails", ""), ("holds", said), ("holds", said)]
