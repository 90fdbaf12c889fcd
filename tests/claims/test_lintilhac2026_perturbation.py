"""Claim C5 on made-up readings: its rule can hold, fail and stay undecided."""

import math

import polars as pl
import pytest

from genscope.claims.lintilhac2026_perturbation import C5
from genscope.lab.results.reading import Reading

MESH = {
    "status": "ok",
    "trace": 100.0,
    "trace_change": [0.01, 50.0],
    "trace_change_sem": [0.0, 0.0],
    "bound": [1.0, 1000.0],
    "smoothed_change": [0.0, -20.0],
}


def rows(change, functions=2, sem=0.1, **changes):
    row = {"status": "ok", "constant": "0.1", "degree": 2, "sparsity": 5, "sigma": 0.02, "trace": 100.0}
    return [row | {"perturbation": change, "perturbation_sem": sem} | changes] * functions


def verdict(records, missing=0, beside=(MESH,)):
    frame = pl.DataFrame(records) if records else pl.DataFrame({"status": []}, schema={"status": pl.String})
    readings = [Reading(frame, (), missing), Reading(pl.DataFrame(list(beside)), (), 0)]
    return C5.verdict(readings, budget="quick", seconds=0.0)


@pytest.mark.parametrize("sign", [1, -1])
def test_the_largest_function_decides(sign):
    assert verdict(rows(5.0 * sign)).verdict == "holds"
    assert verdict(rows(15.0 * sign)).verdict == "fails"
    assert verdict(rows(0.0) + rows(15.0 * sign, 1)).verdict == "fails"
    assert verdict(rows(10.1 * sign)).verdict == "undecided"  # within its limits
    assert verdict(rows(5.0 * sign, sem=4.0)).verdict == "undecided"


def test_what_is_missing_may_be_the_largest():
    assert verdict(rows(5.0), missing=1).verdict == "undecided"
    assert verdict(rows(5.0) + rows(5.0, status="failed")).verdict == "undecided"
    assert verdict(rows(15.0), missing=1).verdict == "fails"
    assert verdict(rows(math.nan)).verdict == "undecided"
    assert verdict([]).verdict == "undecided"


def test_other_constants_have_other_noise():
    assert verdict(rows(5.0) + rows(90.0, constant="fitted")).verdict == "holds"


def test_the_analytic_bound_stands_beside():
    numbers = verdict(rows(5.0)).numbers
    assert numbers["largest |Δ(σ)| over the trace"] == pytest.approx(0.05)
    assert numbers["largest change of the trace over its analytic bound, beside"] == pytest.approx(0.05)
    assert numbers["largest change of the trace over the trace, σ to 0.01, beside"] == pytest.approx(0.5)
    assert numbers["largest |Δ(σ)| over the trace, σ to 0.01, beside"] == pytest.approx(0.2)
