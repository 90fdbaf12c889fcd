"""Sparse Boolean tasks: targets, laws of inputs and labels, balance, and every refusal."""

import itertools
import math
from functools import partial

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from genscope.fourier import ExpressionError, parse, points
from genscope.tasks import SparseAnd, SparseExpression, SparseMajority, SparseOr, SparseParity, SparseThreshold
from genscope.tasks._support import draw_support
from tests.chance import assert_count
from tests.seeds import seed

FUNCTIONS = {
    SparseAnd: all,
    SparseOr: any,
    SparseMajority: lambda bits: sum(bits) > len(bits) / 2,
    partial(SparseThreshold.at, threshold=2): lambda bits: sum(bits) >= 2,
    SparseParity: lambda bits: sum(bits) in (1, 3, 5, 7),
}


def at(family, support, **options):
    return (family if isinstance(family, partial) else family.at)(support, **options)


def brute_one_probability(table, p):
    """P[f = 1], input by input."""
    return sum(chance for chance, value in zip(input_chances(len(table), p), table, strict=True) if value)


def input_chances(entries, p):
    """The probability of each input whose bits are 1 with probability p."""
    dim = entries.bit_length() - 1
    return [math.prod(p if i >> j & 1 else 1 - p for j in range(dim)) for i in range(entries)]


@pytest.mark.parametrize(("family", "function"), FUNCTIONS.items())
@pytest.mark.parametrize("support", [[0, 1], [4, 0, 2], [0, 1, 2, 3, 4]])
def test_targets_on_the_whole_cube(family, function, support):
    task = at(family, support, context_length=5)
    cube = points(5)
    want = [float(function([int(x[j]) for j in support])) for x in cube]
    labels = jax.vmap(task.target)(jnp.asarray(cube))
    assert labels.dtype == jnp.float32
    assert labels.tolist() == want
    assert task.truth_table().tolist() == [function(list(x[:size])) for size in [len(support)] for x in points(size)]


@pytest.mark.parametrize("family", [SparseAnd, SparseOr, SparseMajority, SparseParity])
def test_one_bit(family):
    task = family.draw(jr.key(0), context_length=1, support_size=1)
    assert task.support.tolist() == [0]
    assert task.probability == 0.5
    batch = task.sample(jr.key(1), 10)
    assert jnp.array_equal(batch.y, batch.x[:, 0].astype(jnp.float32))


def test_expressions_keep_their_places():
    task = SparseExpression.parse("x3 & ~x1 | x2 & ~x2", context_length=4)
    assert task.support.tolist() == [1, 3]
    want = [float(x[3] and not x[1]) for x in points(4)]
    assert jax.vmap(task.target)(jnp.asarray(points(4))).tolist() == want
    again = SparseExpression.at([3, 1], [0, 1, 0, 0], context_length=4)
    assert jax.vmap(again.target)(jnp.asarray(points(4))).tolist() == want


def test_drawn_expressions_are_placed_in_every_order():
    draw = partial(SparseExpression.draw, context_length=3, expression=parse("x7 & ~x9"))
    placed = jax.vmap(draw)(jr.split(jr.key(0), 300)).support
    assert set(map(tuple, placed.tolist())) == set(itertools.permutations(range(3), 2))


def test_constants_have_no_support():
    for text, value in [("0", 0.0), ("x0 | ~x0", 1.0)]:
        task = SparseExpression.parse(text, context_length=1)
        assert task.support.shape == (0,)
        assert (task.probability, task.label_mean) == (0.5, value)
        assert task.sample(jr.key(0), 3).y.tolist() == [value] * 3
    assert SparseExpression.draw(jr.key(0), context_length=5, expression="1").support.shape == (0,)


# The law of inputs and labels.


@pytest.mark.parametrize("family", [*FUNCTIONS, partial(SparseExpression.at, table=[0, 0, 1, 0, 1, 1, 0, 1])])
def test_bits_and_labels_follow_their_law(family):
    """40,000 inputs of 8 bits; shares off by 0.015 over all bits, and by 0.04 in one bit or in labels, are found."""
    task = at(family, [1, 4, 6], context_length=8)
    batch = task.sample(jr.key(seed()), 40_000)
    ones, labels = int(batch.x.sum()), int(batch.y.sum())
    assert_count(ones, 320_000, task.probability, planted=task.probability + 0.015)
    assert_count(labels, 40_000, task.label_mean, planted=task.label_mean + 0.04)
    for j in range(8):
        assert_count(int(batch.x[:, j].sum()), 40_000, task.probability, planted=task.probability + 0.04)


