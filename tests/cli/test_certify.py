"""`genscope certify`: what it prints, and what it refuses."""

import numpy as np
import pytest

from genscope.measure.certificate import certify, tuned_posterior

MODELS = """
import equinox as eqx, jax, jax.numpy as jnp
class Linear(eqx.Module):
    weight: jax.Array
    def __call__(self, x):
        return self.weight @ x
def trained(): return Linear(jnp.asarray([0.6, 0.0, -0.8, 0.0]))
def initial(): return Linear(jnp.asarray([0.5, 0.1, -0.7, 0.1]))
def wide(): return Linear(jnp.ones(5))
def diverged(): return Linear(jnp.asarray([0.6, 0.0, jnp.nan, 0.0]))
def number(): return 3
def broken(): return 1 / 0
def endless(output, y): return jnp.log(output - output) * y
"""
KEYS = ["certificate", "empirical_risk", "kl", "terms", "confidence", "vacuous", "assumptions"]


@pytest.fixture
def data(directory):
    (directory / "certify_models.py").write_text(MODELS)
    x = np.sign(np.random.default_rng(0).normal(size=(4000, 4)))
    np.savez(directory / "data.npz", x=x, y=x @ [0.6, 0.0, -0.8, 0.0])
    return ["--data", "data.npz", "--draws", 50, "--steps", 20]


def test_a_certificate(call_json, call, data):
    facts = call_json("certify", "certify_models:trained", *data)
    assert {*KEYS} <= {*facts}
    assert facts["certificate"] == pytest.approx(sum(facts["terms"].values()))
    assert facts["empirical_risk"] < facts["certificate"] < facts["trivial"]
    assert facts["vacuous"] is False
    assert facts["confidence"] == 0.95
    assert facts["examples"] == 4000
    assert any("means are zero" in each for each in facts["assumptions"])
    near = call_json("certify", "certify_models:trained", *data, "--prior", "certify_models:initial")
    assert near["kl"] < facts["kl"]
    assert any("given model" in each for each in near["assumptions"])
    text = call("certify", "certify_models:trained", *data).stdout
    assert "Informative: the best constant" in text
    assert "drawn anew" in text
    again = call_json("certify", "certify_models:trained", *data)
    assert again["certificate"] == facts["certificate"]  # one seed, one certificate


def test_a_vacuous_one_says_so_and_what_helps(call_json, call, data):
    tiny = ["certify", "certify_models:initial", *data, "--clip", 1e-6]
    assert call_json(*tiny)["vacuous"] is True
    text = call(*tiny).stdout
    assert "Vacuous" in text
    assert "more examples" in text
    assert "--prior" in text
    assert "more examples" in text
    assert "--clip" not in text  # a larger one made a bound of an MLP worse


@pytest.mark.parametrize(
    ("change", "advice"),
    [
        (["--draws", 0], "--draws must be at least 1"),
        (["--confidence", 1], "between 0 and 1"),
        (["--clip", "nan"], "positive number"),
        (["--seed", -1], "--seed must be between"),
        (["--prior", "certify_models:wide"], "Give such a prior"),
        (["--prior", "certify_models:wide"], "number 1 has shape (4,), and a prior whose has (5,)"),
        (
            ["--prior", "certify_models:number"],
            "--prior certify_models:number: certify_models:number returned an object",
        ),
        (["--prior", "nothing.safetensors"], "nothing.safetensors"),
        (["--prior", "certify_models:diverged"], "a prior with a weight that is nan"),
        (["--loss", "certify_models:endless"], "loss or its slope is not finite"),
        (["--loss", "error"], "labels must be 0 and 1"),
        (["--data", "nothing.npz"], "nothing.npz"),
    ],
)
def test_refusals(refused, data, change, advice):
    assert advice in refused("certify", "certify_models:trained", *data, *change)


def test_a_model_that_does_not_fit_the_data(refused, data):
    assert "failed on inputs" in refused("certify", "certify_models:wide", *data)


def test_weights_that_are_not_finite(refused, data):
    assert "a model with a weight that is nan" in refused("certify", "certify_models:diverged", *data)


def test_a_function_that_fails_is_shown_as_the_users(call, data):
    result = call("certify", "certify_models:broken", *data, status=1)
    assert "ZeroDivisionError" in result.stderr


def test_the_command_is_the_library(call_json, data, directory):
    import jax
    import jax.random as jr
    from certify_models import trained  # pyright: ignore[reportMissingImports]

    from genscope.random import stream
    from genscope.tasks import Batch

    facts = call_json("certify", "certify_models:trained", *data)
    arrays = np.load(directory / "data.npz")
    batch = Batch(jax.numpy.float32(arrays["x"]), jax.numpy.float32(arrays["y"]))
    key = jr.key(0)
    posterior = tuned_posterior(trained(), batch, prior=None, steps=20, key=stream(key, "search"))
    found = certify(posterior, batch, prior=None, draws=50, key=stream(key, "draws"))
    assert facts["certificate"] == pytest.approx(found.certificate, rel=1e-6)


CLASSES = """
import equinox as eqx, jax, jax.numpy as jnp
class Linear(eqx.Module):
    weight: jax.Array
    def __call__(self, x):
        return self.weight @ x
trained = Linear(8 * jnp.eye(3, 4))
def initial(): return Linear(7 * jnp.eye(3, 4))
def distance(output, y): return 1 - jax.nn.softmax(output)[y]
"""


@pytest.fixture
def classes(directory):
    (directory / "m.py").write_text(CLASSES)
    x = np.random.default_rng(0).normal(size=(3000, 4))
    np.savez(directory / "d.npz", x=x, y=x[:, :3].argmax(axis=1))
    return ["m.py:trained", "--data", "d.npz", "--prior", "m.py:initial", "--draws", 50, "--steps", 20]


def test_the_error_and_the_clipped_cross_entropy_of_three_classes(call, call_json, classes):
    facts = call_json("certify", *classes, "--loss", "error")
    assert {*KEYS, "classes"} <= {*facts}
    assert facts["classes"] == 3
    assert facts["empirical_risk"] < facts["certificate"] < 0.2 < facts["trivial"] < 0.7
    assert facts["vacuous"] is False
    entropy = call_json("certify", *classes, "--loss", "cross-entropy", "--clip", 3)
    assert entropy["clip"] == 3
    assert entropy["certificate"] < entropy["trivial"] == pytest.approx(np.log(3), abs=0.01)
    assert "over 3 classes" in " ".join(call("certify", *classes, "--loss", "error").stdout.split())
    own = call_json("certify", *classes, "--loss", "m.py:distance")
    assert (own["classes"], own["trivial"]) == (None, 1.0)  # of a loss of the user's only the clip is known
    assert own["certificate"] < 0.4


def test_labels_that_are_no_classes(refused, directory, classes):
    np.savez(directory / "d.npz", x=np.zeros((9, 4)), y=np.arange(9))
    assert "label 3 in example 3 for a model with 3 classes" in refused("certify", *classes, "--loss", "error")
