"""The loop on models whose training can be written out in NumPy, and on networks that are not ours."""

from importlib import import_module

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from jaxtyping import Array

from genscope.random import stream
from genscope.tasks import Batch
from genscope.train import (
    AbstractObjective,
    Below,
    Epochs,
    Floor,
    Fresh,
    Risk,
    Whole,
    adam,
    adamw,
    compilations,
    fit,
    logistic,
    sgd,
    squared,
)
from genscope.train._program import program
from genscope.train.fit import _advance, _Run
from genscope.train.padding import example_weights, padded_size
from tests.train.retrieval import EXAMPLES, START, TASK, PromptLoss

KEY = jr.key(3)


class Affine(eqx.Module):
    weight: Array
    bias: Array

    def __call__(self, x):
        return x @ self.weight + self.bias


LINE = Affine(jnp.zeros(3), jnp.zeros(()))
X = jr.normal(stream(KEY, "x"), (20, 3))
SAMPLE = Batch(X, X @ jnp.array([1.0, -2.0, 0.5]) + 0.3)


def run(until=50, *, model=LINE, batch=SAMPLE, loss=squared, optimizer=None, **options):
    return fit(model, Whole(batch), loss, until, optimizer=optimizer or adam(0.05), **options)


def test_full_batch_descent_equals_the_update_written_out():
    fitted = run(7, optimizer=sgd(0.1), every=3)
    weight, bias, losses = np.zeros(3), 0.0, []
    x, y = np.asarray(X, np.float64), np.asarray(SAMPLE.y, np.float64)
    for _ in range(7):
        residual = x @ weight + bias - y
        losses.append((residual**2).mean())
        weight, bias = weight - 0.1 * 2 * x.T @ residual / 20, bias - 0.1 * 2 * residual.mean()
    np.testing.assert_allclose(fitted.model.weight, weight, rtol=1e-5)
    np.testing.assert_allclose(fitted.model.bias, bias, rtol=1e-5)
    np.testing.assert_allclose(fitted.losses, losses, rtol=1e-4)
    assert (fitted.steps, fitted.samples, fitted.ended) == (7, 20, "steps")


@pytest.mark.parametrize("outputs", ["scalar", 2])
def test_a_network_of_another_library_is_trained(outputs):
    """Its activation is no array, and its outputs may be several."""
    model = eqx.nn.MLP(3, outputs, 16, 1, key=KEY)
    y = SAMPLE.y if outputs == "scalar" else jnp.stack([SAMPLE.y, -SAMPLE.y], axis=1)
    fitted = run(300, model=model, batch=Batch(X, y), optimizer=adam(0.01))
    assert fitted.loss < 0.05 * fitted.losses[0]
    assert isinstance(fitted.model, eqx.nn.MLP)
    assert fitted.model.activation is model.activation


def test_a_loss_may_be_any_function_of_outputs_and_labels():
    found = run(20, loss=lambda outputs, y: jnp.abs(outputs - y))
    assert found.losses[0] == pytest.approx(float(jnp.abs(SAMPLE.y).mean()), rel=1e-5)


def test_what_is_not_trainable_stays():
    fitted = run(20, trainable=Affine(True, False))
    assert not float(fitted.model.bias)
    assert np.abs(fitted.model.weight).min() > 0


def test_a_model_in_double_precision_is_trained_in_it():
    with jax.enable_x64(True):
        batch = Batch(jnp.asarray(np.asarray(X, np.float64)), jnp.asarray(np.asarray(SAMPLE.y, np.float64)))
        fitted = run(5, model=Affine(jnp.zeros(3), jnp.zeros(())), batch=batch, optimizer=adamw(0.1, weight_decay=0.1))
        assert fitted.model.weight.dtype == np.float64


def test_grouping_of_steps_changes_nothing():
    one, many = (run(12, every=every) for every in (12, 4))
    np.testing.assert_allclose(one.losses, many.losses, rtol=1e-6)


def test_padding_changes_nothing():
    padded = padded_size(20)
    junk = jnp.full((padded - 20, 3), 1e3)
    x, y = jnp.concatenate([X, junk]), jnp.concatenate([SAMPLE.y, jnp.zeros(padded - 20)])
    masked = run(10, batch=Batch(x, y, jnp.asarray(example_weights(20, padded))))
    np.testing.assert_allclose(masked.model.weight, run(10).model.weight, rtol=1e-5)
    assert masked.samples == 20


def test_a_function_may_end_the_run_and_the_start_is_left_alone():
    seen = []
    fitted = run((50, lambda progress: seen.append(progress.steps) or progress.steps >= 15), every=5)
    assert (fitted.steps, fitted.ended, seen) == (15, "stop", [5, 10, 15])
    assert fitted.stopped
    assert not LINE.weight.any()


def test_a_loss_below_the_floor_ends_the_run():
    free, ended = run(200), run((200, Floor(0.5)))
    assert ended.settled
    assert not free.settled
    assert free.losses[ended.steps - 1] < 0.5 <= free.losses[ended.steps - 11]


def test_divergence_ends_the_run_and_is_recorded():
    fitted = run((50, lambda progress: True), optimizer=sgd(1e30), every=5)
    assert fitted.diverged
    assert not fitted.stopped
    assert fitted.steps == 5
    assert not np.isfinite(fitted.loss)


