"""C1 and C2 on made-up readings: they can hold, fail and stay undecided."""

import polars as pl
import pytest

from genscope.claims.lintilhac2026_constructions import C1, C2, EXPECTED
from genscope.lab.results.reading import Reading


def exact(*changes, missing=0):
    good = {"status": "ok", "max_error": 1e-15, "blurred_error": 0.3}
    return Reading(pl.DataFrame([good, *({**good, **change} for change in changes)]), (), missing)


def closed(*changes, missing=0, cases=tuple(EXPECTED)):
    rows = []
    for case in cases:
        norm, full, minimal = EXPECTED[case]
        row = {"status": "ok", "case": case, "norm_squared": norm, "trace_full": full, "trace_minimal": minimal}
        row |= {"norm_gap": 1e-16, "block_gap": 1e-12, "trace_gap": 1e-8, "unpublished": 0.2}
        rows += [{**row, "method": method} for method in ("gradients", "Hessian")]
    rows += [{**rows[number], **change} for number, change in enumerate(changes)]
    return Reading(pl.DataFrame(rows), (), missing)


def verdict(claim, reading):
    return claim.verdict([reading], budget="quick", seconds=0.0).verdict


def test_exactness_needs_every_input_and_a_test_with_power():
    assert verdict(C1, exact()) == "holds"
    assert verdict(C1, exact({"max_error": 2e-12})) == "fails"
    assert verdict(C1, exact({"max_error": float("nan")})) == "fails"
    assert verdict(C1, exact({"blurred_error": 1e-14})) == "fails"  # then the rule could not fail
    assert verdict(C1, exact(missing=1)) == "undecided"
    assert verdict(C1, exact({"status": "failed", "max_error": None})) == "undecided"
    assert verdict(C1, Reading(exact().frame.clear(), (), 8)) == "undecided"


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"norm_squared": 1378.16}, 0),
        ({"trace_full": 431.0}, 0),
        ({"trace_minimal": 330.1}, 0),
        ({"norm_gap": 2e-6}, 1),
        ({"block_gap": 2e-6}, 2),
        ({"block_gap": float("nan")}, 2),
    ],
)
def test_every_comparison_can_fail(change, part):
    parts = C2.decide([closed(change)])
    assert [each.decision for each in parts] == ["fails" if number == part else "holds" for number in range(4)]


def test_the_hessian_has_a_tolerance_of_its_own():
    assert verdict(C2, closed({}, {"trace_gap": 9e-6})) == "holds"
    assert verdict(C2, closed({}, {"trace_gap": 2e-5})) == "fails"
    assert verdict(C2, closed()) == "holds"
    assert verdict(C2, closed(missing=1)) == "undecided"
    assert verdict(C2, Reading(closed().frame.clear(), (), 6)) == "undecided"
