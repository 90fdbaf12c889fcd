"""Claim C7 on made-up readings: each part can hold, fail and stay undecided; censored searches mislead nobody."""

import math

import jax.random as jr
import numpy as np
import polars as pl
import pytest

from genscope.claims._ratios import SampleCounts
from genscope.claims.lintilhac2026_chain import C7, leading
from genscope.lab.results.reading import Reading
from genscope.lab.results.verdict import combine
from genscope.studies.lintilhac2026_chain_bounds import LENGTHS, STUDY

EMPTY = pl.DataFrame({"status": []}, schema={"status": pl.String})
TRAINED = (8, 10, 12, 16, 20)
SPREAD = (-0.05, 0.0, 0.05)


def bounds(one_pass, chain):
    """Rows whose exponents are given as functions of T, alike in both readings."""
    return [
        {
            "status": "ok",
            "weights": weights,
            "method": method,
            "context_length": length,
            "risk_exponent": exponent(length),
            "delta_exponent": exponent(length),
        }
        for weights in ("paper", "tuned")
        for method, exponent in (("one-pass", one_pass), ("chain", chain), ("coded-chain", chain))
        for length in LENGTHS
    ]


def training(one_pass, chain, lengths=TRAINED, reached=lambda method, length: True):
    return [
        {
            "status": "ok",
            "method": method,
            "target": target,
            "context_length": length,
            "samples": samples(length) * math.exp(noise),
            "reached": reached(method, length),
        }
        for target in ("all", "half")
        for method, samples in (("one-pass", one_pass), ("chain", chain))
        for length in lengths
        for noise in SPREAD
    ]


def parts(arithmetic, trained):
    """The seven answers: delta, risk, coded chain; and in training all bits, half the bits, one pass and chain each."""
    frames = [pl.DataFrame(rows) if rows else EMPTY for rows in (arithmetic, trained)]
    found = C7.decide([Reading(frame, (), 0) for frame in frames])
    answers = [
        value
        for name, value in found[3].numbers.items()
        if (name.startswith("training") and ": the chain" in name) or ": one pass grows" in name
    ]
    assert found[3].decision == combine(answers)
    return [part.decision for part in found[:3]] + answers


EXPONENTIAL = bounds(lambda length: 0.1 * length, lambda length: 1.0)
LEARNED = training(lambda length: 2.0**length, lambda length: 10 * length**0.5)


def test_the_claim_as_it_is_made_holds():
    assert parts(EXPONENTIAL, LEARNED) == ["holds"] * 7
    line = training(lambda length: 2.0**length, lambda length: 10 * length)
    assert parts(EXPONENTIAL, line)[4] == "undecided"  # no interval around 1 lies below it


@pytest.mark.parametrize(
    ("one_pass", "decision"),
    [
        (lambda length: 2 * math.log(length), "holds"),  # T^log T
        (lambda length: 2.0, "fails"),
        (lambda length: 2 - 1 / length, "fails"),  # rises, and levels off
        (lambda length: 3 * math.log(length) - 0.01 * (length == 64), "holds"),
        (lambda length: 3 * math.log(length) - 10 * (length == 64), "fails"),  # one fall
    ],
)
def test_exponents_of_one_pass(one_pass, decision):
    assert parts(bounds(one_pass, lambda length: 1.0), LEARNED)[:3] == [decision, decision, "holds"]


@pytest.mark.parametrize(
    ("chain", "decision"),
    [
        (lambda length: 0.5, "holds"),
        (lambda length: 1 + 1.9 / math.log(2 * length), "holds"),
        (lambda length: 1 + 3 * (length < 64), "holds"),  # before codes are settled
        (lambda length: 4 / 3, "fails"),  # one-hot positions
        (lambda length: 1 + 2.1 / math.log(length), "fails"),
    ],
)
def test_the_chain_may_have_two_logarithms(chain, decision):
    assert parts(bounds(lambda length: length, chain), LEARNED)[2] == decision


