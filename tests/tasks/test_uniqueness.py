"""Rivals against brute force, and the ideal learner against values by hand and a Monte Carlo value."""

import dataclasses
import math
from functools import partial

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genscope.tasks import SparseAnd, SparseExpression, SparseMajority, SparseOr, SparseParity, SparseThreshold, _rivals
from genscope.tasks.uniqueness import draw_unique, find_rival, search_cost
from tests.reference import uniqueness as reference

FAMILIES = {
    "and": SparseAnd.at,
    "or": SparseOr.at,
    "majority": SparseMajority.at,
    "threshold": partial(SparseThreshold.at, threshold=2),
    "parity": SparseParity.at,
    "not and": partial(SparseExpression.at, table=[1, 1, 1, 1, 1, 1, 1, 0]),
    "not parity": partial(SparseExpression.at, table=[1, 0, 0, 1, 0, 1, 1, 0]),
    "table": partial(SparseExpression.at, table=[0, 1, 0, 0, 1, 1, 0, 1]),
    "table with one idle bit": partial(SparseExpression.at, table=[0, 1, 0, 0, 0, 1, 0, 0]),
    "table with two equal bits": partial(SparseExpression.at, table=[0, 0, 0, 1, 1, 1, 1, 0]),
}


def labels(task, x):
    support = np.asarray(task.support)
    return task.truth_table()[x[:, support] @ 2 ** np.arange(len(support))]


def check_against_brute_force(task, x, y, errors=0):
    table, support = task.truth_table().tolist(), task.support.tolist()
    rivals = reference.rivals(table, support, task.context_length, x.tolist(), y.tolist(), errors)
    found = find_rival(task, x, y, errors=errors)
    assert (found is None) == (not rivals)
    if found is not None and len(found) == len(support):
        assert found in rivals
    return found


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES.keys())
@pytest.mark.parametrize(("context_length", "sizes"), [(3, (0, 1, 4, 8)), (5, (0, 3, 6, 12)), (9, (4, 10, 16))])
def test_rivals_equal_brute_force(family, context_length, sizes):
    rng = np.random.default_rng(context_length)
    answers = set()
    for size in sizes:
        for _ in range(4):
            support = rng.permutation(context_length)[:3]
            task = family(support.tolist(), context_length=context_length)
            x = rng.random((size, context_length)) < task.probability
            answers.add(check_against_brute_force(task, x, labels(task, x)) is None)
    assert answers == {True, False} or context_length == 3


@pytest.mark.parametrize("family", ["and", "or", "majority", "parity"])
def test_rivals_equal_brute_force_at_twelve_bits(family):
    rng = np.random.default_rng(12)
    for size in (12, 18):
        task = FAMILIES[family]([7, 2, 9], context_length=12)
        x = rng.random((size, 12)) < task.probability
        check_against_brute_force(task, x, labels(task, x))


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_any_function_and_any_labels(data):
    """Random tables of 0 to 3 bits, and labels that need not come from the task."""
    context_length = data.draw(st.integers(1, 6))
    dim = data.draw(st.integers(0, min(3, context_length)))
    support = data.draw(st.permutations(range(context_length)))[:dim]
    table = data.draw(st.lists(st.integers(0, 1), min_size=2**dim, max_size=2**dim))
    size = data.draw(st.integers(1, 12))
    rows = st.lists(st.booleans(), min_size=context_length, max_size=context_length)
    x = np.array(data.draw(st.lists(rows, min_size=size, max_size=size)))
    task = SparseExpression.at(support, table, context_length=context_length)
    y = data.draw(st.sampled_from([labels(task, x), x[:, 0], ~x[:, -1]]))
    check_against_brute_force(task, x, y)


@pytest.mark.parametrize("support_size", [1, 2, 4, 5])
@pytest.mark.parametrize("family", [SparseAnd, SparseOr, SparseMajority, SparseParity])
def test_other_support_sizes(family, support_size):
    rng = np.random.default_rng(support_size)
    for size in (2, 8, 20):
        task = family.at(rng.permutation(7)[:support_size].tolist(), context_length=7)
        x = rng.random((size, 7)) < task.probability
        check_against_brute_force(task, x, labels(task, x))


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES.keys())
def test_rivals_with_as_many_wrong_labels_equal_brute_force(family):
    rng = np.random.default_rng(5)
    answers = set()
    for size in (6, 12, 60):
        task = family(rng.permutation(6)[:3].tolist(), context_length=6)
        x = rng.random((size, 6)) < task.probability
        flipped = rng.random(size) < 0.15
        for errors in {0, int(flipped.sum()), int(flipped.sum()) + 1}:
            answers.add(check_against_brute_force(task, x, labels(task, x) ^ flipped, errors) is None)
    assert answers == {True, False}


@pytest.mark.parametrize("expression", ["maj(x0,x1,x2)^x3", "x3^maj(x0,x1,x2)", "x0&x1|x2&x3", "x0&~x1|x2^x3", "x0"])
@pytest.mark.parametrize("noise", [0.0, 0.15])
def test_rivals_of_unlike_variables_equal_brute_force(expression, noise):
    rng = np.random.default_rng(len(expression))
    answers = set()
    for size in (1, 8, 30, 300):  # more and fewer examples than a pair is first compared on
        task = SparseExpression.parse(expression, context_length=6)
        task = SparseExpression.at(rng.permutation(6)[: task.support_size], task.truth_table(), context_length=6)
        x = rng.random((size, 6)) < task.probability
        flipped = rng.random(size) < noise
        answers.add(check_against_brute_force(task, x, labels(task, x) ^ flipped, int(flipped.sum())) is None)
    assert answers == {True, False}


