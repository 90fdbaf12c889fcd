import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from genscope.models.bit_transformer import BitTransformer
from genscope.precision import float64
from genscope.random import biased_bits, stream
from tests.reference.bit_transformer import forward

KEY = jr.key(7)
LENGTH, EMBEDDING, HIDDEN, SIZE = 6, 3, 8, 24
CYCLIC = (0, 1, 2, 0, 1, 2, 0)


def scrambled(sharpness=1.0):
    """A model all of whose weights (biases too) are random, so that no term can hide at zero."""
    model = BitTransformer(LENGTH, embedding=EMBEDDING, hidden=HIDDEN, position_ids=CYCLIC, key=KEY)
    leaves, tree = jax.tree.flatten(model)
    drawn = [0.5 * jr.normal(stream(KEY, f"leaf {i}"), leaf.shape) for i, leaf in enumerate(leaves)]
    return eqx.tree_at(
        lambda m: (m.first.w_key, m.second.w_key), jax.tree.unflatten(tree, drawn), replace_fn=lambda w: sharpness * w
    )


def exactly(model):
    """The model in float64."""
    return jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf, float)), model)


@pytest.fixture(scope="module")
def bits():
    return biased_bits(stream(KEY, "bits"), (SIZE, LENGTH), 0.5)


@pytest.fixture(scope="module")
def read():
    return jnp.asarray(np.arange(SIZE) % (LENGTH + 1))


def plain(model, bits, read):
    found = jax.vmap(model.activations)(bits, read)
    return found.output, found


def fast(model, bits, read):
    return model.outputs(bits, read), None


@eqx.filter_jit
def value_and_gradient(form, model, bits, read):
    """Gradient of a function of the outputs; outputs and activations."""

    def objective(model):
        outputs, activations = form(model, bits, read)
        return jnp.sum(jnp.sin(outputs)), (outputs, activations)

    return jax.grad(objective, has_aux=True)(model)


@pytest.mark.parametrize("sharpness", [1.0, 1e4])
def test_shortcut_equals_plain_form_in_value_and_gradient(bits, read, sharpness):
    with float64():  # so that scores of 10^5 still have digits behind the point
        model = exactly(scrambled(sharpness))
        by_plain, (expected, _) = value_and_gradient(plain, model, bits, jnp.full_like(read, LENGTH))
        by_fast, (found, _) = value_and_gradient(fast, model, bits, None)
        anywhere = eqx.filter_jit(fast)(model, bits, read)[0]
        expected_anywhere = value_and_gradient(plain, model, bits, read)[1][0]
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    np.testing.assert_allclose(anywhere, expected_anywhere, rtol=1e-9)
    for one, other in zip(jax.tree.leaves(by_plain), jax.tree.leaves(by_fast), strict=True):
        assert np.isfinite(other).all()
        np.testing.assert_allclose(other, one, atol=1e-9 * max(1.0, float(np.abs(one).max())))


def test_a_planted_error_is_seen(bits, read):
    with float64():  # by the programs of the test above
        model = exactly(scrambled())
        wrong = eqx.tree_at(lambda m: m.first.w_value, model, model.first.w_value * 1.01)
        found = eqx.filter_jit(fast)(wrong, bits, read)[0]
        expected = value_and_gradient(plain, model, bits, read)[1][0]
    assert np.abs(found - expected).max() > 1e-3


def weights_of(model):
    leaves = jax.tree_util.tree_leaves_with_path(model)
    return {jax.tree_util.keystr(path)[1:]: np.asarray(leaf, float) for path, leaf in leaves}


def test_plain_form_equals_numpy_twin(bits, read):
    with float64():
        model = exactly(scrambled())
        found = value_and_gradient(plain, model, bits, read)[1][1]
    for row, (x, last) in enumerate(zip(np.asarray(bits), np.asarray(read), strict=True)):
        output, attentions = forward(weights_of(model), CYCLIC, x, last)
        np.testing.assert_allclose(found.output[row], output, rtol=1e-9)
        for attention, expected in zip((found.first[row], found.second[row]), attentions, strict=True):
            np.testing.assert_allclose(np.asarray(attention)[: last + 1, : last + 1], expected, atol=1e-9)
            assert not np.asarray(attention)[:, last + 1 :].any()


def test_size_and_scale_at_the_start():
    model, half = BitTransformer(20, key=KEY), BitTransformer(20, scale=0.5, key=KEY)
    leaves = jax.tree.leaves(model)
    assert sum(leaf.size for leaf in leaves) == 47_390
    squares = [float(jnp.sum(leaf**2)) for leaf in leaves]
    # Of a matrix with n columns: expectation n, variance 2n/fan-in. All together 769, deviation 5.3; six of them.
    assert abs(sum(squares) - (2 * (4 * 51 + 128 + 51) + 1 + 2)) < 6 * 5.3
    for whole, scaled in zip(leaves, jax.tree.leaves(half), strict=True):
        np.testing.assert_allclose(scaled, whole / 2, rtol=1e-6)


def test_one_bit_of_context_as_numbers():
    model = BitTransformer(1, embedding=2, hidden=3, key=KEY)
    assert model.position_ids == (0, 1)
    found = eqx.filter_jit(fast)(model, jnp.asarray([[0.0], [1.0]]), None)[0]
    expected = [forward(weights_of(model), (0, 1), [bit], 1)[0] for bit in (0, 1)]
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert found[0] != found[1]


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        ({"context_length": 0}, "must be at least 1"),
        ({"context_length": 3, "hidden": 0}, "must be at least 1"),
        ({"context_length": 3, "position_ids": (0, 1, 2)}, "leave it out"),
        ({"context_length": 2, "position_ids": (0, 2, 2)}, "without gaps"),
    ],
)
def test_impossible_sizes_are_refused(arguments, advice):
    with pytest.raises(ValueError, match=advice):
        BitTransformer(**arguments, key=KEY)


def test_bits_of_another_length_are_refused(bits):
    model = eqx.filter_eval_shape(BitTransformer, LENGTH + 1, key=KEY)
    for call in (model, model.outputs):
        with pytest.raises(ValueError, match="change the context length"):
            call(bits)
