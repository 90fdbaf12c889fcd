import jax.random as jr
import numpy as np
import pytest

from genscope.constructions import SparseFunction
from genscope.fourier import points, table_of_number
from genscope.tasks import SparseMajority


def test_an_expression_keeps_only_what_it_depends_on():
    function = SparseFunction.parse("x2 & ~x2 | x5 & x1", context_length=8)
    assert function.support == (1, 5)
    assert function.values.tolist() == [0, 0, 0, 1]
    assert SparseFunction.parse("x2 | ~x2", context_length=8).support == ()


def test_the_target_of_a_task():
    task = SparseMajority.draw(jr.key(0), context_length=9, support_size=3)
    function = SparseFunction.of(task)
    assert function.support == tuple(np.asarray(task.support).tolist())
    assert function.least_ones == 2


def test_symmetric_functions_and_thresholds_among_all_functions_of_three_bits():
    """16 of the 256 depend on the number of ones alone; three are thresholds."""
    counts = points(3).sum(axis=1)
    symmetric, thresholds = 0, []
    for number in range(256):
        table = table_of_number(number, 3)
        function = SparseFunction((0, 1, 2), table.astype(float), 3)
        by_hand = all(len(set(table[counts == ones])) == 1 for ones in range(4))
        assert (function.levels is not None) == by_hand
        symmetric += by_hand
        if function.least_ones is not None:
            thresholds.append(function.least_ones)
            assert (table == (counts >= function.least_ones)).all()
    assert symmetric == 16
    assert sorted(thresholds) == [1, 2, 3]


@pytest.mark.parametrize(
    ("support", "values", "length", "advice"),
    [
        ((0, 0), np.zeros(4), 3, "distinct positions"),
        ((3,), np.zeros(2), 3, "lengthen the context"),
        ((), np.zeros(1), 0, "lengthen the context"),
        ((0, 1), np.zeros(3), 3, "Give that many finite numbers"),
        ((0,), np.array([0, np.nan]), 3, "Give that many finite numbers"),
        (tuple(range(13)), np.zeros(2**13), 20, "Choose a function of fewer variables"),
    ],
)
def test_refusals(support, values, length, advice):
    with pytest.raises(ValueError, match=advice):
        SparseFunction(support, values, length)


def test_levels_are_one_more_than_positions():
    with pytest.raises(ValueError, match="one more level"):
        SparseFunction.symmetric((0, 1), [0.0, 1.0], context_length=3)