def test_rates_share_one_program():
    steps = program(_advance, ("static", "count"), ("trained", "state"), brief=False)
    labels = Batch(X, (SAMPLE.y > 0).astype(jnp.float32))
    run(2, batch=labels, loss=logistic, optimizer=adamw(0.1, weight_decay=0.1), every=2)
    before = steps._compiled._cache_size()
    for rate in (0.2, 0.3):
        run(2, batch=labels, loss=logistic, optimizer=adamw(rate, weight_decay=rate), every=2)
    assert steps._compiled._cache_size() == before
    run(2, batch=labels, loss=logistic, optimizer=adam(0.1), every=2)
    assert steps._compiled._cache_size() > before


@pytest.mark.parametrize(
    ("call", "advice"),
    [
        (lambda: run(0), "Give one whole number"),
        (lambda: run((3, 4)), "Give one whole number"),
        (lambda: run((Floor(1.0),)), "Give one whole number"),
        (lambda: run(5, every=0), "Give one whole number"),
        (lambda: run(5, model=jnp.tanh), "Give a model with weights"),
        (lambda: run(5, batch=Batch(X, SAMPLE.y[:, None])), r"Take y\[:, 0\] for y"),
        (lambda: _Run(LINE, Whole(SAMPLE), squared, "adam"), r"a str as optimizer.*train\.adam"),  # types of `fit` are
        (lambda: _Run(LINE, SAMPLE, squared, adam(0.1)), r"a Batch as source.*train\.Whole"),  # checked in tests
        (lambda: adam(-1.0), "Give, for example"),
        (lambda: adam(float("nan")), "Give, for example"),
    ],
)
def test_what_makes_no_sense_is_refused(call, advice):
    with pytest.raises(ValueError, match=advice):
        call()


def test_padded_sizes_waste_at_most_a_quarter():
    for size in range(32, 5000):
        assert size <= padded_size(size) <= 1.25 * size
    assert len({padded_size(size) for size in range(1, 5000)}) < 31
    with pytest.raises(ValueError, match="Give 1 or more"):
        padded_size(0)


class Two(eqx.Module):
    inner: jax.Array
    outer: jax.Array

    def __call__(self, x):
        return jnp.tanh(x[:, :3] @ self.inner) @ self.outer


def test_parameters_in_one_vector_take_the_same_steps(monkeypatch):
    """Few parameters are trained as one vector, many as they are; a step must not know."""
    start = Two(jr.normal(jr.key(7), (3, 4)), jr.normal(jr.key(8), (4,)))
    ends = []
    for few, brief in ((100, False), (1, True)):  # of 16 parameters, and another program
        monkeypatch.setattr(import_module("genscope.train.fit"), "FEW", few)
        options = {"optimizer": adamw(0.01, weight_decay=0.1), "brief": brief}
        ends.append(fit(start, Fresh(TASK, jr.key(4), 8), PromptLoss(), 5, **options))
    for together, apart in zip(*(jax.tree.leaves(end.model) for end in ends), strict=True):
        np.testing.assert_allclose(together, apart, rtol=1e-5, atol=1e-6)
    assert np.abs(ends[0].model.inner - start.inner).min() > 1e-3  # five steps were taken


def test_brief_runs_take_the_same_steps():
    source, optimizer = Fresh(TASK, KEY, 16), adam(0.05)
    brief, plain = (fit(START, source, PromptLoss(), 20, optimizer=optimizer, brief=each) for each in (True, False))
    np.testing.assert_allclose(brief.losses, plain.losses, rtol=1e-4)


def test_what_is_compiled_before_a_run_is_all_that_it_needs(caplog):
    def course(model, task, examples):
        check = Below(0.05, examples, controls=jnp.mean(EXAMPLES.y**2, axis=1)[None], chunk=100)
        return model, Fresh(task, KEY, 8), PromptLoss(), (3000, check)

    options = {"optimizer": adamw(0.05, weight_decay=0.01), "every": 3}
    jax.clear_caches()  # a test that ran before, in whatever order, may have compiled one of the programs
    with jax.log_compiles(), caplog.at_level("WARNING"):
        zeros = jax.tree.map(jnp.zeros_like, (START, TASK, EXAMPLES))
        for compilation in compilations(*course(*zeros), **options):
            compilation()
        before = [line for line in caplog.messages if "Finished XLA compilation" in line]
        found = fit(*course(START, TASK, EXAMPLES), **options)
        after = [line for line in caplog.messages if "Finished XLA compilation" in line]
    assert found.reached
    for name in ("_advance", "_check", "_begin"):
        assert sum(name in line for line in before) == sum(name in line for line in after) == 1


def test_a_users_objective_and_module_go_through_the_loop():
    class Shrinking(AbstractObjective):
        strength: float

        def losses(self, model, batch):
            return squared(jax.vmap(model)(batch.x), batch.y)

        def __call__(self, model, batch, key):
            value, recorded = super().__call__(model, batch, key)
            size = jnp.sum(model.weight**2)
            return value + self.strength * size, recorded | {"size": size}

    found = fit(LINE, Epochs(SAMPLE, KEY, 10), Shrinking(1.0), 400, optimizer=adam(0.02))
    free = fit(LINE, Epochs(SAMPLE, KEY, 10), Risk(squared), 400, optimizer=adam(0.02))
    assert found.recorded["size"].shape == (400,)
    assert found.recorded["size"][-1] < 0.7 * float(jnp.sum(free.model.weight**2))
