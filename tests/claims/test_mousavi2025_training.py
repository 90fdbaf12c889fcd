"""Each rule on made-up readings: it can hold, fail and stay undecided; intervals against brute force."""

import math

import numpy as np
import polars as pl
import pytest

from genscope.claims._ratios import SampleCounts, contrast, decide, difference, exponent, pooled_spread
from genscope.claims.mousavi2025_training import B5, B6, B7, B8, heads_parts
from genscope.lab.results.reading import Reading
from tests.chance import assert_count

NOTHING = Reading(pl.DataFrame({"status": []}), (), 0)


def reading(rows):
    return Reading(pl.DataFrame([{"status": "ok", "protocol": "code", "run": 0, **row} for row in rows]), (), 0)


def verdict(claim, read):
    return claim.verdict([read], budget="standard", seconds=0.0).verdict


def runs(law, points, count=3, spread=0.03, **axes):
    """Runs whose logarithms scatter around a law, in a fixed pattern."""
    pattern = np.linspace(-1, 1, count) if count > 1 else [0.0]
    return [
        {**axes, **point, "samples": round(law(point) * math.exp(spread * wiggle)), "reached": True}
        for point in points
        for wiggle in pattern
    ]


LENGTHS = [{"context_length": n} for n in (4, 8, 12)]


def one_str(transformer, ffn, gru, **options):
    powers = {"transformer": transformer, "ffn": ffn, "gru": gru}
    return [
        row
        for name, power in powers.items()
        for row in runs(lambda p, e=power: 2000 * p["context_length"] ** e, LENGTHS, architecture=name, **options)
    ]


def test_b5_needs_both_rivals_to_grow_faster():
    assert verdict(B5, reading(one_str(0.8, 2.0, 1.5))) == "holds"
    assert verdict(B5, reading(one_str(1.5, 2.0, 0.8))) == "fails"
    assert verdict(B5, reading(one_str(0.8, 0.9, 1.5, spread=0.6))) == "undecided"
    assert verdict(B5, NOTHING) == "undecided"


def test_b5_takes_no_decision_from_censored_runs_that_could_turn_it():
    rows = one_str(0.8, 2.0, 1.5)
    rows[0]["reached"] = False  # a Transformer that did not arrive
    assert verdict(B5, reading(rows)) == "undecided"


def test_b5_leaves_dependent_runs_and_the_other_protocol_out():
    extra = [{**row, "run": 1, "samples": 10} for row in one_str(0.8, 2.0, 1.5)]
    text = [{**row, "protocol": "text", "samples": 10} for row in one_str(0.8, 2.0, 1.5)]
    assert verdict(B5, reading([*one_str(0.8, 2.0, 1.5), *extra, *text])) == "holds"


def test_b5_names_the_smaller_gru_where_it_was_used():
    rows = [{**row, "architecture": row["architecture"].replace("gru", "gru-128")} for row in one_str(0.8, 2.0, 1.5)]
    parts = B5.decide([reading(rows)])
    assert any("gru-128" in name for part in parts for name in part.numbers)


def simple(gru, ffn, **options):
    at = [{"context_length": 25}]
    return [
        *runs(lambda p: 120e3, at, architecture="transformer", **options),
        *runs(lambda p: 120e3 * ffn, at, architecture="ffn", **options),
        *runs(lambda p: 120e3 * gru, at, architecture="gru", count=1),
    ]


def test_b6_compares_ratios_with_their_intervals():
    assert verdict(B6, reading(simple(1.1, 2.2))) == "holds"
    assert verdict(B6, reading(simple(3.0, 2.2))) == "fails"
    assert verdict(B6, reading(simple(1.1, 1.1))) == "fails"
    assert verdict(B6, reading(simple(1.1, 1.52))) == "undecided"
    assert verdict(B6, reading(simple(1.1, 2.2, spread=1.0))) == "undecided"
    assert verdict(B6, NOTHING) == "undecided"


def test_b6_takes_no_spread_of_the_rnn_from_the_ffn():
    at = [{"context_length": 25}]
    rows = [row for row in simple(1.1, 2.2) if row["architecture"] != "ffn"]
    rows += runs(lambda p: 1e6, at, architecture="ffn", spread=1.0)
    near, far = B6.decide([reading(rows)])
    assert (near.decision, far.decision) == ("holds", "undecided")


def test_b6_without_an_rnn_can_fail_but_not_hold():
    def without(rows):
        return [row for row in rows if row["architecture"] != "gru"]

    assert verdict(B6, reading(without(simple(1.1, 2.2)))) == "undecided"
    assert verdict(B6, reading(without(simple(1.1, 1.1)))) == "fails"


def test_b6_censored_runs():
    rows = simple(1.1, 2.2)
    for row in rows:
        row["reached"] = row["architecture"] != "ffn"  # the FFN never arrived: all the better for the claim
    assert verdict(B6, reading(rows)) == "holds"
    for row in rows:
        row["reached"] = row["architecture"] != "gru"  # the RNN never arrived
    assert verdict(B6, reading(rows)) == "undecided"