def test_blocks_of_pairs_are_all_searched(monkeypatch):
    monkeypatch.setattr(_rivals, "BLOCK", 1)
    test_rivals_of_unlike_variables_equal_brute_force("maj(x0,x1,x2)^x3", 0.15)


def test_the_cost_of_a_search_counts_its_placements():
    majority = SparseExpression.parse("maj(x0,x1,x2)^x3", context_length=64)
    assert search_cost(majority).placements == 2_541_504  # C(64, 3) 61
    assert search_cost(majority).seconds < 1 < search_cost(dataclasses.replace(majority, context_length=300)).seconds
    assert search_cost(majority, sample_size=10_000, errors=True).seconds > 5 * search_cost(majority).seconds
    conjunction = SparseAnd.at([0, 1, 2], context_length=10_000)
    assert search_cost(conjunction) == (math.comb(10_000, 3), 0)
    assert search_cost(conjunction, errors=True).seconds > 100
    parity = SparseParity.at(range(8), context_length=80)
    assert 1000 < search_cost(parity).seconds < search_cost(parity, errors=True).seconds


def test_equal_columns_are_rivals_of_each_other():
    rng = np.random.default_rng(0)
    x = rng.random((200, 50)) < 0.8
    task = SparseAnd.at([5, 20, 30], context_length=50)
    y = labels(task, x)
    assert find_rival(task, x, y) is None
    x[:, 41] = x[:, 20]
    assert find_rival(task, x, y) == (5, 30, 41)


def test_constants_and_whole_contexts_have_no_rival():
    x = np.zeros((2, 3), bool)
    assert find_rival(SparseExpression.parse("1", context_length=3), x, np.ones(2)) is None
    assert find_rival(SparseAnd.at([0, 1, 2], context_length=3), x, np.zeros(2)) is None
    assert find_rival(SparseParity.at([0], context_length=1), x[:, :1], np.zeros(2)) is None


@pytest.mark.parametrize("sample_size", [0, 2, 20, 45, 60, 300])
def test_large_contexts(sample_size):
    """T = 10,000 in some milliseconds; the rival, if any, is checked."""
    rng = np.random.default_rng(sample_size)
    for family in (SparseAnd, SparseOr):
        task = family.at([17, 4_000, 9_999], context_length=10_000)
        x = rng.random((sample_size, 10_000)) < task.probability
        y = labels(task, x)
        rival = find_rival(task, x, y)
        assert sample_size == 45 or (rival is None) == (sample_size >= 60)
        if rival:
            assert len(set(rival)) == 3
            assert (labels(family.at(list(rival), context_length=10_000), x) == y).all()


def test_a_search_that_is_too_long_is_refused_with_its_size():
    rng = np.random.default_rng(0)
    task = SparseParity.at(list(range(6)), context_length=200)
    x = rng.random((100, 200)) < 0.5
    with pytest.raises(ValueError, match=r"82,408,626,300 hypotheses.*limit is 1,000,000\. Use more examples"):
        find_rival(task, x, labels(task, x), limit=1_000_000)
    with pytest.raises(ValueError, match="increase the limit"):
        find_rival(SparseAnd.at([0, 1], context_length=200), x[:, :200], np.zeros(100), limit=10)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (np.zeros((4, 5)), np.zeros(4)),
        (np.zeros((4, 6)), np.zeros(3)),
        (np.zeros((4, 6)), np.zeros((4, 1))),
        (np.full((4, 6), -1), np.zeros(4)),
        (np.zeros((4, 6)), np.full(4, 0.5)),
    ],
)
def test_examples_that_do_not_fit_the_task_are_refused(x, y):
    with pytest.raises(ValueError, match="Give a batch drawn from the task"):
        find_rival(SparseAnd.at([0, 1], context_length=6), x, y)


# Drawing.


def test_draws_are_repeated_until_one_identifies_the_support():
    task = SparseAnd.at([3, 8, 11], context_length=20)
    for trial in range(5):
        key = jr.key(trial)
        draw = draw_unique(key, task, 20, attempts=50)
        assert draw.identified
        assert find_rival(task, draw.batch.x, draw.batch.y) is None
        for attempt in range(draw.rejected + 1):
            batch = task.sample(jr.fold_in(key, attempt), 20)
            assert (find_rival(task, batch.x, batch.y) is None) == (attempt == draw.rejected)
        assert jnp.array_equal(batch.x, draw.batch.x)
        assert jnp.array_equal(batch.y, draw.batch.y)


def test_running_out_of_attempts_is_an_observation():
    draw = draw_unique(jr.key(0), SparseAnd.at([3, 8, 11], context_length=300), 4, attempts=3)
    assert (draw.rejected, draw.identified) == (3, False)
    assert draw.batch.x.shape == (4, 300)
    assert draw.batch.y.dtype == jnp.float32


def test_a_capacity_gives_the_first_examples_of_a_larger_draw():
    task = SparseOr.at([0, 1], context_length=6)
    draws = [draw_unique(jr.key(1), task, size, attempts=1, capacity=30) for size in (7, 30)]
    assert jnp.array_equal(draws[0].batch.x, draws[1].batch.x[:7])
    assert jnp.array_equal(draws[0].batch.y, draws[1].batch.y[:7])


@pytest.mark.parametrize("options", [{"attempts": 0}, {"capacity": 4}])
def test_impossible_draws_are_refused(options):
    with pytest.raises(ValueError, match="attempts must be at least 1, and capacity"):
        draw_unique(jr.key(0), SparseOr.at([0], context_length=6), 5, **options)


# The ideal learner.
