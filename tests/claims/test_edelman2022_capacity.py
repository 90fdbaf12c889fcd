"""Claims A1 and A2 on made-up readings: each rule can hold, fail and stay undecided."""

import polars as pl

from genscope.claims.edelman2022_capacity import A1, A2
from genscope.lab.results.reading import Reading


def decide(claim, rows):
    frame = pl.DataFrame(rows) if rows else pl.DataFrame({"status": []}, schema={"status": pl.String})
    return claim.verdict([Reading(frame, (), 0)], budget="quick", seconds=0.0).verdict


def searches(gradient=0.99, halved=1.9, deep=0.99, random=0.5):
    head = {"status": "ok", "inequality": "head", "worst_random": random}
    return [
        head | {"worst_gradient": gradient, "worst_weakened": halved},
        head | {"worst_gradient": 0.9, "worst_weakened": 0.9},
        head | {"inequality": "deep", "worst_gradient": deep, "worst_weakened": 9.0},
    ]


def test_a1_needs_no_violation_and_a_search_with_power():
    assert decide(A1, searches()) == "holds"
    assert decide(A1, searches(gradient=1 + 1e-10)) == "holds"  # rounding
    assert decide(A1, searches(gradient=1.001)) == "fails"
    assert decide(A1, searches(random=1.001)) == "fails"
    assert decide(A1, searches(halved=0.99)) == "fails"
    assert decide(A1, searches(gradient=float("nan"))) == "fails"
    assert decide(A1, []) == "undecided"


def test_a1_shows_the_deep_network_beside():
    numbers = A1.verdict([Reading(pl.DataFrame(searches()), (), 0)], budget="quick", seconds=0.0).numbers
    assert numbers["worst ratio, two layers, beside"] == 0.99


def slopes(form, values, bound="head"):
    return [
        {"status": "ok", "bound": bound, "form": form, "context_length": 10**power, "slope": slope}
        for power, slope in zip(range(3, 10), values, strict=True)
    ]


CONSTANT = [36.0] * 7


def test_a2_wants_order_forms_affine_and_explicit_slopes_not_to_rise():
    assert decide(A2, slopes("order", CONSTANT) + slopes("explicit", CONSTANT)) == "holds"
    assert decide(A2, slopes("explicit", [40.0, 38.0, *CONSTANT[2:]])) == "holds"  # they may fall
    assert decide(A2, slopes("explicit", [36.0, 36.5, 37.0, 37.4, 37.4, 37.4, 37.4])) == "holds"
    assert decide(A2, slopes("explicit", [36.0, 36.5, 37.0, 37.5, 38.0, 38.5, 39.0])) == "fails"
    assert decide(A2, slopes("explicit", [40.0, 36.0, 36.0, 36.0, 36.0, 36.0, 38.0])) == "fails"
    assert decide(A2, slopes("order", [36.0, *[36.001] * 6])) == "fails"
    assert decide(A2, slopes("order", [36.0 * (1 + 1e-12), *[36.0] * 6])) == "holds"


def test_a2_fails_for_growth_like_a_power():
    """The planted fault: T^0.1 instead of log T."""
    assert decide(A2, slopes("explicit", [10 ** (0.1 * power) for power in range(3, 10)])) == "fails"


def test_a2_is_undecided_on_a_part_of_the_range():
    assert decide(A2, slopes("order", CONSTANT)[:-1]) == "undecided"
    assert decide(A2, []) == "undecided"
