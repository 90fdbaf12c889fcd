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
        }
        for k in (1, 2, 3)
        for s in (2, 5)
        for i in range(5)
    )


def test_c3_needs_both_correlations():
    assert verdict(C3, gaps(lambda k, s: k + s)).verdict == "holds"
    assert verdict(C3, gaps(lambda k, s: k - s)).verdict == "fails"
    assert verdict(C3, gaps(lambda k, s: -k + s)).verdict == "fails"
    assert verdict(C3, gaps(lambda k, s: 0.001 * k)).verdict == "undecided"
    assert verdict(C3, NOTHING).verdict == "undecided"


def test_c3_counts_rejected_runs_and_lets_them_withhold_a_verdict():
    few = verdict(C3, gaps(lambda k, s: k + s, rejected=lambda k, s: int((k, s) == (3, 5))))
    assert few.verdict == "holds"
    assert few.numbers["runs that did not"] == 1
    many = verdict(C3, gaps(lambda k, s: k + s, rejected=lambda k, s: 4 * (k == 3)))
    assert many.verdict == "undecided"
    assert many.numbers["runs that converged"] == 22


def networks(norm=0.2, trace=0.2, sem=0.01, **options):
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
        ({}, "holds"),
        ({"norm": 1.1}, "fails"),
        ({"trace": 1.5}, "fails"),
        ({"trace": 0.98}, "undecided"),
        ({"sem": 0.4}, "undecided"),
        ({"converged": False}, "undecided"),
    ],
)
def test_c4_compares_with_the_papers_weights(options, expected):
    assert verdict(C4, reading(networks(**options))).verdict == expected


def test_c4_is_decided_by_every_network_and_by_the_papers_training_alone():
    one = [*networks(), *networks(norm=1.1)[:1]]
    assert verdict(C4, reading(one)).verdict == "fails"
    others = verdict(C4, reading([*networks(), *networks(norm=1.1, trace=3.0, arm="decay")]))
    assert others.verdict == "holds"
    numbers = others.numbers
    assert numbers["trace, full over trained, arm decay"][0] == pytest.approx(1 / 3)
    assert numbers["norm squared, construction (tuned) over trained"] == pytest.approx([0.5, 0.5])
    assert numbers["norm squared: networks two orders of magnitude below (beside)"] == 0
    assert verdict(C4, NOTHING).verdict == "undecided"
