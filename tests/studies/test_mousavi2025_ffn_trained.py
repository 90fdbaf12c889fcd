"""Trained feedforward networks: their gradients by hand, and the span in which they end."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from genscope.precision import float64
from genscope.refusal import Refusal
from genscope.studies import mousavi2025_ffn_trained as study


def test_a_stationary_first_layer_is_what_the_sample_says():
    """W = −(1/λ) Σ of gradients, each along a row of the sample: by hand for the network with a read-out per index."""
    with float64():
        u = jnp.eye(study.DIM)[:1]
        sample = study.prompts(jr.key(5), u, 6)
        network = study.draw_network(jr.key(6), "indexed")

        def risk(first):
            return jnp.mean(
                (study.Indexed(first, network.outer).outputs(sample.x["x"], sample.x["t"]) - sample.y[:, 0]) ** 2
            )

        gradient = np.asarray(jax.grad(risk)(network.first))
        residual = np.asarray(network.outputs(sample.x["x"], sample.x["t"]) - sample.y[:, 0])
    x, t, outer = (np.asarray(part) for part in (sample.x["x"], sample.x["t"], network.outer))
    assert gradient == pytest.approx(2 / 6 * np.einsum("i,im,ix->mx", residual, outer[t], x))
    assert np.asarray(sample.y[:, 0]) == pytest.approx(x.reshape(6, study.TOKENS, study.DIM)[np.arange(6), t, 0])


@pytest.mark.parametrize("network", ["indexed", "plain"])
def test_training_ends_in_the_span_and_above_the_bound(network):
    found = study.trial(jr.key(990), network=network, sample_size=6, decay=0.6)
    assert found["stationary"]
    assert found["outside"] < 1e-8
    assert found["bound"] == pytest.approx(0.7)
    assert found["risk"] > found["bound"]
    assert found["excess_share"] == pytest.approx((found["risk"] - 0.7) / 0.3)


def test_padding_does_not_train():
    """Rows beyond the sample have no weight: labels there change nothing."""
    with float64():
        u = jnp.eye(study.DIM)[:2]
        sample = study.prompts(jr.key(7), u, 20, 6)
        assert float(jnp.sum(sample.weight)) == 6
        assert np.asarray(sample.weight[6:]).max() == 0


def test_refusals():
    with pytest.raises(Refusal, match="Choose one of them"):
        study.trial(jr.key(0), network="deep", sample_size=5, decay=0.5)
