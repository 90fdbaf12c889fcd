"""Expected rivals against brute force over all placements and inputs, formulas worked out by hand, and samples."""

import itertools
import math
from functools import partial

import numpy as np
import pytest

from genscope.fourier.expression import parse
from genscope.tasks import (
    SparseAnd,
    SparseExpression,
    SparseMajority,
    expected_rivals,
    find_rival,
    ideal_sample_size,
    information_bound,
)
from tests.chance import assert_mean
from tests.seeds import seed

AND = "x0 & x1 & x2"


@pytest.mark.parametrize("context_length", [3, 4, 50, 300, 100_000])
@pytest.mark.parametrize("sample_size", [0, 1, 37, 200])
def test_rivals_of_an_and_of_three_bits_by_hand(context_length, sample_size):
    """C(T-3,3) 2^-m + 3 C(T-3,2) (2p^5)^m + 3 (T-3) (2p^4)^m."""
    p, rest, m = 2 ** (-1 / 3), context_length - 3, sample_size
    want = math.comb(rest, 3) * 2.0**-m + 3 * math.comb(rest, 2) * (2 * p**5) ** m + 3 * rest * (2 * p**4) ** m
    got = expected_rivals(AND, context_length=context_length, sample_size=sample_size)
    assert got == pytest.approx(want, rel=1e-12)
    if sample_size == 0:
        assert got == math.comb(context_length, 3) - 1


def functions(expression, context_length):
    """The truth tables on all positions of all placements, that of the text first; equal ones once."""
    variables, table = parse(expression).reduced
    inputs = (np.arange(2**context_length)[:, None] >> np.arange(context_length)) & 1
    placed = [tuple(range(len(variables))), *itertools.permutations(range(context_length), len(variables))]
    tables = [table[inputs[:, list(at)] @ 2 ** np.arange(len(variables))] for at in placed]
    return inputs, list({each.tobytes(): each for each in tables}.values())


EXPRESSIONS = [
    *(AND, "x0 | x1", "maj(x0, x1, x2)", "x0 ^ x1 ^ x2", "x0 & ~x1", "x0 ^ (x1 & x2)", "x0"),
    *("(x0 & x1) | (x2 & x3)", "(x0 & ~x1) | (x2 & ~x3)", "x0 & (x1 | ~x2) & (x3 | x0)"),
]


@pytest.mark.parametrize("probability", [0.5, 0.7])
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_every_expression_agrees_with_brute_force(expression, probability):
    inputs, (target, *others) = functions(expression, 6)
    weight = (probability**inputs * (1 - probability) ** (1 - inputs)).prod(axis=1)
    for m in (0, 1, 5, 20):
        want = sum(float(weight[other == target].sum()) ** m for other in others)
        got = expected_rivals(expression, context_length=6, sample_size=m, probability=probability)
        assert got == pytest.approx(want, rel=1e-10)
    assert information_bound(expression, context_length=6) == pytest.approx(math.log2(len(others) + 1), rel=1e-12)


def test_symmetric_functions_and_all_others_have_one_formula():
    from genscope.tasks import ideal_learner

    table = parse("maj(x0, x1, x2, x3, x4)").reduced[1]
    levels = ideal_learner._levels(table)
    for m in (1, 30):
        sums = [
            sum(each.ways * math.perm(40, each.outside) * each.agreement**m for each in overlaps)
            for overlaps in (
                ideal_learner._symmetric(levels, 0.5),
                ideal_learner._general(table, 0.5, math.factorial(5)),
            )
        ]
        assert sums[0] == pytest.approx(sums[1], rel=1e-12)


@pytest.mark.parametrize("expression", [AND, "x0 & ~x1"])
def test_expected_rivals_by_monte_carlo(expression):
    """20,000 samples of 6 examples; one example less is found."""
    rng = np.random.default_rng(seed())
    inputs, (target, *others) = functions(expression, 5)
    weight = (0.6**inputs * 0.4 ** (1 - inputs)).prod(axis=1)
    rows = rng.choice(len(inputs), (20_000, 6), p=weight / weight.sum())
    counts = sum((other[rows] == target[rows]).all(axis=1).astype(int) for other in others)
    exact, planted = (expected_rivals(expression, context_length=5, sample_size=m, probability=0.6) for m in (6, 5))
    assert_mean(counts, exact, planted=planted)


def test_the_ideal_sample_is_the_first_that_is_enough():
    assert ideal_sample_size(AND, context_length=300) == 37  # computed by other code
    assert [ideal_sample_size(AND, context_length=at) for at in (50, 200, 800, 3200, 10_000, 100_000)] == [
        *(29, 35, 41, 47, 52, 62),
    ]
    for expression, context_length, failure in [(AND, 300, 0.2), ("x0 & ~x1", 10, 0.01), ("x0", 50, 0.1)]:
        size = ideal_sample_size(expression, context_length=context_length, failure=failure)
        expected = partial(expected_rivals, expression, context_length=context_length)
        assert expected(sample_size=size) <= failure < expected(sample_size=size - 1)
    assert ideal_sample_size(AND, context_length=3) == 0  # one hypothesis only
    assert ideal_sample_size(AND, context_length=4, failure=5.0) == 0


def test_a_sample_of_that_size_identifies_the_function():
    """Of a majority of three among 12 bits: at most a fifth of the samples have a rival."""
    task = SparseMajority.at([0, 1, 2], context_length=12)
    m, rng = ideal_sample_size(task), np.random.default_rng(5)
    found = 0
    for _ in range(100):
        x = rng.random((m, 12)) < 0.5
        found += find_rival(task, x, x[:, :3].sum(axis=1) > 1) is not None
    assert found < 36  # 1e-4
    assert found > 1  # and a few do: the bound is not far away


def test_a_task_brings_its_length_and_law():
    task = SparseExpression.parse("x3 & ~x17", context_length=64, probability=0.3)
    same = partial(expected_rivals, "x0 & ~x1", context_length=64, probability=0.3)
    assert expected_rivals(task, sample_size=9) == same(sample_size=9)
    assert ideal_sample_size(SparseAnd.at([1, 2, 3], context_length=800)) == 41
    assert information_bound(task) == pytest.approx(math.log2(64 * 63))


def test_what_cannot_be_enumerated_is_refused():
    for ask in (partial(expected_rivals, sample_size=1), ideal_sample_size, information_bound):
        with pytest.raises(ValueError, match="Choose a smaller support or a longer context"):
            ask("x0 & x1 & x2 & x3 & x4", context_length=4)
        with pytest.raises(ValueError, match="Choose a smaller support or a longer context"):
            ask("1", context_length=4)
        with pytest.raises(ValueError, match="among how many bits"):
            ask("x0")
        with pytest.raises(ValueError, match="a smaller or a symmetric function"):
            ask("x0 ^ and(x1, x2, x3, x4, x5, x6, x7, x8)", context_length=40)
    with pytest.raises(ValueError, match="Give a positive number"):
        ideal_sample_size("x0", context_length=4, failure=0.0)
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        ideal_sample_size("x0", context_length=4, probability=1.0)
