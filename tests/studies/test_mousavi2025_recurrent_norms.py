"""Recurrent networks of least norm: a NumPy twin, the start that solves the task, and what is refused."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from genscope.refusal import Refusal
from genscope.studies import mousavi2025_recurrent_norms as study


def twin(network, x, j, t):
    """One prompt in NumPy, token by token."""
    part = {name: np.asarray(value, float) for name, value in vars(network).items()}

    def states(writes, order):
        h = np.zeros(writes.shape[1])
        for i in order:
            h = h + writes[i] @ x[i]
            h = h / max(1.0, float(np.linalg.norm(h)))
        return h

    h = np.concatenate([states(part["forward"], range(j)), states(part["backward"], range(len(x) - 1, j, -1))])
    token = np.concatenate([x[j], np.eye(len(x))[t], [float(t == j)]])
    hidden = np.maximum(part["states"] @ h + part["token"] @ token + part["bias"], 0)
    return float(part["outer"] @ hidden)


@pytest.fixture(scope="module")
def sample():
    u = jnp.asarray([0.6, 0.8])
    return study.Prompts(u, 5).sample(jr.key(3), 40)


def test_predictions_are_those_of_a_twin(sample):
    like = study.memory(np.array([0.6, 0.8]), 5, 3, jr.key(1))
    leaves, tree = jax.tree.flatten(like)
    network = jax.tree.unflatten(
        tree, [jr.normal(jr.fold_in(jr.key(2), i), leaf.shape) for i, leaf in enumerate(leaves)]
    )
    found = np.asarray(study.predict(network, sample.x))
    x, j, t = (np.asarray(sample.x[name]) for name in ("x", "j", "t"))
    assert found == pytest.approx([twin(network, *each) for each in zip(x, j, t, strict=True)], rel=1e-4, abs=1e-4)


def test_the_memory_solves_the_task_where_nothing_is_projected(sample):
    """Exact for tokens within the gate whose states stay in the ball: 40 prompts of small tokens."""
    network = study.memory(np.array([0.6, 0.8]), 5, 5, jr.key(1))
    small = sample.x | {"x": sample.x["x"] / 4}
    assert np.asarray(study.predict(network, small)) == pytest.approx(np.asarray(sample.y) / 4, abs=1e-5)
    narrow = study.memory(np.array([0.6, 0.8]), 5, 2, jr.key(1))
    assert np.abs(np.asarray(study.predict(narrow, small) - sample.y / 4)).max() > 0.1
    assert network.bias.shape == (12,)


def test_lemma_36_fits_more_samples_where_more_norm_is_allowed():
    task = study.Prompts(jnp.asarray([0.6, 0.8]), 4)
    few, error = study._lemma_36(jr.key(5), task, 20.0)
    more, _ = study._lemma_36(jr.key(5), task, 2_000.0)
    assert 1 <= few < more < study.SAMPLES
    assert error < 1e-8


def test_refusals():
    with pytest.raises(Refusal, match="Choose one of them"):
        study.trial(jr.key(0), context_length=4, network="deep")