def test_bits_are_independent():
    """100,000 inputs, each pair of 8 bits; one column that copies another in a fifth is found."""
    task = SparseAnd.at([0, 1, 2], context_length=8)
    x, p = np.asarray(task.inputs(jr.key(seed()), 100_000)), task.probability
    for i, j in itertools.combinations(range(8), 2):
        assert_count(int((x[:, i] & x[:, j]).sum()), 100_000, p**2, planted=0.8 * p**2 + 0.2 * p)


def test_supports_are_uniform_sets():
    """30,000 supports of 2 positions out of 5; 30 % too few of one set are found."""
    keys = jr.split(jr.key(seed()), 30_000)
    supports = np.asarray(jax.vmap(partial(draw_support, context_length=5, support_size=2))(keys))
    counts = [int((supports == pair).all(axis=1).sum()) for pair in itertools.combinations(range(5), 2)]
    assert sum(counts) == 30_000  # sorted and distinct
    for count in counts:
        assert_count(count, 30_000, 0.1, planted=0.07)


@pytest.mark.parametrize(("context_length", "size"), [(1, 1), (1, 0), (7, 7), (100_000, 5), (100_000, 300)])
def test_supports_are_distinct_positions(context_length, size):
    support = np.asarray(draw_support(jr.key(1), context_length=context_length, support_size=size))
    assert support.shape == (size,)
    assert (np.diff(support) > 0).all()
    assert size == 0 or 0 <= support[0] <= support[-1] < context_length


def test_one_compilation_serves_all_context_lengths():
    from genscope.tasks._support import _floyd

    draw_support(jr.key(0), context_length=50, support_size=6)
    before = _floyd._cache_size()  # pyright: ignore[reportAttributeAccessIssue]  # JAX's own
    for context_length in (51, 1000, 100_000):
        draw_support(jr.key(0), context_length=context_length, support_size=6)
    assert _floyd._cache_size() == before  # pyright: ignore[reportAttributeAccessIssue]  # JAX's own


# Balance.


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7, 20])
def test_balanced_probabilities_by_formula(size):
    support = list(range(size))
    assert SparseAnd.at(support, context_length=20).probability == pytest.approx(2 ** (-1 / size), abs=1e-15)
    assert SparseOr.at(support, context_length=20).probability == pytest.approx(1 - 2 ** (-1 / size), abs=1e-15)
    assert SparseParity.at(support, context_length=20).probability == 0.5
    if size % 2:
        assert SparseMajority.at(support, context_length=20).probability == 0.5
    for threshold in range(1, size + 1):
        task = SparseThreshold.at(support, context_length=20, threshold=threshold)
        assert task.label_mean == pytest.approx(0.5, abs=1e-13)


@pytest.mark.parametrize("family", FUNCTIONS)
def test_formulas_agree_with_the_truth_table(family):
    task = at(family, [2, 0, 5, 3], context_length=6)
    table = SparseExpression.at([0, 1, 2, 3], task.truth_table(), context_length=6)
    assert task.probability == pytest.approx(table.probability, abs=1e-12)
    for p in (0.0, 0.3, 0.9, 1.0):
        assert task.one_probability(p) == pytest.approx(brute_one_probability(task.truth_table(), p), abs=1e-14)
        assert table.one_probability(p) == pytest.approx(brute_one_probability(task.truth_table(), p), abs=1e-14)


