"""C8 on made-up readings: it can hold, fail and stay undecided."""

import polars as pl

from genscope.claims.lintilhac2026_probes import C8
from genscope.lab.results.reading import Reading


def rows(right, wrong, **changes):
    common = {"status": "ok", "context_length": 20, "sparsity": 20, "queries": 100, "probe_queries": 50}
    ours = common | {"restriction": "affine", "exact_degree": True, "recovered": True, "found_sparsity": 20} | changes
    theirs = common | {"restriction": "coordinate", "exact_sparsity": False, "found_sparsity": 15}
    return [ours | {"exact_sparsity": True}] * right + [ours | {"exact_sparsity": False}] * wrong + [theirs] * 5


def verdict(made, missing=0):
    frame = pl.DataFrame(made, infer_schema_length=None) if made else pl.DataFrame({"status": []})
    return C8.verdict([Reading(frame, (), missing)], budget="quick", seconds=0.0)


def decide(*arguments, missing=0, **changes):
    return verdict(rows(*arguments, **changes), missing).verdict


def test_c8():
    assert decide(80, 0) == "holds"
    assert decide(79, 1) == "undecided"
    assert decide(60, 20) == "fails"
    assert decide(80, 0, exact_degree=False) == "fails"  # both must be right
    assert decide(40, 0) == "undecided"  # too few to tell
    assert decide(80, 0, missing=1) == "undecided"
    assert decide(60, 20, missing=1) == "fails"
    assert decide(600, 0, missing=1) == "holds"  # however the last one ends
    assert decide(80, 0, status="failed") == "undecided"
    assert verdict([]).verdict == "undecided"


def test_trained_networks_are_reported_beside_and_do_not_decide():
    common = {"status": "ok", "degree": 2, "converged": True, "coarse_degree": 2, "coarse_right": True}
    one = common | {"fine_degree": 3, "fine_right": False}
    two = common | {"converged": False, "fine_degree": None, "fine_right": False}
    readings = [Reading(pl.DataFrame(made, infer_schema_length=None), (), 0) for made in (rows(80, 0), [one, two])]
    found = C8.verdict(readings, budget="standard", seconds=0.0)
    assert found.verdict == "holds"
    assert found.numbers["trained networks that converged"] == "1 of 2"
    assert found.numbers["trained, tolerance 0.1: components of the target"] == "1 of 1"
    assert found.numbers["trained, tolerance 0.02: degree of the target"] == "0 of 1"


def test_the_paper_s_restriction_is_reported_beside_and_does_not_decide():
    found = verdict(rows(80, 0))
    assert found.verdict == "holds"
    assert found.numbers["coordinates, T = 20: share right"] == 0
    assert found.numbers["coordinates, T = 20: mean count of s = 20"] == 15
