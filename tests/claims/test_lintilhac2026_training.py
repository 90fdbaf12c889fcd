"""Each rule on made-up readings: it can hold, fail and stay undecided."""

import json

import polars as pl
import pytest

from genscope.claims.lintilhac2026_training import C3, C4
from genscope.lab.results.reading import Reading

NOTHING = Reading(pl.DataFrame({"status": []}), (), 0)


def reading(rows):
    return Reading(pl.DataFrame([{"status": "ok", **row} for row in rows]), (), 0)


def verdict(claim, read):
    found = claim.verdict([read], budget="quick", seconds=0.0)
    json.dumps(found.as_dict(), allow_nan=False)  # as it is stored
    return found


def gaps(law, rejected=lambda k, s: 0):
    """Five functions in each of six classes, a fixed scatter around a law; some of them rejected."""
    return reading(
        {
            "context_length": 10,
            "sample_size": 256,
            "degree": k,
            "sparsity": s,
            "converged": i >= rejected(k, s),
            "gap": law(k, s) + 0.01 * i,
            "gap_sem": 0.001,
        }
        for k in (1, 2, 3)
        for s in (2, 5)
        for i in range(5)
    )


def decisions(read):
    return [part.decision for part in verdict(C3, read).parts]


def test_c3_needs_both_correlations():
    assert decisions(gaps(lambda k, s: k + s))[:2] == ["holds", "holds"]
    assert decisions(gaps(lambda k, s: k - s + 9))[:2] == ["holds", "fails"]
    assert decisions(gaps(lambda k, s: -k + s + 9))[:2] == ["fails", "holds"]
    assert decisions(gaps(lambda k, s: 0.001 * k))[:2] == ["undecided", "undecided"]
    assert decisions(NOTHING) == ["undecided"]


@pytest.mark.parametrize(
    ("law", "expected"),
    [
        (lambda k, s: k**2 * s**1.5, ["holds", "holds", "holds"]),
        (lambda k, s: k**0.5 + s**0.5, ["fails", "fails", "undecided"]),  # without any interaction
        (lambda k, s: 2 * k**2 + 0.1 * s, ["holds", "fails", "undecided"]),
        (lambda k, s: 9 + 2 * k + 2 * s - 0.9 * k * s, ["fails", "fails", "fails"]),
    ],
)
def test_c3_exponents_and_interaction(law, expected):
    assert decisions(gaps(law))[2:] == expected


def test_c3_counts_gaps_below_their_error_as_that():
    """A gap of 0 at degree 1 has no logarithm; taken at its standard error it makes the exponent no larger."""
    read = gaps(lambda k, s: 0.0 if k == 1 else 0.5 * s * k)
    part = verdict(C3, read).parts[2]
    assert part.decision == "holds"
    assert part.numbers["exponent of the gap in degree"] < 10


def test_c3_exponents_need_runs_that_converge():
    many = gaps(lambda k, s: k**2 * s**2, rejected=lambda k, s: int(k == 3) * 2)
    assert decisions(many)[2:] == ["undecided"] * 3


def test_c3_counts_rejected_runs_and_lets_them_withhold_a_verdict():
    few = verdict(C3, gaps(lambda k, s: k + s, rejected=lambda k, s: int((k, s) == (3, 5))))
    assert [part.decision for part in few.parts[:2]] == ["holds", "holds"]
    assert few.numbers["runs that did not"] == 1
    many = verdict(C3, gaps(lambda k, s: k + s, rejected=lambda k, s: 4 * (k == 3)))
    assert many.parts[0].decision == "undecided"
    assert many.numbers["runs that converged"] == 22


def networks(norm=0.005, trace=0.005, sem=0.0001, **options):
    """Four networks whose norm and trace are shares of the construction's."""
    return [
        {
            "arm": "paper",
            "converged": True,
            "norm_squared": 4000 * norm,
            "trace": (2000 + 100 * i) * trace,
            "trace_sem": 2000 * sem,
            **{f"{variant}_norm_squared": 4000.0 * size for variant, size in SIZES.items()},
            **{f"{variant}_trace": (2000.0 + 100 * i) * size for variant, size in SIZES.items()},
            **{f"{variant}_trace_sem": 0.0 for variant in SIZES},
            **options,
        }
        for i in range(4)
    ]


SIZES = {"full": 1.0, "minimal": 0.5, "tuned": 0.1}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ["holds"] * 5),
        ({"norm": 1.1}, ["fails", "holds", "holds", "fails", "holds"]),
        ({"trace": 1.5, "sem": 0.01}, ["holds", "fails", "fails", "holds", "fails"]),
        ({"trace": 0.7, "sem": 0.01}, ["holds", "holds", "fails", "holds", "fails"]),  # above the minimal weights
        ({"trace": 0.98, "sem": 0.05}, ["holds", "undecided", "fails", "holds", "fails"]),
        ({"sem": 0.4}, ["holds", "undecided", "undecided", "holds", "holds"]),
        ({"norm": 0.15, "trace": 0.1}, ["holds", "holds", "holds", "fails", "fails"]),  # one order of magnitude
        ({"converged": False}, ["undecided"] * 5),
    ],
)
def test_c4_compares_with_the_papers_weights(options, expected):
    assert [part.decision for part in verdict(C4, reading(networks(**options))).parts] == expected


def test_c4_is_decided_by_every_network_and_by_the_papers_training_alone():
    one = [*networks(), *networks(norm=1.1)[:1]]
    assert verdict(C4, reading(one)).verdict == "fails"
    others = verdict(C4, reading([*networks(), *networks(norm=1.1, trace=3.0, arm="decay")]))
    assert others.verdict == "holds"
    numbers = others.numbers
    assert numbers["trace, full over trained, arm decay"][0] == pytest.approx(1 / 3)
    assert numbers["norm squared, construction (tuned) over trained"] == pytest.approx([20, 20])
    assert numbers["norm squared: powers of ten below"] == pytest.approx(2.3, abs=0.01)
    assert verdict(C4, NOTHING).verdict == "undecided"
