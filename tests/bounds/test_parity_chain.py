"""Closed forms of both constructions against sums over all inputs, golden values, and the two readings of the bound."""

import itertools
import math
import tomllib
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import binom

from genscope.bounds.parity_chain import MARGIN, blocks, chain, chain_scales, one_pass, parity_chain

GOLDEN = tomllib.loads((Path(__file__).parents[1] / "golden" / "lintilhac2026_chain.toml").read_text())
LIMIT = 107.8125  # 2 (1.5 + 13/32 + 32 + 20)


def relu_gradients(a, thresholds, slope):
    """Squared gradients of the wave in its outer weights, its thresholds and its inner weights, at one input."""
    on = a > thresholds
    return np.array([np.sum((a - thresholds)[on] ** 2), slope**2 * on.sum(), slope**2 * on.sum() * a**2])


def thresholds_of(even, k):
    return np.array([(j + quarter) / k for j in even for quarter in (-0.75, -0.25, 0.25, 0.75)])


@pytest.mark.parametrize("k", [2, 5, 8, 13])
@pytest.mark.parametrize("limit", [False, True])
def test_one_pass_is_a_mean_over_the_number_of_ones(k, limit):
    thresholds = thresholds_of(range(0, k + 1, 2), k)
    leak = 0.0 if limit else 1 / (8 * k)
    ones = np.arange(k + 1)
    sums = sum(
        weight * relu_gradients((1 - leak) * j / k, thresholds, 2 * k)
        for j, weight in zip(ones, binom.pmf(ones, k, 0.5), strict=True)
    )
    built = one_pass(k, limit=limit)
    found = [built.gradient_squared[name] for name in ("contract", "threshold", "expand")]
    np.testing.assert_allclose(found, sums, rtol=1e-12)
    assert built.norm_squared["threshold"] == pytest.approx(np.sum(thresholds**2))
    assert built.norm_squared["contract"] == 4 * k * k * len(thresholds)
    assert built.norm_squared["expand"] == len(thresholds)


@pytest.mark.parametrize("step", [0, 1, 2, 3, 5])
def test_a_step_of_the_chain_is_a_mean_over_all_inputs(step):
    length = 6
    sharpness, _ = chain_scales(length)
    totals = []
    for x in itertools.product((0, 1), repeat=length):
        written = [0, *(np.cumsum(x) % 2)][: step + 1]
        bits = np.array([*x, *written])
        ids = np.arange(len(bits)) % length
        weights = np.exp(sharpness * (ids == step))
        totals.append(relu_gradients(weights @ bits / weights.sum(), thresholds_of([1], 2), 4))
    built = chain(length, step=step)
    found = [built.gradient_squared[name] for name in ("contract", "threshold", "expand")]
    np.testing.assert_allclose(found, np.mean(totals, axis=0), rtol=1e-12)


def test_golden_traces():
    golden = GOLDEN["one_pass_12"]
    built = one_pass(12)
    assert built.total == pytest.approx(golden["norm_squared"], rel=golden["tolerance"])
    assert built.trace == pytest.approx(golden["trace"], rel=golden["tolerance"])
    golden = GOLDEN["chain_trace"]
    assert chain(8, limit=True).trace == LIMIT == pytest.approx(golden["limit"], abs=golden["tolerance"])
    assert chain(8, step=0).trace == pytest.approx(golden["start"], abs=golden["tolerance"])
    for step, trace in golden["steps_at_8"].items():
        assert chain(8, step=int(step)).trace == pytest.approx(trace, abs=golden["tolerance"])


def test_codes_divide_the_scales():
    for codes in (None, (12, 0.25)):
        built, gap = chain(64, limit=True, codes=codes), 1 if codes is None else 0.75
        first, second = math.log(63 * 15), math.log(128e6)
        scales = 1 + (first / gap) ** 2 + (second / gap) ** 2
        assert built.total == pytest.approx((64 if codes is None else 12) * scales + 70 + 84 / 64)
        assert built.trace == LIMIT
    one_hot = chain(64, limit=True, codes=(64, 0.0))
    assert one_hot == chain(64, limit=True)
    with pytest.raises(ValueError, match="Give limit=True"):
        chain(64, codes=(12, 0.25))


