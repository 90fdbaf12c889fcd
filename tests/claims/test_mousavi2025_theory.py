"""B1 to B4 on made-up readings: each can hold, fail and stay undecided."""

import math

import polars as pl
import pytest

from genscope.claims.mousavi2025_theory import B1, B2, B3, B4
from genscope.lab.results.reading import Reading


def reading(rows, missing=0):
    return Reading(pl.DataFrame(rows) if rows else pl.DataFrame({"status": []}), (), missing)


def decide(claim, rows, missing=0):
    return claim.verdict([reading(rows, missing)], budget="quick", seconds=0.0).verdict


def change(rows, number=0, **changes):
    return [row | changes if i == number else row for i, row in enumerate(rows)]


def tokens(law=lambda alpha: math.exp(-3 * alpha), number=5):
    sizes = {"context_length": 8, "dim": 4, "sparsity": 1, "encoding_dim": 64, "seed": 0, "status": "ok"}
    return [
        {**sizes, "alpha": alpha, "max_error": law(alpha), "promised_error": 1.0, "kept": True}
        | {"norm_excess": 1.0, "inputs_checked": 10}
        for alpha in (1.0, 2.0, 3.0, 4.0, 5.0)[:number]
    ]


def test_b1():
    assert decide(B1, tokens()) == "holds"
    assert decide(B1, change(tokens(), kept=False)) == "fails"
    assert decide(B1, change(tokens(), norm_excess=1.01)) == "fails"
    assert decide(B1, tokens(lambda alpha: alpha**-2.0)) == "fails"  # a power
    assert decide(B1, tokens(lambda alpha: math.exp(alpha))) == "fails"  # the wrong way
    assert decide(B1, change(tokens(), max_error=float("nan"))) == "fails"
    assert decide(B1, tokens(number=3)) == "undecided"
    assert decide(B1, tokens(), missing=1) == "undecided"
    assert decide(B1, change(tokens(), status="failed")) == "undecided"
    assert decide(B1, []) == "undecided"


def heads():
    rows = [{"family": family, "heads": 1, "risk": 0.75} for family in ("retrieval", "block", "full", "best")]
    rows.append({"family": "retrieval", "heads": 2, "risk": 1e-20})
    common = {"status": "ok", "sparsity": 2, "risk_sem": 1e-3, "bound": 0.5, "bound_one_less": 0.5}
    return [common | row for row in rows]


def test_b2():
    assert decide(B2, heads()) == "holds"
    assert decide(B2, change(heads(), risk=0.5)) == "holds"  # on the bound
    assert decide(B2, change(heads(), 2, risk=0.45)) == "fails"
    assert decide(B2, change(heads(), risk=0.49, risk_sem=0.01)) == "undecided"
    assert decide(B2, change(heads(), risk=float("nan"))) == "undecided"
    assert decide(B2, change(heads(), 4, risk=0.6)) == "fails"  # as many heads as tokens, and no better
    assert decide(B2, change(heads(), 4, risk=0.5)) == "undecided"
    assert decide(B2, heads()[1:]) == "undecided"  # a family is missing
    assert decide(B2, heads(), missing=2) == "undecided"
    assert decide(B2, []) == "undecided"


def test_b2_with_trained_networks():
    def trained(few, enough):
        common = {"status": "ok", "family": "full", "sparsity": 2, "risk_sem": 0.01}
        rows = [common | {"heads": 1, "risk": few, "bound": 0.5}, common | {"heads": 2, "risk": enough, "bound": 0.0}]
        readings = [reading(heads()), reading(rows)]
        return B2.verdict(readings, budget="standard", seconds=0.0).verdict

    assert trained(0.6, 0.1) == "holds"
    assert trained(0.3, 0.1) == "fails"
    assert trained(0.6, 0.55) == "undecided"


def recurrent():
    common = {"dim": 4, "sparsity": 1, "encoding_dim": 64, "seed": 0, "status": "ok", "exact": True, "max_error": 1e-15}
    common |= {"weights": "same", "norm_excess": 1.0, "general_risk": 1.4, "general_risk_sem": 0.1}
    return [common | {"context_length": length} for length in (8, 64, 512)]


def test_b3():
    assert decide(B3, recurrent()) == "holds"
    assert decide(B3, change(recurrent(), exact=False)) == "fails"
    assert decide(B3, change(recurrent(), weights="other")) == "undecided"  # a check of the code: a mistake of ours
    assert decide(B3, change(recurrent(), general_risk=1e-20, general_risk_sem=1e-20)) == "fails"
    assert decide(B3, change(recurrent(), general_risk=0.6)) == "undecided"
    assert decide(B3, recurrent()[:1]) == "undecided"  # one length tells nothing about lengths
    assert decide(B3, recurrent(), missing=1) == "undecided"
    assert decide(B3, []) == "undecided"


def feedforward():
    row = {"status": "ok", "identity_error": 1e-16, "ridge_risk": 0.9, "span_risk": 0.5}
    return [row, row]


def trained(excess=0.3, spread=0.01, seeds=4):
    return [
        {"status": "ok", "sample_size": n, "least_risk": 0.5 + excess + spread * seed, "span_risk": 0.5}
        | {"outside_share": 0.5}
        for n in (10, 20)
        for seed in range(seeds)
    ]


def test_b4():
    def found(rows, missing=0, **changes):
        readings = [reading(change(feedforward(), **changes)), reading(rows, missing)]
        return B4.verdict(readings, budget="standard", seconds=0.0).verdict

    assert found(trained()) == "holds"
    assert found(trained(excess=-0.3)) == "fails"
    assert found(trained(excess=0.0, spread=0.1)) == "undecided"
    assert found(trained(seeds=1)) == "undecided"
    assert found(trained(), missing=1) == "undecided"
    assert found([]) == "undecided"
    assert decide(B4, feedforward()) == "undecided"  # quick trains nothing
    assert decide(B4, []) == "undecided"


@pytest.mark.parametrize("wrong", [{"identity_error": 1e-9}, {"identity_error": math.nan}, {"ridge_risk": 0.49}])
def test_b4_is_undecided_while_a_check_of_the_code_fails(wrong):
    readings = [reading(change(feedforward(), **wrong)), reading(trained(excess=-0.3))]
    verdict = B4.verdict(readings, budget="standard", seconds=0.0)
    assert verdict.verdict == "undecided"
    assert any(reason.startswith("check of the code") for reason in verdict.reasons)


def test_b2_has_the_rank_of_the_best_heads_as_a_check():
    verdict = B2.verdict([reading(change(heads(), 3, risk=0.45))], budget="quick", seconds=0.0)
    assert verdict.verdict == "undecided"
    assert [part.check for part in verdict.parts] == [False, False, False, True, False]


@pytest.mark.parametrize("claim", [B1, B2, B3, B4], ids=lambda claim: claim.id)
def test_all_budgets_are_planned(claim):
    assert set(claim.studies) == {"quick", "standard", "paper"}
    for budget, studies in claim.studies.items():
        assert all(study.plan(budget).points for study in studies)
