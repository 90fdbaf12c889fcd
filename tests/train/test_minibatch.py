"""A sample of any size in batches of one shape."""

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from genscope.models import BitPerceptron
from genscope.tasks import Batch, SparseAnd
from genscope.train import Minibatch, Whole, adam, fit, logistic
from tests import chance

TASK = SparseAnd.at([1, 4], context_length=6)
DRAWN = TASK.sample(jr.key(0), 64)


def model():
    return BitPerceptron(6, hidden=(5,), key=jr.key(1))


def train(source, steps=20):
    return fit(model(), source, logistic, steps, optimizer=adam(0.01))


def test_a_sample_that_fits_is_read_whole_and_the_rest_is_padding():
    spoiled = Batch(DRAWN.x.at[10:].set(True), DRAWN.y.at[10:].set(0))  # a reader of the padding would be led astray
    found = train(Minibatch(spoiled, 10, rows=16, key=jr.key(2)))
    expected = train(Whole(Batch(DRAWN.x[:10], DRAWN.y[:10])))
    np.testing.assert_allclose(found.losses, expected.losses, rtol=1e-5)
    assert found.samples == 10


def test_of_a_larger_sample_random_rows_are_read_all_alike():
    source = Minibatch(DRAWN, 40, rows=16, key=jr.key(3))
    _, rows = source.window(0, 5000)
    assert rows.shape == (5000, 16)
    assert rows.max() == 39
    chance.assert_mean(rows.reshape(-1), 19.5, planted=20)  # one example more would have the mean 20
    np.testing.assert_array_equal(source.window(7, 1)[1][0], rows[7])  # whatever the grouping of steps
    batch = source.batch(jnp.asarray(rows[0]))
    np.testing.assert_array_equal(batch.weight, 1)
    np.testing.assert_array_equal(batch.x, np.asarray(DRAWN.x)[rows[0]])


def test_one_program_serves_all_sizes():
    from genscope.train._program import program
    from genscope.train.fit import _advance

    steps = program(_advance, ("static", "count"), ("trained", "state"), brief=False)
    train(Minibatch(DRAWN, 3, rows=16, key=jr.key(4)))
    before = steps._compiled._cache_size()
    for size in (5, 16, 17, 60):
        train(Minibatch(DRAWN, size, rows=16, key=jr.key(4)))
    assert steps._compiled._cache_size() == before


@pytest.mark.parametrize(("size", "rows"), [(0, 4), (65, 4), (3, 0)])
def test_sizes_that_cannot_be_are_refused(size, rows):
    with pytest.raises(ValueError, match="Correct the one that is out of range"):
        Minibatch(DRAWN, size, rows=rows, key=jr.key(0))
