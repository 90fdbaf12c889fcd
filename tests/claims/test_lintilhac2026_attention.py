"""Claim C6 on made-up readings: its rule can hold, fail and stay undecided."""

import polars as pl

from genscope.claims.lintilhac2026_attention import C6
from genscope.lab.results.reading import Reading


def runs(shown, total, **changes):
    row = {"status": "ok", "context_length": 20, "sparsity": 3, "degree": 2, "scores": "full", "converged": True}
    row |= {"computed": True, "own_bit": 0.5, "recall": 0.8, "untrained_recall": 0.5}
    return [row | {"shown": i < shown} | changes for i in range(total)]


def verdict(rows):
    frame = pl.DataFrame(rows) if rows else pl.DataFrame({"status": []}, schema={"status": pl.String})
    return C6.verdict([Reading(frame, (), 0)], budget="quick", seconds=0.0)


def test_half_of_the_converged_runs_decide():
    assert verdict(runs(6, 6)).verdict == "holds"
    assert verdict(runs(0, 6)).verdict == "fails"
    assert verdict(runs(6, 12)).verdict == "undecided"
    assert verdict(runs(90, 120)).verdict == "holds"
    assert verdict(runs(45, 120)).verdict == "fails"
    assert verdict(runs(55, 120)).verdict == "undecided"


def test_too_few_or_unconverged_runs_decide_nothing():
    assert verdict([]).verdict == "undecided"
    assert verdict(runs(5, 5)).verdict == "undecided"
    assert verdict(runs(0, 20, converged=False)).verdict == "undecided"


def test_other_sizes_and_the_other_arm_do_not_decide():
    for changes in ({"scores": "positions"}, {"context_length": 10}, {"sparsity": 2}, {"degree": 1}):
        assert verdict(runs(0, 20, **changes)).verdict == "undecided"


def test_numbers_beside_the_share():
    numbers = verdict(runs(6, 6) + runs(0, 2, degree=3) + runs(3, 4, scores="positions")).numbers
    assert numbers["share that shows them"] == 6 / 8
    assert (numbers["share at degree 2"], numbers["share at degree 3"]) == (1.0, 0.0)
    assert numbers["share without bits in the scores"] == 0.75
    assert numbers["share read by influence"] == 1.0
