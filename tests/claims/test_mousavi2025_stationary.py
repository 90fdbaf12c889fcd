"""B9 on made-up readings: it can hold, fail and stay undecided."""

import polars as pl

from genscope.claims.mousavi2025_stationary import B9
from genscope.lab.results.reading import Reading


def rows(share=0.3, better=None, spread=0.05, seeds=6, **changes):
    base = {"status": "ok", "stationary": True, "outside": 1e-12} | changes
    return [
        {**base, "network": network, "decay": 0.5, "sample_size": size}
        | {"excess_share": (share if network == "plain" or better is None else better) + spread * (-1) ** seed}
        for network in ("plain", "indexed")
        for size in (5, 10)
        for seed in range(seeds)
    ]


def decide(found, missing=0):
    reading = Reading(pl.DataFrame(found) if found else pl.DataFrame({"status": []}), (), missing)
    return B9.verdict([reading], budget="quick", seconds=0.0).verdict


def test_b9():
    assert decide(rows()) == "holds"
    assert decide(rows(0.9)) == "fails"
    assert decide(rows(0.9, better=0.3)) == "holds"  # one kind of network is enough
    assert decide(rows(0.5)) == "undecided"
    assert decide(rows(0.9, spread=0.6)) == "undecided"
    assert decide(rows(0.9, seeds=1)) == "undecided"  # no spread is known
    assert decide(rows(-0.2)) == "fails"  # below the theorem
    assert decide(rows(outside=1e-3)) == "fails"
    assert decide(rows(outside=float("nan"))) == "fails"
    assert decide(rows(stationary=False)) == "undecided"
    assert decide(rows(), missing=1) == "undecided"
    assert decide([*rows(), rows()[0] | {"status": "failed"}]) == "undecided"
    assert decide([]) == "undecided"


def test_one_sample_size_at_which_training_is_far_decides():
    found = [
        row | {"excess_share": 0.9 + 0.05 * (-1) ** i} if row["sample_size"] == 10 else row
        for i, row in enumerate(rows())
    ]
    assert decide(found) == "fails"
