"""What every task promises, whichever it is."""

import inspect

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import pytest

from genscope import tasks
from tests.cases import TASKS


@pytest.fixture(params=TASKS.values(), ids=TASKS.keys())
def draw(request):
    return request.param


def same(a, b):
    """Equal, up to the last digits of real numbers, which compiled and stacked programs round differently."""
    return eqx.tree_equal(a, b, typematch=True, rtol=1e-5, atol=1e-5)


def test_every_exported_task_has_a_case():
    exported = {
        value
        for value in vars(tasks).values()
        if inspect.isclass(value) and issubclass(value, tasks.AbstractTask) and not inspect.isabstract(value)
    }
    assert exported == {type(draw(jr.key(0))) for draw in TASKS.values()}


def test_labels_are_the_target_at_the_inputs(draw):
    task = draw(jr.key(0))
    batch = task.sample(jr.key(1), 50)
    assert batch.x.shape[0] == batch.y.shape[0] == 50
    assert jnp.array_equal(batch.x, task.inputs(jr.key(1), 50))
    for x, y in zip(batch.x, batch.y, strict=True):
        assert same(task.target(x), y)
    assert task.sample(jr.key(1), 0).x.shape == (0, *batch.x.shape[1:])


def test_jit_changes_nothing(draw):
    task = draw(jr.key(0))
    assert same(eqx.filter_jit(lambda t, k: t.sample(k, 20))(task, jr.key(1)), task.sample(jr.key(1), 20))
    assert same(jax.jit(draw)(jr.key(0)), task)


def test_stacked_tasks_equal_a_loop(draw):
    keys = jr.split(jr.key(2), 4)
    stacked = jax.vmap(draw)(keys)
    batches = eqx.filter_vmap(lambda t, k: t.sample(k, 20))(stacked, keys)
    for i, key in enumerate(keys):
        assert same(jax.tree.map(lambda leaf, i=i: leaf[i], stacked), draw(key))
        assert same(jax.tree.map(lambda leaf, i=i: leaf[i], batches), draw(key).sample(key, 20))


def test_draws_vary_with_the_key_and_with_nothing_else(draw):
    drawn = [draw(key) for key in jr.split(jr.key(3), 20)]
    assert any(not same(task, drawn[0]) for task in drawn)
    assert same(draw(jr.key(4)), draw(jr.key(4)))
    task = drawn[0]
    assert same(task.sample(jr.key(5), 20), task.sample(jr.key(5), 20))
    assert not same(task.sample(jr.key(5), 20), task.sample(jr.key(6), 20))


def test_pytrees_round_trip(draw):
    task = draw(jr.key(0))
    leaves, structure = jax.tree.flatten(task)
    assert same(jax.tree.unflatten(structure, leaves), task)
    assert all(eqx.is_array(leaf) for leaf in leaves)