@pytest.mark.parametrize("golden", GOLDEN["coded"], ids=lambda row: str(row["context_length"]))
def test_one_pass_against_a_coded_chain(golden):
    """After rescaling both, one pass has the smaller bound at moderate T and the larger one at large T."""
    common = {"context_length": golden["context_length"], "samples": 10**12, "weights": "tuned"}
    coded = parity_chain(**common, dim=golden["dim"], coherence=golden["coherence"]).value
    ratio = parity_chain(**common, method="one-pass").value / coded
    assert ratio == pytest.approx(golden["one_pass_over_chain"], rel=golden["tolerance"])


@pytest.mark.parametrize("options", [{"coherence": 0.5}, {"dim": 4, "method": "one-pass"}])
def test_codes_that_are_not_there_are_refused(options):
    with pytest.raises(ValueError, match="leave both out"):
        parity_chain(context_length=8, samples=100, **options)


@pytest.mark.parametrize("golden", GOLDEN["risk"], ids=lambda row: str(row["context_length"]))
def test_golden_table_of_risks(golden):
    length = golden["context_length"]
    values = {}
    for method in ("one-pass", "chain"):
        norm, trace, value = golden[method.replace("-", "_")]
        built = blocks(method, length)
        bound = parity_chain(context_length=length, samples=10**12, method=method)
        assert built.total == pytest.approx(norm, rel=5e-3)
        assert built.trace == pytest.approx(trace, rel=5e-3)
        assert bound.value == pytest.approx(value, rel=5e-3)
        assert bound.vacuous == (value >= 1)
        values[method] = bound.value
        values[method, "tuned"] = parity_chain(
            context_length=length, samples=10**12, method=method, weights="tuned"
        ).value
    assert values["one-pass"] / values["chain"] == pytest.approx(golden["ratio"], abs=0.005 * max(1, golden["ratio"]))
    assert values["one-pass", "tuned"] / values["chain", "tuned"] == pytest.approx(golden["tuned"], abs=0.005)


@pytest.mark.parametrize("length", [2, 9, 100])
@pytest.mark.parametrize("method", ["one-pass", "chain"])
def test_tuned_weights_are_the_best_of_their_kind(method, length):
    paper, tuned = blocks(method, length), blocks(method, length, weights="tuned")
    best = tuned.total * tuned.trace
    assert best < paper.total * paper.trace
    for square in (0.99, 1.01):
        moved = tuned.rescaled(square)
        assert moved.total * moved.trace >= best
    # The factors and the scores that they stand for, as matrices.
    if method == "chain":
        sharpness, select = chain_scales(length)
        scores, rows = sharpness * np.eye(length), select * np.eye(length)
    else:
        sharpness = math.sqrt(paper.norm_squared["key"] / (length + 1))
        scores = sharpness * np.ones((1, length))
        rows = np.append(np.full(length, -math.sqrt(paper.norm_squared["select"] / length)), 0)[None]
    nuclear = np.linalg.norm(scores, "nuc")
    assert tuned.norm_squared["score"] == tuned.norm_squared["key"] == pytest.approx(nuclear)
    centred = rows - rows.mean(axis=1, keepdims=True)
    assert tuned.norm_squared["select"] == pytest.approx(np.sum(centred**2))


def test_the_norm_of_the_chain_grows_with_its_length():
    """The paper counts a single entry for the positional identity, and no second one: then it would not."""
    norms = chain(64).norm_squared
    sharpness, select = chain_scales(64)
    grown = norms["score"] + norms["key"] + norms["select"]
    assert grown == pytest.approx(64 * (1 + sharpness**2 + select**2))
    assert grown / sum(norms.values()) > 0.99


