"""Claim C6 on made-up readings: its rule can hold, fail and stay undecided."""

import polars as pl
import pytest

from genscope.claims.lintilhac2026_attention import ARMS, C6, RUNS
from genscope.lab.results.reading import Reading


def runs(shown, total=RUNS, *, before=0, attended=False, **changes):
    row = {"status": "ok", "context_length": 20, "sparsity": 3, "degree": 2, "scores": "factored", "scale": 1.0}
    row |= {"converged": True, "computed": True, "own_bit": 0.5, "shown": attended}
    return [
        row | {"seed": i, "weights_shown": i < shown, "untrained_weights_shown": i < before} | changes
        for i in range(total)
    ]


def arms(shown, **changes):
    """All four arms, each with so many runs that show their components."""
    counts = shown if isinstance(shown, tuple) else (shown,) * len(ARMS)
    return [
        row
        for (scale, degree), count in zip(ARMS, counts, strict=True)
        for row in runs(count, scale=scale, degree=degree, **changes)
    ]


def verdict(rows):
    frame = pl.DataFrame(rows) if rows else pl.DataFrame({"status": []}, schema={"status": pl.String})
    return C6.verdict([Reading(frame, (), 0)], budget="standard", seconds=0.0)


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (100, "holds"),
        (90, "undecided"),  # 0.6 [0.485, 0.708] after the correction
        (50, "fails"),
        ((100, 100, 100, 90), "undecided"),
        ((100, 50, 100, 100), "fails"),
    ],
)
def test_every_arm_must_show_them_in_half_of_its_runs(shown, expected):
    assert verdict(arms(shown)).verdict == expected


def test_training_must_bring_what_is_seen():
    """Components that the untrained network shows as often are no finding, and fewer afterwards are against it."""
    assert verdict(arms(100, before=100)).verdict == "undecided"
    parts = verdict(arms(100, before=150)).parts
    assert [part.decision for part in parts] == ["holds", "fails"] * 4


def test_too_few_or_unconverged_runs_decide_nothing():
    assert verdict([]).verdict == "undecided"
    assert verdict(runs(0, RUNS - 1)).verdict == "undecided"
    assert verdict(runs(0, RUNS, converged=False)).verdict == "undecided"
    missing_arm = [row for row in arms(140) if (row["scale"], row["degree"]) != ARMS[-1]]
    assert verdict(missing_arm).verdict == "undecided"


def test_the_first_converged_runs_count():
    later = [row | {"seed": row["seed"] + RUNS} for row in arms(0)]
    assert verdict(later + arms(100)).verdict == "holds"
    broken = [row | {"seed": -1, "converged": False} for row in arms(0)]
    assert verdict(broken + arms(100)).verdict == "holds"


def test_other_sizes_and_networks_do_not_decide():
    for changes in ({"scores": "full"}, {"context_length": 10}, {"sparsity": 2}):
        assert verdict(arms(0, **changes)).verdict == "undecided"


def test_one_score_matrix_and_attention_stand_beside():
    numbers = verdict(arms(100) + runs(30, scores="full", attended=True)).numbers
    assert numbers["share whose score matrix shows them, initial scale 1, degree 2"] == pytest.approx(2 / 3)
    assert numbers["share whose score matrix shows them, one score matrix, initial scale 1, degree 2"] == 0.2
    assert numbers["share whose attention shows all, initial scale 0.1, degree 3"] == 0.0
    assert numbers["share whose attention shows all, one score matrix, initial scale 1, degree 2"] == 1.0


def test_the_rule_can_decide_at_the_sizes_of_its_budgets():
    for budget in ("standard", "paper"):
        (study,) = C6.studies[budget]
        points = study.plan(budget).points
        assert all(
            any(p["scale"] == s and p["degree"] == d and p["scores"] == "factored" for p in points) for s, d in ARMS
        )
        assert study.plan(budget).seeds >= RUNS
    quick = C6.verdict([], budget="quick", seconds=0.0)
    assert (quick.verdict, C6.studies["quick"]) == ("undecided", ())
    assert "without trials" in quick.departures[0]
