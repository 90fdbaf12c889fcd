import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from genscope.fourier import points
from genscope.models import file, scalar_attention_fast
from genscope.models.scalar_attention import ScalarAttention
from genscope.random import stream
from tests.reference.scalar_attention import forward

LENGTH = 5
BITS = points(LENGTH)


def scrambled(sharpness: float, positional: bool, factored: bool = False) -> ScalarAttention:
    """A model all of whose weights are random, so that no term can hide at zero."""
    key = jr.key(3)
    model = ScalarAttention(LENGTH, hidden=7, positional=positional, factored=factored, key=key)
    leaves, tree = jax.tree.flatten(model)
    drawn = [jr.normal(stream(key, f"leaf {i}"), (leaf.size,)).reshape(leaf.shape) for i, leaf in enumerate(leaves)]
    return eqx.tree_at(lambda m: m.score, jax.tree.unflatten(tree, drawn), replace_fn=lambda w: sharpness * w)


@eqx.filter_jit
def both_forms(model):
    """Activations, and value and gradient by the plain form and by the shortcut."""
    bits = jnp.asarray(BITS)

    def summed(predict):
        return jax.value_and_grad(lambda m: jnp.sum(jnp.sin(predict(m))))(model)

    return jax.vmap(model.activations)(bits), summed(lambda m: jax.vmap(m)(bits)), summed(lambda m: m.outputs(bits))


@pytest.mark.parametrize(
    ("sharpness", "positional", "factored"),
    [(1.0, False, False), (1.0, True, False), (20.0, False, False), (1.0, False, True), (1.0, True, True)],
)
def test_both_forms_are_the_definition(sharpness, positional, factored):
    model = scrambled(sharpness, positional, factored)
    found = [forward(model, x) for x in BITS.astype(float)]
    activations, (value, gradient), (shortcut, short_gradient) = both_forms(model)
    np.testing.assert_allclose(activations.attention, [attention for attention, _ in found], atol=2e-5)
    np.testing.assert_allclose(activations.output, [output for _, output in found], atol=2e-4)
    assert float(shortcut) == pytest.approx(float(value), abs=1e-4)
    for one, other in zip(jax.tree.leaves(gradient), jax.tree.leaves(short_gradient), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-3, atol=2e-3)
    if positional:  # then the attention is the same for all inputs
        assert np.ptp(np.asarray(activations.attention), axis=0).max() < 1e-6


@pytest.mark.parametrize("together", [2, 11])
def test_the_truth_table_is_the_outputs_of_all_inputs(together, monkeypatch):
    monkeypatch.setattr(scalar_attention_fast, "_TOGETHER", together)
    model = scrambled(1.0, positional=False)
    found = eqx.filter_jit(scalar_attention_fast.truth_table)(model)
    np.testing.assert_allclose(found, model.outputs(jnp.asarray(BITS)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("factored", "parameters"), [(True, 1021), (False, 580)])
def test_has_as_many_parameters_as_it_says(factored, parameters, tmp_path):
    """Just over 1,000 in the paper: 21² twice (once without factors), 21, 97 and 21."""
    model = ScalarAttention(20, factored=factored, key=jr.key(0))
    scores = 21**2 * (2 if factored else 1)
    assert sum(leaf.size for leaf in jax.tree.leaves(model)) == scores + 21 + 3 * 32 + 1 + 20 + 1 == parameters
    file.save(model, tmp_path / "model.safetensors")
    assert eqx.tree_equal(file.load(tmp_path / "model.safetensors"), model)


@pytest.mark.parametrize("factored", [True, False])
def test_initial_scores_have_the_scale_asked_for(factored):
    """Of 3,721 entries; a product's are uncorrelated, with fourth moments near 3, so 5 standard errors are 6 %."""
    for scale in (1.0, 0.1):
        score = ScalarAttention(60, factored=factored, scale=scale, key=jr.key(5)).effective_score()
        assert float(jnp.std(score)) == pytest.approx(scale, rel=0.06)


def test_refuses_other_shapes():
    with pytest.raises(ValueError, match="change the context length"):
        ScalarAttention(4, key=jr.key(0))(jnp.zeros(5, bool))
    with pytest.raises(ValueError, match="change the context length"):
        ScalarAttention(4, key=jr.key(0)).outputs(jnp.zeros((2, 5), bool))
    with pytest.raises(ValueError, match="must be at least 1"):
        ScalarAttention(0, key=jr.key(0))
    with pytest.raises(ValueError, match="The usual value is 1"):
        ScalarAttention(4, scale=0.0, key=jr.key(0))