def test_no_leakage_is_the_worst():
    for length in (2, 8, 64):
        assert one_pass(length).trace < one_pass(length, limit=True).trace
        for step in {0, 1, length // 2, length - 1}:
            assert chain(length, step=step).trace < LIMIT


@pytest.mark.parametrize("method", ["one-pass", "chain"])
def test_the_best_width_of_each_reading(method):
    for reading, scale in (("risk", 1.0), ("delta", 1e-12)):
        given = {"context_length": 16, "samples": 10**12, "method": method, "reading": reading}
        best = parity_chain(**given).value

        def value(log_sigma, given=given, scale=scale):
            return scale * parity_chain(**given, sigma=math.exp(log_sigma)).value

        found = minimize_scalar(value, bounds=(-12, -1), method="bounded", options={"xatol": 1e-9})
        least = found.fun  # pyright: ignore[reportAttributeAccessIssue]  # SciPy has no types
        assert scale * best == pytest.approx(least, rel=1e-6)
        assert parity_chain(**given, sigma=0.003).value >= best


def test_delta_says_something_from_the_same_sample_size_on_as_the_truncated_bound():
    """n > 216 C² ‖θ‖² H, the condition of the risk form at variance 1/4."""
    for method in ("one-pass", "chain"):
        built = blocks(method, 32)
        needed = 216 * 0.01 * built.total * built.trace
        given = {"context_length": 32, "method": method, "reading": "delta"}
        union = math.log(32) if method == "chain" else 0.0
        assert parity_chain(**given, samples=int(1.001 * needed)).value < union
        assert parity_chain(**given, samples=int(0.999 * needed)).vacuous
        assert parity_chain(**given, samples=10).terms["samples"] == pytest.approx(0, abs=1e-9)


def test_delta_is_an_exponential_of_a_polynomial():
    """At one width, one pass: log delta + n/(32 C²) grows like T³ (the norm); the chain's like T log² T."""
    given = {"samples": 10**24, "reading": "delta", "sigma": 1e-6}
    nothing = -(10**24) / (2 * 0.01) * MARGIN**2
    for method, low, high in (("one-pass", 2.9, 3.2), ("chain", 1.0, 1.3)):
        near, far = (
            parity_chain(**given, context_length=length, method=method).terms["complexity"] for length in (512, 1024)
        )
        assert low < math.log2(far / near) < high
        bound = parity_chain(**given, context_length=1024, method=method)
        assert nothing < bound.value < 0
    clipped = parity_chain(**given | {"sigma": 1e-2}, context_length=1024, method="one-pass")
    assert clipped.vacuous
    assert clipped.terms["samples"] == 0


@pytest.mark.parametrize("length", [2, 3, 10**9])
@pytest.mark.parametrize(("samples", "constant"), [(1, 1e9), (1, 1e-9), (1e200, 1e-9), (1e200, 1e9)])
@pytest.mark.parametrize("sigma", [None, 1e-90, 1e90])
def test_corners_give_a_number(length, samples, constant, sigma):
    choices = [("paper", "risk"), ("paper", "delta"), *([("tuned", "delta")] if sigma is None else [])]
    for method, (weights, reading) in itertools.product(("one-pass", "chain"), choices):
        bound = parity_chain(
            context_length=length,
            samples=samples,
            method=method,
            weights=weights,
            reading=reading,
            constant=constant,
            sigma=sigma,
        )
        assert not math.isnan(bound.value)
        assert not bound.explicit


def test_what_is_refused():
    with pytest.raises(ValueError, match="at least 2"):
        parity_chain(context_length=1, samples=100)
    with pytest.raises(ValueError, match="Choose one of"):
        parity_chain(context_length=8, samples=100, method="two-pass")
    with pytest.raises(ValueError, match="Change sigma"):
        parity_chain(context_length=8, samples=100, sigma=0)
