"""Claim C5 on made-up readings: its rule can hold, fail and stay undecided."""

import math

import polars as pl
import pytest

from genscope.claims.lintilhac2026_perturbation import C5
from genscope.lab.results.reading import Reading


def rows(change, functions=2, status="ok"):
    row = {
        "status": status,
        "context_length": 10,
        "degree": 2,
        "sparsity": 5,
        "sigma": [1e-5, 1e-2],
        "trace": 100.0,
        "trace_change": [0.01, change],
        "trace_change_sem": [0.0, 0.0],
        "bound": [1.0, 1000.0],
        "smoothed_change": [0.0, -20.0],
        "steady_sigma": 1e-3,
    }
    return [row] * functions


def verdict(records, missing=0):
    frame = pl.DataFrame(records) if records else pl.DataFrame({"status": []}, schema={"status": pl.String})
    return C5.verdict([Reading(frame, (), missing)], budget="quick", seconds=0.0)


def test_c5_compares_with_a_tenth_of_the_bound_at_every_sigma():
    assert verdict(rows(99.0)).verdict == "holds"
    assert verdict(rows(101.0)).verdict == "fails"
    assert verdict(rows(0.0) + rows(101.0)).verdict == "fails"
    assert verdict(rows(math.nan)).verdict == "fails"
    noisy = [row | {"trace_change_sem": [0.0, 1.0]} for row in rows(99.0)]
    assert verdict(noisy).verdict == "fails"
    small = [row | {"trace_change": [0.2, 0.0]} for row in rows(0.0)]
    assert verdict(small).verdict == "fails"  # the planted fault: a bound ten times too small at one sigma


def test_c5_is_undecided_without_all_of_its_trials():
    assert verdict(rows(99.0), missing=1).verdict == "undecided"
    assert verdict(rows(99.0) + rows(0.0, status="failed")).verdict == "undecided"
    assert verdict([]).verdict == "undecided"
    assert verdict(rows(101.0), missing=1).verdict == "fails"


def test_c5_says_how_loose_the_bound_is_and_what_few_functions_show():
    numbers = verdict(rows(50.0)).numbers
    assert numbers["largest change over the bound"] == pytest.approx(0.05)
    assert numbers["bound over change, at least"] == pytest.approx(20)
    assert numbers["at σ"] == 1e-2
    assert numbers["largest change over the trace itself"] == pytest.approx(0.5)
    assert numbers["largest |Δ(σ)| over the trace, beside"] == pytest.approx(0.2)
    assert numbers["share of σ at which flips are excluded"] == 0.5
    assert numbers["confidence that the largest exceeds the 90 % quantile"] == pytest.approx(1 - 0.9**2)
