"""Rules before data: every rule is written down with its date, and a changed one replaces nothing silently."""

import dataclasses
import importlib.util
from pathlib import Path

import pytest

from genscope import claims
from genscope.claims import _decide
from genscope.lab import Store, Verdict
from genscope.lab.results.verdict import earlier

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
    assert dataclasses.replace(claims.A6, statement="Another").rule_digest == digest


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
