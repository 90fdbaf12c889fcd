"""Models that genscope wrote, read as checkpoints."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from genscope.checkpoints import layer_norms, open_model
from genscope.constructions import SparseFunction, construct, head_norms
from genscope.models import BitClassifier, BitTransformer
from genscope.models.file import save
from genscope.models.scalar_attention import ScalarAttention
from tests.cli.program import invoke


@pytest.mark.parametrize("encoding", ["positional", "bag", "random"])
def test_a_construction_has_the_norms_that_it_prints(tmp_path, encoding):
    function = SparseFunction.parse("x0&~x1|x3", context_length=5)
    built = construct(function, encoding=encoding, dimension=60 if encoding == "random" else None, key=jr.key(0))
    save(built.model, tmp_path / "model.safetensors")
    model = open_model(tmp_path / "model.safetensors")
    asked, found = head_norms(built.model), layer_norms(model.heads(0))
    assert (model.layers, model.context_length(), model.score_scale(0), model.doubts()) == (1, 5, 1.0, ())
    assert model.input_norm(0) == pytest.approx(asked["input_norm"])
    assert found.value.two_one[0] == pytest.approx(asked["value_21"])
    assert found.value.spectral[0] == pytest.approx(asked["value_spectral"])
    assert found.query_key.two_one_transposed[0] == pytest.approx(asked["query_key_21"])


def test_the_classifier_scores_as_its_heads_say(tmp_path):
    made = BitClassifier(4, dim=8, heads=2, key=jr.key(0))
    made = jax.tree.map(lambda w: w + 0.1 if eqx.is_inexact_array(w) else w, made)
    made = eqx.tree_at(lambda m: (m.b_query, m.b_value), made, (jnp.zeros(8), jnp.zeros(8)))
    save(made, tmp_path / "model.safetensors")
    model = open_model(tmp_path / "model.safetensors")
    heads = model.heads(0)
    assert heads.query.shape == (2, 8, 4)
    rng = np.random.default_rng(0)
    z, x = rng.normal(size=(2, 8))
    scores = [float(z @ q @ k.T @ x) * model.score_scale(0) for q, k in zip(heads.query, heads.key, strict=True)]
    whole = (z @ np.asarray(made.w_query)).reshape(2, 4), (x @ np.asarray(made.w_key)).reshape(2, 4)
    np.testing.assert_allclose(scores, np.einsum("hk,hk->h", *whole) / math.sqrt(4), rtol=1e-5)
    token = made.token[1] + made.position[2]
    from genscope.models.bit_classifier import layer_norm

    normed = layer_norm(token, made.gain_attention, made.bias_attention)
    assert float(jnp.linalg.norm(normed)) <= model.input_norm(0)


def test_two_layers_of_which_the_second_has_unknown_tokens(tmp_path):
    made = BitTransformer(4, embedding=3, hidden=5, key=jr.key(0))
    save(made, tmp_path / "model.safetensors")
    model = open_model(tmp_path / "model.safetensors")
    assert model.layers == 2
    assert model.score_scale(1) == pytest.approx(made.scale)
    assert model.input_norm(1) is None
    assert model.input_norm(0) == pytest.approx(math.sqrt(1 + float((made.bit**2).sum(axis=1).max())))
    np.testing.assert_array_equal(model.heads(1).value[0], made.second.w_value)
    told = invoke("checkpoint", tmp_path / "model.safetensors")
    assert told.exit_code == 0
    assert "genscope's BitTransformer, 2 layers of 1 head" in told.stdout


def test_other_classes_are_refused(tmp_path):
    save(ScalarAttention(4, hidden=3, key=jr.key(0)), tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match="genscope probe or genscope sharpness instead"):
        open_model(tmp_path / "model.safetensors")
