"""A claim without a finished trial is undecided: with an empty store, with trials of an older study, with failures."""

import pytest

from genscope import claims
from genscope.lab import Record, Store, read, select
from genscope.lab.plans.design import rounds
from genscope.lab.plans.study import Trial

STATES = {
    "nothing": lambda trial: [],
    "another revision": lambda trial: [
        Record(Trial(trial.study, trial.revision + 1, trial.point, trial.seed), {"success": True})
    ],
    "failures": lambda trial: [Record(trial, {}, error="RuntimeError: planted")],
}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("claim", claims.ALL, ids=lambda claim: claim.id)
def test_a_claim_without_finished_trials_is_undecided(claim, state, tmp_path):
    with Store(f"sqlite:///{tmp_path / 's.db'}") as store:
        readings = []
        for study in claim.studies["quick"]:
            selection = select(study, "quick")
            for point in selection.points:
                first, *_ = next(rounds(selection, point, store.results))
                store.add(STATES[state](first))
            readings.append(read(store, selection))
        found = claim.verdict(readings, budget="quick", seconds=0.0)
    assert found.verdict == "undecided"
    assert found.parts, "the reader is told which question is open"
