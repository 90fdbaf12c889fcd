"""Constructions of EGKZ22, Section 5, against the golden table, on all functions of three bits, and at their limits."""

import contextlib
import functools
import itertools
import math
import tomllib
from pathlib import Path

import jax.random as jr
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genscope import constructions
from genscope.constructions import SparseFunction, construct, smallest_gamma, verify, weight_norms
from genscope.fourier import table_of_number
from genscope.studies.edelman2022_constructions import BUILDERS, draw_function

KEY = jr.key(3)
GOLDEN = tomllib.loads((Path(__file__).parents[1] / "golden" / "edelman2022_constructions.toml").read_text())
ADDITIVE = ("threshold_sum", "symmetric", "any_function")


def random_function(length, support, seed=0):
    return SparseFunction(tuple(support), np.random.default_rng(seed).normal(size=2 ** len(support)), length)


def case_name(case):
    return "-".join(str(case[axis]) for axis in ("construction", "context_length", "support_size"))


@pytest.mark.parametrize("case", GOLDEN["case"], ids=case_name)
def test_golden_table(case):
    sizes = case["context_length"], case["support_size"], case.get("least_ones", 0)
    function = draw_function(KEY, case["construction"], *sizes)
    built = BUILDERS[case["construction"]](function)
    norms = weight_norms(built.model)
    for name in ("W_Q", "W_K", "W_V", "W_C", "W_1", "W_2"):
        if name in case["norms"]:
            assert norms[name] == pytest.approx(case["norms"][name], abs=GOLDEN["tolerance"])
        else:
            assert norms[name] is None
    for name, promised in built.norms.items():
        assert norms[name] == pytest.approx(promised, rel=1e-12)  # for orthonormal vectors the formulas are equalities
    verdict = verify(built, function, key=KEY)
    assert verdict.kept
    assert verdict.exhaustive == (case["context_length"] <= 20)
    if case["construction"] == "bag-threshold":
        assert verdict.max_error == pytest.approx(GOLDEN["approximate_error"], rel=1e-9)
        assert not verdict.exact
    else:
        assert verdict.exact
        assert verdict.max_error < GOLDEN["exact_error"]


@pytest.mark.parametrize("encoding", ["positional", "bag", "random"])
def test_all_functions_of_three_bits(encoding):
    """Every function, on scattered positions, on all inputs; the chosen construction may be any of them."""
    sources = set()
    for number in range(256):
        function = SparseFunction((6, 0, 3), table_of_number(number, 3).astype(float), 7)
        built = construct(function, encoding=encoding, dimension=48 if encoding == "random" else None, key=KEY)
        verdict = verify(built, function, key=KEY)
        assert verdict.exact, number
        assert (verdict.inputs_checked, verdict.exhaustive) == (2**7, True)
        sources.add(built.source)
    assert len(sources) == {"positional": 3, "bag": 2, "random": 1}[encoding]


@pytest.mark.parametrize("name", [*ADDITIVE, "bag_symmetric", "bag_any_function"])
def test_symmetric_functions_by_every_construction(name):
    for levels in itertools.product((0.0, 1.0, -2.5), repeat=4):
        function = SparseFunction.symmetric((4, 1, 2), levels, context_length=6)
        assert verify(getattr(constructions, name)(function), function, key=KEY).exact


@settings(max_examples=15)
@given(
    st.integers(1, 6).flatmap(lambda size: st.tuples(st.just(size), st.integers(size, 12) | st.integers(21, 40))),
    st.integers(0, 2**31),
    st.booleans(),
    st.floats(1.2, 6),
)
def test_larger_supports(sizes, seed, cls_is_key, base):
    """Supports of one to six positions, also all of them (T = s), with and without CLS as a key, at other bases."""
    size, length = sizes
    rng = np.random.default_rng(seed)
    support = tuple(rng.permutation(length)[:size].tolist())
    function = SparseFunction(support, rng.normal(size=2**size), length)
    for built in (
        constructions.any_function(function, base=base, cls_is_key=cls_is_key),
        constructions.bag_any_function(function),
    ):
        assert verify(built, function, key=KEY).exact
    counted = SparseFunction.symmetric(support, rng.normal(size=size + 1), context_length=length)
    for built in (
        constructions.threshold_sum(counted, margin=rng.uniform(0.05, 0.45), cls_is_key=cls_is_key),
        constructions.symmetric(counted, cls_is_key=cls_is_key),
        constructions.bag_symmetric(counted),
    ):
        verdict = verify(built, counted, key=KEY)
        assert verdict.exact
        norms = weight_norms(built.model)
        assert all(norms[name] == pytest.approx(norm, rel=1e-9) for name, norm in built.norms.items())