def block(share, diagonal, count=2):
    chance = {"block_chance": 0.17, "diagonal_chance": 1 / 23}
    return reading([{"block_share": share, "diagonal_share": diagonal, **chance} for _ in range(count)])


def test_b7_is_a_check_of_every_run():
    assert verdict(B7, block(0.95, 0.4)) == "holds"
    assert verdict(B7, block(0.17, 0.4)) == "fails"
    assert verdict(B7, block(0.95, 0.1)) == "fails"
    assert verdict(B7, NOTHING) == "undecided"


def sparsity(ratios, spread=0.03, hardness=(1.0, 1.0, 1.0)):
    """Three draws of links and encodings, each so much harder for both networks, whose ratio scatters too."""
    return [
        {**row, "draw": draw, "samples": row["samples"] * hardness[draw]}
        for q, ratio in ratios.items()
        for name, factor, wiggle in (("transformer", 1.0, spread), ("ffn", ratio, -spread))
        for draw, row in enumerate(
            runs(lambda p, r=factor: 1e5 * r, [{"sparsity": q}], architecture=name, spread=wiggle)
        )
    ]


def test_b8_compares_the_ends():
    assert verdict(B8, reading(sparsity({2: 1.5, 3: 1.2, 4: 3.0}))) == "holds"
    assert verdict(B8, reading(sparsity({2: 3.0, 4: 1.5}))) == "fails"
    assert verdict(B8, reading(sparsity({2: 1.5, 4: 1.55}))) == "undecided"
    assert verdict(B8, reading(sparsity({2: 1.5, 4: 3.0}, spread=1.0))) == "undecided"
    assert verdict(B8, reading(sparsity({2: 1.5}))) == "undecided"
    assert verdict(B8, NOTHING) == "undecided"


def test_b8_compares_networks_draw_by_draw():
    assert verdict(B8, reading(sparsity({2: 1.5, 4: 3.0}, hardness=(1.0, 5.0, 25.0)))) == "holds"
    rows = sparsity({2: 1.5, 4: 3.0})
    for row in rows:
        row["reached"] = (row["architecture"], row["sparsity"]) != ("transformer", 4)  # its ratio is an upper limit
    assert verdict(B8, reading(rows)) == "undecided"


def test_b8_has_a_part_for_the_rnn_where_it_was_run():
    rows = sparsity({2: 1.5, 3: 3.0})
    worse = [
        {"architecture": "rnn", "sparsity": q, "samples": samples, "reached": True, "draw": 0}
        for q, samples in ((2, 4e5), (3, 1e5))
    ]
    assert verdict(B8, reading([*rows, *worse])) == "fails"


def heads(few, enough, sem=0.005):
    rows = [(1, few, 0.5), (2, enough, 0.0)]
    return reading(
        [
            {"family": "positional", "sparsity": 2, "heads": h, "risk": risk, "risk_sem": sem, "bound": bound}
            for h, risk, bound in rows
        ]
    )


def test_heads_by_training():
    def decisions(read):
        return [part.decision for part in heads_parts(read)]

    assert decisions(heads(0.52, 0.05)) == ["holds", "holds"]
    assert decisions(heads(0.495, 0.05)) == ["holds", "holds"]  # within its error of the bound
    assert decisions(heads(0.40, 0.05)) == ["fails", "holds"]  # a broken bound
    assert decisions(heads(0.52, 0.51)) == ["holds", "undecided"]  # training that did not arrive shows nothing
    assert decisions(NOTHING) == ["undecided"]


def test_ratio_intervals_cover():
    """6,000 simulated comparisons at 95 %; 91 % would be told apart."""
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(6_000):
        arms = [SampleCounts(rng.normal(mean, 0.3, size), False) for mean, size in ((0.7, 3), (0.0, 4), (0.0, 2))]
        _, low, high = contrast([(1, arms[0]), (-1, arms[1])], pooled_spread(arms), 0.95)
        covered += low < math.exp(0.7) < high
    assert_count(covered, 6_000, 0.95, planted=0.91)


def test_exponents_agree_with_numpy():
    rng = np.random.default_rng(1)
    arms = {n: SampleCounts(1.3 * math.log(n) + rng.normal(0, 0.1, 4), False) for n in (4, 8, 12)}
    x = np.repeat(np.log([4, 8, 12]), 4)
    coefficients, covariance = np.polyfit(x, np.concatenate([arm.logs for arm in arms.values()]), 1, cov=True)
    slope = exponent(arms)
    assert slope.value == pytest.approx(coefficients[0])
    assert slope.error == pytest.approx(math.sqrt(covariance[0, 0]))
    middle, low, high = difference(slope, slope, 0.95)
    assert middle == 0
    assert low == -high


def test_what_cannot_be_known_is_none():
    single = SampleCounts(np.array([1.0]), False)
    assert contrast([(1, single), (-1, single)], pooled_spread([single, single]), 0.95) == (1.0, None, None)
    assert contrast([(1, SampleCounts(np.empty(0), False))], (1.0, 3), 0.95) == (None, None, None)
    assert exponent({4: single}) is None
    assert decide((1.0, None, None), 1.0, []) == "undecided"