def test_our_own_bounds():
    """Risk is polynomial in one pass, and the coded chain is linear up to logarithms; with one-hot codes it is not."""
    rows = [{"status": "ok", **point, **STUDY.trial(jr.key(0), **point)} for point in STUDY.points]
    assert parts(rows, [])[:3] == ["holds", "fails", "holds"]
    one_hot = [row | {"method": "coded-chain"} for row in rows if row["method"] == "chain"]
    assert parts([row for row in rows if row["method"] != "coded-chain"] + one_hot, [])[2] == "fails"


def test_quick_leaves_training_open():
    found = C7.verdict([Reading(pl.DataFrame(EXPONENTIAL), (), 0)], budget="quick", seconds=0.0)
    assert [part.decision for part in found.parts] == ["holds", "holds", "holds", "undecided"]
    assert "no training" in found.departures[1]


def test_powers_in_training_do_not_hold():
    """The planted fault: one pass like T^5 has no curvature, the chain like T² is no line."""
    found = parts(EXPONENTIAL, training(lambda length: length**5, lambda length: length**2))
    assert found[3:] == ["undecided", "fails"] * 2


def test_one_pass_that_grows_like_a_root_fails():
    found = parts(EXPONENTIAL, training(lambda length: 100 * length**0.5, lambda length: 10 * length**0.5))
    assert found[3:] == ["fails", "holds"] * 2
    falling = parts(EXPONENTIAL, training(lambda length: length ** (10 / math.log(length)), lambda length: 10.0))
    assert falling[3:] == ["fails", "holds"] * 2


def test_few_runs_decide_nothing():
    assert parts(EXPONENTIAL, [])[3:] == ["undecided"] * 4
    assert parts([], LEARNED)[:3] == ["undecided"] * 3
    assert parts(EXPONENTIAL[1:], LEARNED)[0] == "undecided"  # a length is missing
    short = [row for row in LEARNED if row["context_length"] <= 10]
    assert parts(EXPONENTIAL, short)[3] == "undecided"
    one_each = LEARNED[:: len(SPREAD)]
    three = [row for row in one_each if row["context_length"] <= 12]
    assert parts(EXPONENTIAL, three)[3] == "undecided"  # a parabola through three points


def test_censored_searches_count_on_their_side_only():
    """Beyond the ladder at the largest T a true count would bend the curve more; in the middle, less."""
    at_last, in_the_middle = (
        training(
            lambda length: 2.0**length,
            lambda length: 10 * length,
            reached=lambda method, length, at=at: method == "chain" or length != at,
        )
        for at in (20, 12)
    )
    assert parts(EXPONENTIAL, at_last)[3] == "holds"
    assert parts(EXPONENTIAL, in_the_middle)[3] == "undecided"
    chain = training(
        lambda length: 2.0**length,
        lambda length: 10 * length**0.5,
        reached=lambda method, length: method != "chain" or length != 20,
    )
    assert parts(EXPONENTIAL, chain)[4] == "undecided"


def test_coefficients_against_polyfit():
    generator = np.random.default_rng(1)
    arms = {length: SampleCounts(generator.normal(size=3), False) for length in TRAINED}
    x = np.repeat(np.log(TRAINED), 3)
    y = np.concatenate([arm.logs for arm in arms.values()])
    for order in (1, 2):
        found = leading(arms, order)
        assert found is not None
        assert found.value == pytest.approx(np.polyfit(x, y, order)[0])
        assert sum(found.weights.values()) == pytest.approx(0, abs=1e-9)
        assert sum(found.weights[n] * arms[n].logs.mean() for n in arms) == pytest.approx(found.value)
    curvature = leading(arms, 2)
    assert curvature is not None
    assert curvature.weights[8] > 0 > curvature.weights[12]
    assert curvature.weights[20] > 0


def test_intervals_cover():
    """500 made-up studies, 98.75 % each: fewer than 475 covered would have probability below 1e-9."""
    generator = np.random.default_rng(2)
    covered = biased = 0
    for _ in range(500):
        arms = {n: SampleCounts(2 * math.log(n) + 0.4 * generator.normal(size=3), False) for n in TRAINED}
        found = leading(arms, 1)
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= 2 <= found.high
        biased += found.low <= 3.5 <= found.high
    assert covered >= 475
    assert biased < 475  # the planted error