@pytest.mark.parametrize(("length", "size", "dim"), [(12, 3, 64), (1000, 3, 128), (1000, 3, 256), (1000, 5, 512)])
def test_random_vectors_of_low_dimension(length, size, dim):
    function = random_function(length, range(2, 2 + size))
    for seed in range(3):
        built = constructions.random_any_function(function, dimension=dim, key=jr.key(seed))
        verdict = verify(built, function, key=KEY)
        assert built.constants["beta"] < 1
        assert verdict.exact
        assert verdict.max_error < GOLDEN["exact_error"]
        norms = weight_norms(built.model)
        assert all(norms[name] <= promised * (1 + 1e-9) for name, promised in built.norms.items())


def test_a_dimension_that_is_too_small_promises_nothing_and_fails():
    function = random_function(1000, (1, 500, 800))
    built = constructions.random_any_function(function, dimension=12, key=KEY)
    assert built.constants["beta"] >= 1
    assert built.error == built.needed == math.inf
    assert not verify(built, function, key=KEY).verified
    again = functools.partial(constructions.random_any_function, dimension=12, key=KEY)
    assert math.isnan(smallest_gamma(again, function, key=KEY))


@pytest.mark.parametrize("encoding", ["positional", "bag", "random"])
@pytest.mark.parametrize("value", [0.0, 1.0, -3.0])
@pytest.mark.parametrize("length", [1, 9, 50])
def test_constants_need_no_bit(encoding, value, length):
    function = SparseFunction((), np.array([value]), length)
    built = construct(function, encoding=encoding, key=KEY)
    assert verify(built, function, key=KEY).exact
    assert weight_norms(built.model)["W_Q"] == built.gamma


# --- Shapes of the sharpness -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ADDITIVE)
def test_sharpness_is_affine_in_the_logarithm_of_the_context_length(name):
    def gamma(length):
        return getattr(constructions, name)(SparseFunction.threshold((0, 1, 2), 2, context_length=length)).gamma

    for length in (100, 1000, 10_000):
        assert gamma(2 * length) - gamma(length) == pytest.approx(math.log(2), abs=2 * 3 / length)
    slope = (gamma(100_000) - gamma(10_000)) / math.log(10)
    assert slope == pytest.approx(1, abs=1e-3)


def test_too_little_sharpness_fails():
    function = random_function(1000, (10, 400, 999))
    built = constructions.any_function(function, gamma=1.0)
    assert built.error == math.inf
    verdict = verify(built, function, key=KEY)
    assert verdict.max_error > 0.1
    assert not verdict.verified


def test_the_smallest_sharpness_is_where_a_bit_is_lost():
    """T = 1000, s = 3, q = 2: with all bits 1, λ = 1995 / (6 e^γ + 1995) <= 1/8, so e^γ = 7 · 1995 / 6."""
    function = random_function(1000, (10, 400, 999))
    smallest = smallest_gamma(constructions.any_function, function, key=KEY)
    assert smallest == pytest.approx(math.log(7 * 1995 / 6), abs=2e-3)
    assert smallest == pytest.approx(7.76, abs=0.01)
    needed = constructions.any_function(function).needed
    assert needed - smallest == pytest.approx(1.31, abs=0.01)


def test_thresholds_waste_nothing():
    """a is lowest with all irrelevant bits 0: s n/(s + (T-s+1) e^-γ) >= n - 1/4 at n = s = 3, so 3 λ = 1/4 is sharp."""
    function = SparseFunction.threshold((1, 2, 3), 3, context_length=500)
    smallest = smallest_gamma(constructions.threshold_sum, function, key=KEY)
    assert smallest == pytest.approx(constructions.threshold_sum(function).needed, abs=2e-3)


