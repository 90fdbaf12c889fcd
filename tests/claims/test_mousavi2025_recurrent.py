"""B10 on made-up readings: it can hold, fail and stay undecided, each part by itself."""

import numpy as np
import polars as pl
import pytest

from genscope.claims.mousavi2025_recurrent import B10
from genscope.lab.results.reading import Reading

LENGTHS = (4, 8, 16, 32)


def rows(*, growth=1.0, fitted=0.6, narrow=0.25, fit_norm=7.0, fit_risk=1.4, spread=0.05, seeds=6, **changes):
    """Rows in which the norm grows with N to some power, and Lemma 36's samples to another."""
    noise = 1 + spread * np.random.default_rng(0).normal(size=(len(LENGTHS), seeds))
    made = []
    for length, factors in zip(LENGTHS, noise, strict=True):
        for factor in map(float, factors):
            base = {"status": "ok", "context_length": length, "training_risk": 0.01, "bound": 0.01, "frobenius": 9.0}
            base |= {"spectral": factor * length**growth, "lemma_samples": None, "lemma_error": None}
            base |= {"squared_norm": 4 * factor * length**1.4}
            made += [
                {**base, "network": "general", "risk": 0.08, "lemma_samples": factor * length**fitted}
                | {"lemma_error": 1e-12}
                | changes,
                {**base, "network": "narrow", "risk": narrow * factor},
                {**base, "network": "fit", "risk": fit_risk * factor, "squared_norm": fit_norm * factor},
            ]
    return made


def decide(found, missing=0):
    return B10.verdict([Reading(pl.DataFrame(found), (), missing)], budget="standard", seconds=0.0)


def test_it_holds_and_says_by_how_much():
    found = decide(rows())
    assert found.verdict == "holds"
    exponents = [part.numbers["exponent"] for part in found.parts if "exponent" in part.numbers]
    assert exponents == pytest.approx([1.0, 0.6], abs=0.05)


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"growth": 0.2}, "grows at least like √N"),
        ({"narrow": 0.05}, "N/2 units"),
        ({"fit_norm": 500.0}, "fits 4N samples"),
        ({"fit_risk": 0.1}, "does not generalize"),
        ({"fitted": 0.0}, "sixth root"),
    ],
)
def test_each_part_can_fail_alone(changes, part):
    found = decide(rows(**changes))
    assert found.verdict == "fails"
    assert [each.decision for each in found.parts if part in each.statement] == ["fails"]
    assert [each.decision for each in found.parts].count("fails") == 1


def test_what_decides_nothing():
    assert decide(rows(growth=0.5)).verdict == "undecided"
    assert decide(rows(spread=1e-9, narrow=0.1)).verdict == "undecided"
    assert decide(rows(), missing=1).verdict == "undecided"
    assert decide(rows(growth=0.2), missing=1).verdict == "fails"
    assert decide(rows(growth=0.2, risk=0.2)).verdict == "undecided"  # networks that did not arrive
    assert decide([row for row in rows() if row["context_length"] < 16]).verdict == "undecided"  # two lengths
    assert decide(rows(frobenius=0.001)).verdict == "undecided"  # a check of the code
    assert decide(rows(lemma_error=0.1)).verdict == "undecided"


def test_a_budget_without_trials():
    assert B10.verdict([], budget="quick", seconds=0.0).verdict == "undecided"
