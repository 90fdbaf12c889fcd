"""Every claim can fail: with a fault planted at its source, its study run and its own rule asked."""

from pathlib import Path

import polars as pl
import pytest

from genscope import claims, lab
from genscope.claims._planted import PLANTED
from genscope.lab import Store, select
from genscope.lab.results.reading import Reading, read
from tests.claims.faults import FAULTS

GUIDE = Path(__file__).parents[2] / "docs" / "claims.md"
CLAIMS = {claim.id: claim for claim in claims.ALL}
SLOW = [pytest.param(name, marks=pytest.mark.slow) if fault.slow else name for name, fault in FAULTS.items()]


def decide(name, path):
    """The claim's parts and verdict, its studies run at the fault's size in a store of their own."""
    found = CLAIMS[name].verdict(_readings(name, path), budget="quick", seconds=0.0)
    return found.verdict, {part.statement: part.decision for part in found.parts}


def _readings(name, path):
    """What the studies measure; claims whose faults are alike, down to their plans, are decided by the same trials."""
    fault = FAULTS[name]
    alike = id(fault.plans), fault.prepare, fault.plant, path.name
    if alike in _SHARED:
        return _SHARED[alike]
    readings = []
    with Store(f"sqlite:///{path}") as store:
        # the first budget at which the claim has as many studies as the fault has plans
        offered = (CLAIMS[name].studies[budget] for budget in lab.BUDGETS)
        studies = next(studies for studies in offered if len(studies) == len(fault.plans))
        for study, plan in zip(studies, fault.plans, strict=True):
            if plan is None:
                readings.append(Reading(pl.DataFrame(), (), 1))
                continue
            small = study.replace(budgets={"quick": plan})
            summary = lab.run(small, select(small, "quick"), store=store)
            assert not summary.failed
            readings.append(read(store, select(small, "quick")))
    return _SHARED.setdefault(alike, readings)


_SHARED: dict[tuple, list[Reading]] = {}


def test_verdicts_tell_what_was_planted():
    assert {
        name: fault.words for name, fault in FAULTS.items()
    } == PLANTED  # claims/_planted.py: add the new claim's line


def test_every_claim_has_a_fault():
    assert [*FAULTS] == [*CLAIMS]


@pytest.mark.parametrize(("name", "fault"), FAULTS.items())
def test_a_fault_is_in_the_guide(name, fault):
    assert f"| {name} | {fault.words} | {'test-all' if fault.slow else 'test'} |" in GUIDE.read_text(encoding="utf-8")


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_what_a_fault_replaces_is_there(fault, monkeypatch):
    fault.prepare(monkeypatch)
    fault.plant(monkeypatch)


@pytest.mark.parametrize("name", SLOW)
def test_a_planted_fault_is_caught(name, tmp_path, monkeypatch):
    FAULTS[name].prepare(monkeypatch)
    _, control = decide(name, tmp_path / "control.db")
    FAULTS[name].plant(monkeypatch)
    verdict, parts = decide(name, tmp_path / "fault.db")
    assert verdict == "fails"
    assert [part for part, decision in parts.items() if decision == "fails" and control.get(part) != "fails"]
