"""The decay of position embeddings: its value, its gradient, and that samples in chunks count it once."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from genscope.refusal import Refusal
from genscope.studies._bit_restarts import train_restarts
from genscope.studies._bit_training import PRESETS, PositionDecay, draw_and
from genscope.studies.edelman2022_and_decayed import PAIRED
from genscope.tasks import Batch
from genscope.train import Chunks, Risk, Whole, fit, logistic, sgd

LAMBDA = 0.5


class Positions(eqx.Module):
    """Logits are sums of the embeddings of the bits that are 1."""

    position: jax.Array
    bias: jax.Array


def logits(model, x):
    return x @ jnp.sum(model.position, axis=1) + model.bias


MODEL = Positions(jnp.asarray([[0.5, -1.0], [0.25, 0.0], [2.0, 1.0]]), jnp.asarray(0.125))
BATCH = Batch(jnp.asarray([[0.0, 1, 1], [1, 0, 0], [1, 1, 0], [0, 0, 1]]), jnp.asarray([1.0, 0, 1, 0]))
RISK = Risk(logistic, logits)
DECAYED = PositionDecay(RISK, LAMBDA)


def test_the_decay_adds_squares_of_positions_alone():
    def value(objective):
        return jax.value_and_grad(lambda model: objective(model, BATCH, None)[0])(MODEL)

    (plain, slope), (decayed, steeper) = value(RISK), value(DECAYED)
    assert float(decayed - plain) == pytest.approx(LAMBDA * (0.25 + 1 + 0.0625 + 4 + 1))
    np.testing.assert_allclose(steeper.position - slope.position, 2 * LAMBDA * MODEL.position, rtol=1e-5)
    assert steeper.bias == slope.bias
    np.testing.assert_array_equal(DECAYED.losses(MODEL, BATCH), RISK.losses(MODEL, BATCH))


def test_chunks_count_the_decay_once():
    whole = fit(MODEL, Whole(BATCH), DECAYED, 3, optimizer=sgd(0.1))
    chunked = fit(MODEL, Chunks.of(jax.tree.map(np.asarray, BATCH), 2, 8), DECAYED, 3, optimizer=sgd(0.1))
    np.testing.assert_allclose(chunked.losses, whole.losses, rtol=1e-5)
    np.testing.assert_allclose(chunked.model.position, whole.model.position, rtol=1e-5)


def test_presets_differ_in_the_decay_alone_and_meet_the_same_samples():
    assert PRESETS["decayed"].position_decay == 0.01
    assert PRESETS["decayed"].initialisation == PRESETS["tuned"].initialisation
    assert "preset" in PAIRED.paired


def test_stacks_know_no_decay():
    task = draw_and(jr.key(0), context_length=8, sample_size=10)
    with pytest.raises(Refusal, match="stacks know neither dropout nor decay"):
        train_restarts(task, sample_size=10, preset="decayed", init_key=jr.key(1), data_key=jr.key(2))
