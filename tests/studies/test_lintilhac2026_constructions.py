"""The studies of the Fourier construction: small points give what the claims read, and a broken model is seen."""

import jax.random as jr
import pytest

from genscope.claims.lintilhac2026_constructions import C1, C2, EXPECTED
from genscope.constructions import _fourier_plan
from genscope.lab import Store, read, run, select
from genscope.studies.lintilhac2026_constructions import (
    CASES,
    CUBES,
    TRACES,
    check_case,
    check_shape,
    cube_trial,
    trace_trial,
)

KEY = jr.key(7)
SMALL = {"context_length": 6, "degree": 2, "sparsity": 2}


def test_cubes_are_exact_and_a_blurred_one_is_not(tmp_path):
    with Store(f"sqlite:///{tmp_path / 'store.db'}") as store:
        assert run(CUBES, select(CUBES, where={"context_length": [6]}, seeds=1), store=store).failed == 0
        found = read(store, select(CUBES, where={"context_length": [6]}, seeds=1))
    assert C1.verdict([found], budget="standard", seconds=0.0).verdict == "holds"
    row = found.frame.row(0, named=True)
    assert row["published_error"] == pytest.approx(row["promised_error"], rel=1e-5)
    assert (row["inputs_checked"], row["blurred_error"] > 0.01) == (64, True)


def test_a_planted_fault_is_seen(monkeypatch):
    """Slopes of the wave that are wrong by a millionth."""
    wave = _fourier_plan.wave

    def wrong(degree, units):
        thresholds, slopes = wave(degree, units)
        return thresholds, slopes * (1 + 1e-6)

    monkeypatch.setattr(_fourier_plan, "wave", wrong)
    assert cube_trial(KEY, **SMALL)["max_error"] > 1e-7


def test_a_trace_is_measured_block_by_block():
    found = trace_trial(KEY, case="G1", variant="minimal", method="gradients")
    assert (found["norm_squared"], found["trace_full"], found["trace_minimal"]) == pytest.approx(
        EXPECTED["G1"], rel=1e-6
    )
    assert max(found["norm_gap"], found["block_gap"], found["trace_gap"]) < 1e-9
    assert found["unpublished"] == 0
    assert found["trace_measured"] == pytest.approx(found["trace_minimal"])


@pytest.mark.slow
def test_the_claim_is_decided_by_the_quick_budget(tmp_path):
    with Store(f"sqlite:///{tmp_path / 'store.db'}") as store:
        for claim, study in ((C1, CUBES), (C2, TRACES)):
            assert run(study, select(study, "quick"), store=store).failed == 0
            found = read(store, select(study, "quick"))
            assert claim.verdict([found], budget="quick", seconds=0.0).verdict == "holds"


def test_impossible_points_are_refused():
    assert set(CASES) == set(EXPECTED)
    assert (CUBES.check, TRACES.check) == (check_shape, check_case)
    for change in ({"case": "G7"}, {"variant": "tuned"}, {"method": "guess"}):
        with pytest.raises(ValueError, match="Choose one of them"):
            check_case({**TRACES.points[0], **change})
    with pytest.raises(ValueError, match="Choose such a value"):
        check_shape({**SMALL, "context_length": 30})
    with pytest.raises(ValueError, match="Lower it"):
        check_shape({**SMALL, "degree": 6})
