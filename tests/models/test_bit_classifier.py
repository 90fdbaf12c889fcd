import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from genscope.models.bit_classifier import MINGPT, TUNED, BitClassifier
from genscope.models.bit_classifier_fast import RANGE, indicators, mix_by_example, quotients, sum_rows, table
from genscope.random import biased_bits, stream
from tests.chance import assert_mean
from tests.reference.bit_classifier import forward

KEY = jr.key(7)
DIM, HEADS, LENGTH, SIZE = 16, 4, 13, 24


@eqx.filter_jit
def scrambled(key):
    """A model all of whose weights (biases and gains too) are random, so that no term can hide at zero."""
    model = BitClassifier(LENGTH, dim=DIM, heads=HEADS, key=key)
    leaves, tree = jax.tree.flatten(model)
    drawn = [0.5 * jr.normal(stream(key, f"leaf {i}"), leaf.shape) for i, leaf in enumerate(leaves)]
    return jax.tree.unflatten(tree, drawn)


@eqx.filter_jit
def sharpened(model, span):
    """The model with its scores stretched until the limits of the widest head are `span` apart."""
    top, floor = table(model).limits()
    return eqx.tree_at(lambda m: m.w_key, model, model.w_key * (span / (top - floor).max()))


@eqx.filter_jit
def tabulated(model):
    """The table, the limits of its scores, and whether they are narrow."""
    made = table(model)
    return made, made.limits(), made.narrow()


def test_limits_hold_for_every_example(bits):
    made, (top, floor), _ = tabulated(scrambled(KEY))
    scores = np.where(bits[..., None], made.scores[1], made.scores[0])
    largest = np.maximum(scores.max(axis=1), made.cls_scores)
    assert (np.asarray(floor) <= largest).all()
    assert (largest <= np.asarray(top)).all()


@pytest.fixture(scope="module")
def bits():
    return biased_bits(stream(KEY, "bits"), (SIZE, LENGTH), 0.7)


@eqx.filter_jit
def plain(model, bits):
    return jax.vmap(model)(bits)


@eqx.filter_jit
def fast(model, bits):
    return model.outputs(bits)


@eqx.filter_jit
def gradients(model, bits, logits):
    return jax.grad(lambda model: jnp.sum(jnp.sin(logits(model, bits))))(model)


@pytest.mark.parametrize("span", [5.0, 75.0, 85.0, 3000.0])
def test_shortcut_equals_plain_form_in_value_and_gradient(bits, span):
    model = sharpened(scrambled(KEY), jnp.float32(span))
    assert tabulated(model)[2] == (span < RANGE)
    np.testing.assert_allclose(fast(model, bits), plain(model, bits), atol=1e-5)
    by_plain, by_fast = gradients(model, bits, plain), gradients(model, bits, fast)
    for expected, found in zip(jax.tree.leaves(by_plain), jax.tree.leaves(by_fast), strict=True):
        assert np.isfinite(found).all()
        np.testing.assert_allclose(found, expected, atol=1e-4 * (1e-3 + float(np.abs(expected).max())))


def test_the_two_stable_forms_agree_where_both_are_safe(bits):
    @eqx.filter_jit
    def both(table, x):
        return quotients(sum_rows(table, x), HEADS), mix_by_example(table, x)

    np.testing.assert_allclose(*both(tabulated(scrambled(KEY))[0], indicators(bits)), atol=1e-5)


def test_a_planted_error_in_the_table_is_seen(bits):
    model = scrambled(KEY)
    wrong = eqx.tree_at(lambda m: m.gain_attention, model, model.gain_attention * 1.01)
    assert np.abs(fast(wrong, bits) - plain(model, bits)).max() > 1e-4


def test_plain_form_equals_numpy_twin(bits):
    model = scrambled(KEY)
    weights = {name: np.asarray(value, np.float64) for name, value in vars(model).items() if name != "heads"}
    expected = [forward(weights, HEADS, row) for row in np.asarray(bits)]
    np.testing.assert_allclose(plain(model, bits), [logit for logit, _ in expected], atol=1e-5)
    attention = jax.vmap(lambda row: model.activations(row).attention)(bits)
    np.testing.assert_allclose(attention, [weights for _, weights in expected], atol=1e-6)


def test_one_bit_of_context():
    model = BitClassifier(1, dim=8, heads=2, key=KEY)
    bits = jnp.array([[False], [True]])
    np.testing.assert_allclose(fast(model, bits), plain(model, bits), atol=1e-6)


def test_presets_set_the_scales_they_name():
    for preset in (MINGPT, TUNED):
        model = BitClassifier(2000, initialisation=preset, key=KEY)
        scales = {"position": preset.embedding, "w_query": preset.query_key, "w_up": preset.other}
        for name, scale in scales.items():
            weights = np.asarray(getattr(model, name), float).ravel() / scale
            assert_mean(weights, 0, planted=0.25)
            assert_mean(weights**2, 1, planted=1.4)
        assert not model.b_up.any()
        assert (model.gain_final == 1).all()


def test_streams_of_the_initialisation_are_independent_of_the_context_length():
    short, long = BitClassifier(5, key=KEY), BitClassifier(9, key=KEY)
    np.testing.assert_array_equal(short.w_up, long.w_up)
    assert not (short.w_query == short.w_key).any()


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [({"context_length": 0}, "Give 1 or more"), ({"context_length": 3, "dim": 10}, "multiple of the number of heads")],
)
def test_impossible_sizes_are_refused(arguments, advice):
    with pytest.raises(ValueError, match=advice):
        BitClassifier(**arguments, key=KEY)
