"""A3 on made-up readings: it can hold, fail and stay undecided."""

import polars as pl
import pytest

from genscope.claims.edelman2022_constructions import A3, WORDS
from genscope.lab.results.reading import Reading
from genscope.studies.edelman2022_constructions import STUDY


def reading(*changes, missing=0):
    """One good row per construction, and rows of the first with something changed."""
    good = {"status": "ok", "verified": True, "norm_excess": 1.0, "max_error": 1e-14}
    rows = [{"construction": name, **good} for name in WORDS]
    rows += [{"construction": "threshold", **good, **change} for change in changes]
    return Reading(pl.DataFrame(rows), (), missing)


def verdict(found):
    return A3.verdict([found], budget="quick", seconds=0.0)


def test_all_cases_must_verify_within_their_norms():
    assert verdict(reading()).verdict == "holds"
    assert len(verdict(reading()).parts) == len(WORDS)
    assert verdict(reading({"verified": False})).verdict == "fails"
    assert verdict(reading({"norm_excess": 1.001})).verdict == "fails"
    assert verdict(reading({"norm_excess": float("nan")})).verdict == "fails"


def test_what_is_missing_leaves_it_open():
    assert verdict(reading(missing=1)).verdict == "undecided"
    assert verdict(reading({"status": "failed", "verified": None})).verdict == "undecided"
    few = Reading(reading().frame.filter(pl.col("construction") != "any"), (), 0)
    assert verdict(few).verdict == "undecided"


@pytest.mark.parametrize("budget", ["quick", "standard", "paper"])
def test_every_construction_is_in_the_study(budget):
    assert {point["construction"] for point in STUDY.plan(budget).points} == set(WORDS)