def test_balance_of_all_functions_of_three_bits():
    """No p of a fine mesh comes closer to equal labels, and none nearer 1/2 comes as close."""
    mesh = np.linspace(0, 1, 401)
    chances = np.array([input_chances(8, p) for p in mesh])
    for number in range(256):
        table = [bool(number >> i & 1) for i in range(8)]
        task = SparseExpression.at([0, 1, 2], table, context_length=3)
        excess = chances @ table - 0.5
        best = abs(task.label_mean - 0.5)
        assert best <= np.abs(excess).min() + 1e-12
        nearer = np.abs(mesh - 0.5) < abs(task.probability - 0.5) - 1e-9
        assert not (np.abs(excess[nearer]) < best + 1e-9).any()
        assert len(set(np.sign(excess[nearer]))) <= 1  # no crossing was passed over
    assert SparseExpression.parse("x0 & ~x1", context_length=2).probability == pytest.approx(0.5, abs=1e-12)
    assert SparseExpression.parse("x0 & ~x1", context_length=2).label_mean == pytest.approx(0.25)


def test_of_two_equally_near_probabilities_the_smaller_is_taken():
    task = SparseExpression.parse("and(x0, x1, x2) | ~or(x0, x1, x2)", context_length=3)  # P(p) = P(1-p)
    assert task.probability < 0.5
    assert task.label_mean == pytest.approx(0.5)


def test_large_supports():
    for family in (SparseAnd, SparseOr, SparseMajority, SparseParity):
        task = family.at(np.arange(2000), context_length=2000)
        assert task.label_mean == pytest.approx(0.5, abs=1e-9)


def test_a_given_probability_is_kept():
    task = SparseAnd.at([0, 1], context_length=2, probability=0.25)
    assert task.label_mean == pytest.approx(1 / 16)
    assert SparseAnd.at([0], context_length=1, probability=1.0).sample(jr.key(0), 5).y.tolist() == [1.0] * 5
    assert SparseAnd.at([0], context_length=1, probability=0.0).sample(jr.key(0), 5).y.tolist() == [0.0] * 5


# Refusals.


@pytest.mark.parametrize(
    ("make", "advice"),
    [
        (lambda: SparseAnd.at([], context_length=5), r"Name at least one position, or write a constant"),
        (
            lambda: SparseAnd.at([0, 5], context_length=5),
            r"=\[0, 5\].*distinct positions from 0 to 4\. Correct",
        ),
        (lambda: SparseAnd.at([-1], context_length=5), r"Correct the positions or lengthen"),
        (lambda: SparseAnd.at([2, 2], context_length=5), r"Correct the positions or lengthen"),
        (lambda: SparseOr.at([0], context_length=5, probability=1.5), r"probability=1\.5.*Leave it out for balanced"),
        (lambda: SparseThreshold.at([0, 1], context_length=5, threshold=3), r"must be 1 to 2.*Change it"),
        (lambda: SparseThreshold.at([0, 1], context_length=5, threshold=0), r"threshold=0.*Change it"),
        (
            lambda: SparseExpression.at([0, 1], [0, 1], context_length=5),
            r"shape \(2,\) for 2.*Give that many",
        ),
        (lambda: SparseExpression.at([0], [0, 2], context_length=5), r"a value 0 or 1"),
        (lambda: SparseExpression(jnp.array([0]), 5, 0.5, 16), r"Correct the number"),
        (lambda: SparseAnd.draw(jr.key(0), context_length=2, support_size=3), r"support_size=3 with context_length=2"),
        (lambda: SparseAnd.draw(jr.key(0), context_length=2, support_size=0), r"empty support"),
        (
            lambda: SparseExpression.draw(jr.key(0), context_length=1, expression="x0 & x1"),
            "Choose a smaller support or a longer context",
        ),
    ],
)
def test_refusals_teach(make, advice):
    with pytest.raises(ValueError, match=advice):
        make()


def test_inputs_of_another_length_are_refused():
    with pytest.raises(ValueError, match=r"shape \(4,\).*Use jax\.vmap for several"):
        SparseAnd.at([0, 4], context_length=5).target(jnp.ones(4, bool))


def test_expression_errors_pass_through():
    with pytest.raises(ExpressionError, match="Use a smaller index or more bits"):
        SparseExpression.parse("x4", context_length=4)


@pytest.mark.parametrize("support", [np.array([0.5]), np.array([[0, 1]])])
def test_positions_are_a_list_of_integers(support):
    with pytest.raises((ValueError, TypeError)):
        SparseAnd.at(support, context_length=5)
