"""One step by hand, runs stacked and separate, censoring, divergence."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from genscope.tasks import Batch
from genscope.tasks.token_regression import TokenRegression
from genscope.train.samples_to_threshold import (
    TestSet,
    begin,
    compilations,
    initial_state,
    samples_to_threshold,
    train_steps,
)
from tests.reference.mousavi2025 import adamw

TASK = TokenRegression.draw(jr.key(0), context_length=2, dim=3)


class Retriever(eqx.Module):
    """Knows where to look, and learns the direction."""

    weight: jax.Array
    fixed: jax.Array  # an integer: training leaves it alone

    def __call__(self, x):
        tokens, t = x[:, :3], x[:, 3].astype("int32")
        return tokens[t] @ self.weight


START = Retriever(jnp.array([0.3, -0.2, 0.1]), jnp.int32(7))


def losses(model, task, batch):
    del task
    return jnp.mean((jax.vmap(model)(batch.x) - batch.y) ** 2, axis=1)


EXAMPLES = TASK.sample(jr.key(5), 1000)
TEST = TestSet(EXAMPLES, jnp.mean(EXAMPLES.y**2, axis=1)[None], jnp.zeros(1000))


SETTINGS = dict(losses=losses, threshold=0.05, rate=0.05, weight_decay=0.01, batch_size=16, every=5)


def run(model=START, **options):
    return samples_to_threshold(model, TASK, TEST, **({"key": jr.key(1)} | SETTINGS | options))


def test_brief_runs_count_the_same_samples():
    assert run(brief=True).samples == run().samples


def test_what_is_compiled_before_a_run_is_all_that_it_needs(caplog):
    sizes = {"batch_size": 8, "every": 3, "chunk": 100}  # of no other test
    zeros = jax.tree.map(jnp.zeros_like, (START, TASK, TEST))

    with jax.log_compiles(), caplog.at_level("WARNING"):
        for compilation in compilations(*zeros, key=jr.key(0), **(SETTINGS | sizes)):
            compilation()
        before = [line for line in caplog.messages if "Finished XLA compilation" in line]
        found = run(**sizes)
        after = [line for line in caplog.messages if "Finished XLA compilation" in line]
    assert found.reached
    for name in ("_train", "_check"):
        assert sum(name in line for line in before) == sum(name in line for line in after) == 1


def test_steps_are_those_of_a_hand_written_adamw():
    batch = TASK.sample(jr.key(2), 8)
    tokens = np.asarray(batch.x, float)
    asked = np.take_along_axis(tokens[:, :, :3], tokens[:, :, 3:].astype(int), axis=1)

    def gradient(weight):
        return 2 * np.mean((asked @ weight - np.asarray(batch.y))[..., None] * asked, axis=(0, 1))

    rate, decay = jnp.float32(0.01), jnp.float32(0.1)
    model, _, values = eqx.filter_jit(
        lambda model: train_steps(
            model, initial_state(model), jnp.arange(3), lambda number: batch, losses, TASK, rate, decay
        )
    )(START)
    np.testing.assert_allclose(
        model.weight, adamw(START.weight, [gradient] * 3, rate=0.01, decay=0.1), rtol=1e-5, atol=1e-6
    )
    wrong = adamw(START.weight, [gradient] * 3, rate=0.01, decay=0.0)
    assert np.abs(np.asarray(model.weight) - wrong).max() > 1e-4  # the decay would be missed
    first = np.mean((asked @ np.asarray(START.weight) - np.asarray(batch.y)) ** 2)
    assert float(values[0]) == pytest.approx(first, rel=1e-5)
    assert int(model.fixed) == 7


def test_parameters_in_one_vector_take_the_same_steps(monkeypatch):
    """Few parameters are trained as one vector, many as they are; a step must not know."""

    class Two(eqx.Module):
        inner: jax.Array
        outer: jax.Array

        def __call__(self, x):
            return jnp.tanh(x[:, :3] @ self.inner) @ self.outer

    start = Two(jr.normal(jr.key(7), (3, 4)), jr.normal(jr.key(8), (4,)))
    numbers = jnp.float32(0.01), jnp.float32(0.1)
    ends = []
    for few in (100, 1):  # of 16 parameters
        monkeypatch.setattr("genscope.train.samples_to_threshold.FEW", few)
        ends.append(
            eqx.filter_jit(
                lambda model: train_steps(
                    model,
                    initial_state(model),
                    jr.split(jr.key(4), 5),
                    partial(TASK.sample, size=8),
                    losses,
                    TASK,
                    *numbers,
                )
            )(start)[::2]
        )
    for together, apart in zip(*map(jax.tree.leaves, ends), strict=True):
        np.testing.assert_allclose(together, apart, rtol=1e-5, atol=1e-6)
    assert np.abs(ends[0][0].inner - start.inner).min() > 1e-3  # five steps were taken


def test_stacked_runs_equal_separate_runs():
    starts = [Retriever(jnp.asarray(weight, jnp.float32), jnp.int32(0)) for weight in np.eye(3)]
    keys = jr.split(jr.key(3), 3)

    def advance(model, key):
        def draw(number):
            return TASK.sample(jr.fold_in(key, number), 8)

        steps, numbers = jnp.arange(6), (jnp.float32(0.02), jnp.float32(0.01))
        return train_steps(model, initial_state(model), steps, draw, losses, TASK, *numbers)[0]

    stack = jax.tree.map(lambda *leaves: jnp.stack(leaves), *starts)
    together = eqx.filter_jit(eqx.filter_vmap(advance))(stack, keys)
    alone = eqx.filter_jit(advance)
    for i, start in enumerate(starts):
        np.testing.assert_allclose(together.weight[i], alone(start, keys[i]).weight, rtol=1e-5, atol=1e-6)


def test_it_stops_at_the_first_check_that_passes():
    result = run()
    assert result.reached
    assert result.samples == result.checks * 16 * 5
    assert len(result.losses) == result.samples // 16
    assert result.risk < 0.05
    before = run(budget=result.samples - 80)
    assert not before.reached  # censored, not lost
    assert before.samples == result.samples - 80
    assert before.risk >= 0.05


def test_skipping_changes_no_count():
    for seed in range(4):
        screened, exact = (run(key=jr.key(seed), exact=exact) for exact in (False, True))
        assert (screened.samples, screened.reached) == (exact.samples, exact.reached)
        assert exact.full_checks == exact.checks
        assert exact.examples_seen == 1000 * exact.checks
        assert screened.full_checks < exact.full_checks
        assert screened.examples_seen < exact.examples_seen


def test_wrong_labels_are_not_learned():
    """The planted fault: labels of the next prompt."""
    result = run(losses=lambda m, t, b: losses(m, t, Batch(b.x, jnp.roll(b.y, 1, axis=0))), budget=4000)
    assert not result.reached


def test_divergence_is_recorded():
    result = run(rate=1e38)
    assert result.diverged
    assert not result.reached


def test_the_given_model_is_not_consumed():
    run(budget=80)
    assert np.isfinite(np.asarray(START.weight)).all()
    assert jnp.array_equal(begin(START)[0].weight, START.weight)


def test_a_budget_below_the_first_check_is_refused():
    with pytest.raises(ValueError, match="Raise the budget"):
        run(budget=79)