def test_the_bag_is_exact_at_every_sharpness():
    function = random_function(30, (3, 4, 20))
    assert smallest_gamma(constructions.bag_any_function, function, key=KEY) < 1e-3
    for gamma in (0.01, 1.0, 20.0):
        assert verify(constructions.bag_any_function(function, gamma=gamma), function, key=KEY).exact


def test_a_narrow_margin_pays_in_sharpness_and_gains_in_slope():
    function = SparseFunction.threshold((1, 2, 3), 2, context_length=500)
    wide, narrow = (constructions.threshold_sum(function, margin=margin) for margin in (0.25, 0.01))
    assert narrow.gamma > wide.gamma
    assert narrow.norms["W_V"] < wide.norms["W_V"]
    assert verify(narrow, function, key=KEY).exact


@pytest.mark.parametrize("epsilon", [0.5, 0.1, 1e-6])
def test_thresholds_of_a_bag_reach_their_error(epsilon):
    for length, size in ((20, 4), (300, 4), (4, 4)):
        for least in range(1, size + 1):
            function = SparseFunction.threshold(range(size), least, context_length=length)
            built = constructions.bag_threshold(function, epsilon=epsilon)
            verdict = verify(built, function, key=KEY)
            assert verdict.kept
            if built.gamma > 0:
                assert verdict.max_error == pytest.approx(epsilon, rel=1e-6)
    smallest = smallest_gamma(functools.partial(constructions.bag_threshold, epsilon=epsilon), function, key=KEY)
    assert smallest == pytest.approx(built.needed, abs=2e-3)


# --- Large sizes and refusals ----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["positional", "bag", "random"])
def test_twelve_bits_of_a_hundred_thousand(encoding):
    function = random_function(100_000, np.linspace(0, 99_999, 12).astype(int).tolist())
    built = construct(function, encoding=encoding, key=KEY)
    assert verify(built, function, key=KEY).exact


SYMMETRIC_3 = SparseFunction.threshold((0, 1, 2), 2, context_length=5)
ORDERED = SparseFunction.parse("x0 & ~x1", context_length=5)
CONSTANT = SparseFunction((), np.ones(1), 5)


@pytest.mark.parametrize(
    ("call", "advice"),
    [
        (lambda: constructions.threshold_sum(SYMMETRIC_3, margin=0.5), "Try 0.25"),
        (lambda: constructions.threshold_sum(SYMMETRIC_3, gamma=-1.0), "Leave it out"),
        (lambda: constructions.symmetric(SYMMETRIC_3, gamma=math.inf), "Leave it out"),
        (lambda: constructions.symmetric(ORDERED), "Use any_function"),
        (lambda: constructions.any_function(SYMMETRIC_3, base=1.0), "Leave it out to use 2"),
        (lambda: constructions.any_function(CONSTANT), "Use threshold_sum"),
        (lambda: constructions.bag_threshold(ORDERED), "Use bag_symmetric or bag_any_function"),
        (lambda: constructions.bag_threshold(SYMMETRIC_3, epsilon=0.0), "Try 0.01"),
        (lambda: constructions.bag_symmetric(ORDERED), "Use bag_any_function"),
        (lambda: constructions.random_any_function(ORDERED, dimension=4, key=KEY), "Increase the dimension"),
        (lambda: constructions.random_any_function(ORDERED, dimension=10**8, key=KEY), "Reduce the dimension"),
        (lambda: construct(ORDERED, encoding="bag", dimension=9, key=KEY), "Leave the dimension out"),
        (
            lambda: verify(constructions.any_function(ORDERED), random_function(6, (0,)), key=KEY),
            "Build the construction for this function",
        ),
    ],
)
def test_refusals(call, advice):
    with pytest.raises(ValueError, match=advice):
        call()


def test_dependent_vectors_are_refused():
    """In dimension 6 some draws of six sign vectors are dependent: found, not divided by."""
    function = random_function(8, (0, 1, 2))
    refused = []
    for seed in range(20):
        with contextlib.suppress(ValueError):
            constructions.random_any_function(function, dimension=6, key=jr.key(seed))
            continue
        refused.append(seed)
    assert 0 < len(refused) < 20
    with pytest.raises(ValueError, match="linearly dependent"):
        constructions.random_any_function(function, dimension=6, key=jr.key(refused[0]))
