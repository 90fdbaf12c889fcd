"""Epochs, draws and fresh batches on a linear model, whose training is known by a loop in NumPy."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from jaxtyping import Array, Float

from genscope.random import biased_bits, derived, stream
from genscope.tasks import Batch, SparseOr
from genscope.train import (
    Below,
    Chunks,
    Draws,
    Epochs,
    Fresh,
    Risk,
    WeightNoise,
    Whole,
    adam,
    adamw,
    correct,
    each_loss,
    fit,
    logistic,
    sgd,
    squared,
)
from genscope.train._program import program
from genscope.train.fit import _advance
from genscope.train.sources import shuffled
from tests.reference.mousavi2025 import adamw as written_out
from tests.train.retrieval import START, TASK, PromptLoss

SIZE, BITS = 64, 3
KEY = jr.key(3)


class Linear(eqx.Module):
    weights: Float[Array, " d"]

    def __call__(self, x):
        return self.weights @ x


@pytest.fixture(scope="module")
def examples():
    x = 1.0 - 2 * biased_bits(KEY, (SIZE, BITS), 0.5).astype(jnp.float32)
    return Batch(x, x @ jnp.array([1.0, -2.0, 0.5]))


def epochs(examples, epochs=200, *, batch_size=16, weight_decay=1e-4, clip=math.inf, noise=0.0):
    source = Epochs(examples, KEY, batch_size)
    risk = Risk(squared)
    return fit(
        Linear(jnp.zeros(BITS)),
        source,
        WeightNoise(risk, noise) if noise else risk,
        (epochs * source.per_epoch, Below(0.02, examples, controls=examples.y[None] ** 2)),
        optimizer=adamw(0.05, weight_decay=weight_decay, clip=clip),
        every=source.per_epoch,
    )


def test_it_ends_with_the_first_epoch_below_the_threshold(examples):
    found = epochs(examples)
    assert found.reached
    taken = found.steps // 4
    assert not epochs(examples, taken - 1).reached
    errors = each_loss(found.model, examples, squared)
    np.testing.assert_allclose(errors, (examples.x @ found.model.weights - examples.y) ** 2, rtol=1e-4, atol=1e-6)
    assert errors.mean() < 0.02
    assert found.samples == SIZE


def by_hand(examples, taken, rate, decay, clip):
    """The same steps, one number at a time."""
    x, y = np.asarray(examples.x, float), np.asarray(examples.y, float)
    w, first, second, step = np.zeros(BITS), np.zeros(BITS), np.zeros(BITS), 0
    for epoch in range(taken):
        for rows in shuffled(stream(derived(KEY, epoch), "order"), SIZE, 16):
            gradient = 2 * x[rows].T @ (x[rows] @ w - y[rows]) / 16
            gradient = gradient * min(1, clip / np.linalg.norm(gradient))
            step += 1
            first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2
            scaled = (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
            w = w - rate * (scaled + decay * w)
    return w


def test_steps_are_those_of_adamw_with_cut_gradients(examples):
    found = epochs(examples, 3, weight_decay=0.1, clip=1.0)
    np.testing.assert_allclose(found.model.weights, by_hand(examples, 3, 0.05, 0.1, 1.0), rtol=1e-4)
    assert not np.allclose(found.model.weights, by_hand(examples, 3, 0.05, 0.1, math.inf), rtol=1e-3)


def test_windows_of_an_epoch_visit_every_example_once(examples):
    source = Epochs(examples, KEY, 12)  # five batches, four examples left over
    seen = []
    for first in (0, 2, 4):
        count, (_, done, rows) = source.window(first, 2)
        assert (count, int(done)) == (len(rows), first)
        seen.append(rows)
    assert [len(rows) for rows in seen] == [2, 2, 1]  # a window ends with its epoch
    assert len(np.unique(np.concatenate(seen))) == 60
    assert not np.array_equal(seen[0], source.window(5, 2)[1][2])


def test_shorter_windows_take_the_same_steps(examples):
    ends = [
        fit(Linear(jnp.zeros(BITS)), Epochs(examples, KEY, 16), squared, 8, optimizer=sgd(0.05), every=every).model
        for every in (1, 3, 50)
    ]
    np.testing.assert_allclose(ends[0].weights, ends[1].weights, rtol=1e-5)
    np.testing.assert_allclose(ends[0].weights, ends[2].weights, rtol=1e-5)


def test_a_run_that_does_not_arrive_is_a_result(examples):
    short = epochs(examples, 2)
    assert (short.reached, short.diverged, short.steps) == (False, False, 8)
    broken = epochs(Batch(examples.x, examples.y * jnp.nan), 50)
    assert (broken.reached, broken.diverged, broken.steps) == (False, True, 4)


def test_noise_changes_steps_and_not_what_is_checked(examples):
    still, noisy = epochs(examples), epochs(examples, noise=0.3)
    assert not np.array_equal(still.model.weights, noisy.model.weights)
    # The expected loss at noisy weights is that of the weights plus 3 · 0.09, whatever they are.
    assert noisy.losses[-4:].mean() > 0.1 > 0.02 > noisy.checks[-1].mean


def test_noise_needs_a_key(examples):
    objective = WeightNoise(Risk(squared), 0.1)
    with pytest.raises(ValueError, match="Give the source a key"):
        fit(Linear(jnp.zeros(BITS)), Whole(examples), objective, 5, optimizer=adam(0.1))
    found = fit(Linear(jnp.zeros(BITS)), Whole(examples, KEY), objective, 5, optimizer=adam(0.1))
    assert len(set(found.losses)) == 5


def test_draws_with_replacement_are_means_over_rows_of_the_sample(examples):
    source = Draws(examples, KEY, 16)
    found = fit(Linear(jnp.zeros(BITS)), source, squared, 2, optimizer=sgd(0.0))
    for step, loss in enumerate(found.losses):
        rows = jr.randint(stream(jr.fold_in(KEY, step), "examples"), (16,), 0, SIZE)
        assert loss == pytest.approx(float(jnp.mean(examples.y[rows] ** 2)), rel=1e-5)


@pytest.mark.parametrize("source", [Epochs, Draws])
@pytest.mark.parametrize("size", [0, 65])
def test_impossible_batches_are_refused(examples, source, size):
    with pytest.raises(ValueError, match="smaller batch or a larger training set"):
        source(examples, KEY, size)


OR = SparseOr.at([0, 1], context_length=4)


def online(steps=60, *, rate=0.1, every=20, stop=lambda progress: False):
    def linear(model, x):
        return x.astype(jnp.float32) @ model.weights[:4] + model.weights[4]

    objective = Risk(logistic, linear, also=(correct,))
    start = Linear(jnp.zeros(5))
    return fit(start, Fresh(OR, jr.key(1), 64), objective, (steps, stop), optimizer=adam(rate), every=every)


def test_a_linear_rule_learns_an_or_and_losses_are_on_unseen_data():
    result = online(300, stop=lambda progress: progress.loss < 0.05)
    assert result.losses[0] == pytest.approx(np.log(2), abs=1e-6)
    assert result.recorded["accuracy"][-1] == 1
    assert result.recorded["accuracy"].shape == (result.steps,)
    assert result.stopped
    assert result.steps % 20 == 0
    assert result.samples == 64 * result.steps


def test_batches_depend_on_the_step_alone():
    np.testing.assert_allclose(online(every=20).losses, online(every=12).losses, rtol=1e-5)


def test_an_unreached_budget_is_censored_not_lost():
    result = online()
    assert (result.steps, result.ended, len(result.losses)) == (60, "steps", 60)


def test_empty_batches_are_refused():
    with pytest.raises(ValueError, match="Give 1 or more"):
        Fresh(OR, KEY, 0)


def test_fresh_batches_are_those_of_the_task_and_steps_those_of_adamw():
    def gradient(number):
        batch = TASK.sample(jr.fold_in(KEY, number), 8)
        tokens = np.asarray(batch.x, float)
        asked = np.take_along_axis(tokens[:, :, :3], tokens[:, :, 3:].astype(int), axis=1)
        return lambda weight: 2 * np.mean((asked @ weight - np.asarray(batch.y))[..., None] * asked, axis=(0, 1))

    found = fit(START, Fresh(TASK, KEY, 8), PromptLoss(), 3, optimizer=adamw(0.01, weight_decay=0.1))
    gradients = [gradient(number) for number in range(3)]
    expected = written_out(START.weight, gradients, rate=0.01, decay=0.1)
    np.testing.assert_allclose(found.model.weight, expected, rtol=1e-5, atol=1e-6)
    wrong = written_out(START.weight, gradients, rate=0.01, decay=0.0)
    assert np.abs(np.asarray(found.model.weight) - wrong).max() > 1e-4  # the decay would be missed


def test_keys_of_every_kind_number_their_steps(examples):
    key = jax.random.key(0, impl="rbg")
    found = fit(Linear(jnp.zeros(BITS)), Draws(examples, key, 16), squared, 3, optimizer=adam(0.1))
    assert not found.diverged


@pytest.mark.parametrize("size", [1, 7, 8, 9, 20, 64])
def test_chunks_take_the_steps_of_the_whole_sample(examples, size):
    part = Batch(examples.x[:size], examples.y[:size])
    sources = Whole(part), Chunks.of(part, rows=8, capacity=64)
    whole, parted = (fit(Linear(jnp.zeros(BITS)), each, Risk(squared), 30, optimizer=adam(0.05)) for each in sources)
    np.testing.assert_allclose(parted.losses, whole.losses, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(parted.model.weights, whole.model.weights, rtol=1e-4, atol=1e-6)
    assert parted.samples == whole.samples == size
    assert np.abs(whole.model.weights).min() > 0.1  # thirty steps were taken


def test_samples_of_all_sizes_in_chunks_share_one_program(examples):
    steps, sizes = program(_advance, ("static", "count"), ("trained", "state"), brief=False), []
    for size in (3, 24, 64):
        part = Batch(examples.x[:size], examples.y[:size])
        fit(Linear(jnp.ones(BITS)), Chunks.of(part, rows=4, capacity=64), Risk(squared), 3, optimizer=sgd(0.1), every=3)
        sizes.append(steps._compiled._cache_size())
    assert sizes[0] == sizes[-1]


@pytest.mark.parametrize("size", [0, 65])
def test_chunks_hold_what_they_have_room_for(examples, size):
    with pytest.raises(ValueError, match="Increase the capacity"):
        Chunks.of(Batch(jnp.zeros((size, BITS)), jnp.zeros(size)), rows=8, capacity=64)
