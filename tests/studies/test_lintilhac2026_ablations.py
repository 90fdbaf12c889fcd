"""Ablations on shrunken points: what a trial returns, what the arms change, and what is refused."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from genscope.models.bit_transformer_normalised import EPSILON, NormalisedBitTransformer
from genscope.studies.lintilhac2026_ablations import ARMS, STUDY, trial

POINT = {"context_length": 4, "sample_size": 512, "degree": 1, "sparsity": 2}


def numpy_twin(model, bits):
    """The network written down once more, position by position."""
    network = model.network
    tokens = [*bits, 0]
    size = len(tokens)
    h = np.stack([np.concatenate([np.eye(size)[i], np.asarray(network.bit[b])]) for i, b in enumerate(tokens)])
    place = 0

    def normalised(h):
        nonlocal place
        mean, variance = h.mean(axis=1, keepdims=True), h.var(axis=1, keepdims=True)
        found = (h - mean) / np.sqrt(variance + EPSILON) * np.asarray(model.gain[place]) + np.asarray(
            model.shift[place]
        )
        place += 1
        return found

    for layer in (network.first, network.second):
        q, k, v, o = (np.asarray(w) for w in (layer.w_query, layer.w_key, layer.w_value, layer.w_output))
        scores = np.log(size) / np.sqrt(h.shape[1]) * (h @ q) @ (h @ k).T
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        h = normalised(h + weights / weights.sum(axis=1, keepdims=True) @ h @ v @ o)
        hidden = np.maximum(h @ np.asarray(layer.w_up) + np.asarray(layer.b_up), 0)
        h = normalised(h + hidden @ np.asarray(layer.w_down) + np.asarray(layer.b_down))
    return float(h[-1] @ np.asarray(network.w_read) + network.b_read)


def test_the_normalised_network_is_its_twin():
    model = NormalisedBitTransformer(3, embedding=2, hidden=5, key=jr.key(0))
    chance = np.random.default_rng(0)
    model = jax.tree.map(lambda leaf: leaf + 0.1 * jnp.asarray(chance.normal(size=leaf.shape), leaf.dtype), model)
    x = np.array([[0, 1, 1], [1, 0, 0]], bool)
    found = np.asarray(model.outputs(jnp.asarray(x)))
    assert found == pytest.approx([numpy_twin(model, row.astype(int)) for row in x], rel=1e-4, abs=1e-5)
    assert found != pytest.approx(np.asarray(model.network.outputs(jnp.asarray(x))), rel=1e-2)  # it does something


@pytest.mark.slow  # every arm compiles for some seconds
@pytest.mark.parametrize("arm", ["plain", "layer norm", "minimal", "definition 1"])
def test_a_trial_says_what_was_trained_and_how_well(arm):
    found = trial(jr.key(0), **POINT, arm=arm, epochs=30)
    assert found["gap"] == found["test_error"] - found["training_error"]
    assert found["converged"] == (found["training_error"] < 0.02)
    assert found["converged"] or arm == "minimal"
    positions, dim = 5, 6 if arm == "minimal" else 35
    hidden = 4 if arm == "minimal" else 128
    layer = 4 * dim**2 + 2 * dim * hidden + hidden + dim
    extra = 8 * dim if arm == "layer norm" else 0
    assert found["parameters"] == 2 * layer + 2 * (dim - positions) + dim + 1 + extra
    assert found["trace"] > 0
    assert found["norm_squared"] > 0


def test_arms_and_points():
    assert STUDY.check is not None
    assert {point["arm"] for point in STUDY.points} == {*ARMS}
    for wrong, said in (
        ({"arm": "dropout"}, "arm must be one of"),
        ({"arm": "batch 1024"}, "larger sample"),
        ({"arm": "plain", "sample_size": 128}, "larger sample"),
    ):
        with pytest.raises(ValueError, match=said):
            STUDY.check(POINT | {"epochs": 3} | wrong)
    STUDY.check(POINT | {"arm": "plain", "epochs": 3})
