"""The preset "paper": masks, decay, and runs that go on when their sample is fitted."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from genscope.models.bit_classifier import TUNED, BitClassifier, dropout
from genscope.models.bit_classifier_fast import indicators, outputs
from genscope.random import stream
from genscope.refusal import Refusal
from genscope.studies import _bit_training as training
from genscope.studies._bit_training import PLAIN, PRESETS, Dropped, draw_and, train
from genscope.tasks import Batch

LENGTH, SIZE = 9, 12


@pytest.fixture(scope="module")
def case():
    key = jr.key(5)
    model = BitClassifier(LENGTH, dim=16, heads=4, initialisation=TUNED, key=key)
    bits = jr.bernoulli(stream(key, "bits"), 0.7, (SIZE, LENGTH))
    weight = jnp.array([1.0] * (SIZE - 3) + [0.0] * 3)
    return model, Batch(indicators(bits), bits[:, 0].astype("float32"), weight), bits


def test_without_masks_and_decay_the_objective_is_the_shortcuts_mean_loss(case):
    model, batch, bits = case
    value, recorded = jax.jit(Dropped(0.0, 0.0))(model, batch, jr.key(0))
    logits = np.asarray(jax.jit(outputs)(model, bits), float)[:-3]
    losses = np.log1p(np.exp(-np.where(np.asarray(batch.y)[:-3] > 0, 1, -1) * logits))
    assert float(value) == pytest.approx(losses.mean(), rel=1e-5)
    assert float(recorded["logistic"]) == pytest.approx(losses.mean(), rel=1e-5)


def test_decay_adds_its_share_of_every_parameter_to_the_gradient(case):
    model, batch, _ = case
    slope = {
        decay: jax.jit(jax.grad(lambda model, decay=decay: Dropped(0.1, decay)(model, batch, jr.key(1))[0]))(model)
        for decay in (0.0, 0.3)
    }
    for plain, decayed, weights in zip(*map(jax.tree.leaves, (slope[0.0], slope[0.3], model)), strict=True):
        np.testing.assert_allclose(decayed - plain, 0.3 * weights, atol=1e-5)


def test_masks_are_right_in_the_mean_and_of_the_places_named(case):
    """Of the attention, where all that follows up to the output projection is linear, so that means are exact."""
    model, _, bits = case
    names, terms = [], {}

    def note(name, *parts):
        names.append(name)
        terms[name] = parts
        return parts

    model.activations(bits[0], note)
    assert names == ["attention", "output", "mlp"]
    attention = terms["attention"][0]
    assert attention.shape == (4, LENGTH + 1)

    @jax.jit
    @jax.vmap
    def masked(key):
        return dropout(key, 0.25)("attention", attention)[0]

    seen = np.asarray(masked(jr.split(jr.key(2), 4000)))
    kept = (seen != 0).mean(axis=0)
    assert np.abs(kept - 0.75).max() < 0.05  # seven deviations
    np.testing.assert_allclose(seen.max(axis=0), np.asarray(attention) / 0.75, rtol=1e-5)
    first, second = dropout(jr.key(3), 0.5)("output", jnp.ones(64), 2 * jnp.ones(64))
    np.testing.assert_array_equal(2 * first, second)  # one mask for all terms of a sum
    other = dropout(jr.key(3), 0.5)("mlp", jnp.ones(64))[0]
    assert not np.array_equal(first, other)


def test_the_preset_never_gives_up_and_is_refused_at_long_contexts(monkeypatch):
    assert not PRESETS["paper"].gives_up
    short = training.Preset(PRESETS["paper"].initialisation, steps=40, dropout=0.1, decay=1e-4, gives_up=False)
    monkeypatch.setitem(training.PRESETS, "paper", short)
    options = {"sample_size": 10, "preset": "paper", "init_key": jr.key(1), "data_key": jr.key(2)}
    task = draw_and(jr.key(0), context_length=6, sample_size=10)
    run = train(task, stop=lambda *_: False, floor=1e9, **options)  # a floor that ends every other run at once
    assert run.fit.steps == 40
    again = train(task, stop=lambda *_: False, floor=1e9, **options)
    np.testing.assert_array_equal(run.fit.losses, again.fit.losses)
    task = draw_and(jr.key(0), context_length=PLAIN + 1, sample_size=10)
    with pytest.raises(Refusal, match="Shorten the context"):
        train(task, stop=lambda *_: False, **options)
