"""The functions of Section 6: what is drawn is what is named, and a run on few bits learns it."""

import itertools

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from genscope.lab.plans.figure import Line
from genscope.studies.edelman2022_and import LENGTHS
from genscope.studies.edelman2022_family import FUNCTIONS, STUDY, trial
from genscope.tasks import SparseAnd
from genscope.tasks.uniqueness import draw_any, draw_unique

BY_HAND = {
    "AND of 2": lambda bits: bits.count(1) == 2,
    "AND of 3": lambda bits: 0 not in bits,
    "AND of 4": lambda bits: min(bits) == 1,
    "OR of 3": lambda bits: 1 in bits,
    "majority of 3": lambda bits: sorted(bits)[1] == 1,
    "majority of 5": lambda bits: sorted(bits)[2] == 1,
}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_is_what_its_name_says(function):
    kind, size = FUNCTIONS[function]
    support = [1, 3, 4, 6, 7][:size]
    strings = list(itertools.product((0, 1), repeat=8))
    labels = jax.jit(jax.vmap(kind.at(support, context_length=8).target))(jnp.array(strings, bool))
    expected = [BY_HAND[function]([string[place] for place in support]) for string in strings]
    np.testing.assert_array_equal(np.asarray(labels) > 0, expected)


def test_a_majority_of_few_bits_is_learned_from_enough_samples():
    options = {"function": "majority of 3", "context_length": 8, "preset": "tuned"}
    records = [trial(jr.key(seed), sample_size=200, **options) for seed in range(3)]
    assert sum(record["success"] for record in records) >= 2
    assert not trial(jr.key(0), sample_size=6, **options)["success"]  # too few to tell
    assert not {"identified", "rejected_draws"} & records[0].keys()


def test_samples_are_the_first_that_are_drawn():
    task = SparseAnd.at([0, 1], context_length=6)
    looked_at = draw_unique(jr.key(4), task, 60, capacity=64)
    assert looked_at.rejected == 0
    plain = draw_any(jr.key(4), task, 60, capacity=64)
    np.testing.assert_array_equal(plain.batch.x, looked_at.batch.x)
    np.testing.assert_array_equal(plain.batch.y, looked_at.batch.y)
    assert not plain.identified


def test_every_function_has_a_figure_with_its_ideal_learner():
    found = {}
    for figure in STUDY.figures:
        if isinstance(figure, Line) and figure.references:
            ideal, bound = figure.references
            found[dict(figure.where)["function"]] = list(ideal.y)
            assert list(ideal.x) == [*LENGTHS]
            assert all(least <= needed for least, needed in zip(bound.y, ideal.y, strict=True))
    assert [*found] == [*FUNCTIONS]
    assert found["AND of 3"] == [29, 32, 35, 38, 41]
    assert found["AND of 2"] < found["AND of 3"] < found["AND of 4"]
    assert found["OR of 3"] == found["AND of 3"]  # the same function of flipped bits
