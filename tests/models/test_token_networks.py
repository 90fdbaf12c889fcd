"""The trained networks of token regression: twins, gradients, padding, initial laws."""

import dataclasses

import equinox as eqx
import jax
import jax.flatten_util
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from genscope.models import _drawing
from genscope.models.mousavi2025 import TokenTransformer
from genscope.models.token_attention import ProjectedTokenTransformer, ScaledTokenTransformer, draw_full
from genscope.models.token_feedforward import TokenFeedForward
from genscope.models.token_recurrent import KINDS, TokenRecurrent
from genscope.precision import float64
from tests.reference import mousavi2025 as twin

KEY = jr.key(3)
B, N, D = 3, 5, 6


def normal(*shape, seed=0):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape))


def shaken(model, seed=1):
    """Biases that start at 0 would hide a mistake."""
    rng = np.random.default_rng(seed)

    def shake(leaf):  # by NumPy: JAX would compile a sum for every shape
        return jnp.asarray(np.asarray(leaf) + 0.1 * rng.normal(size=leaf.shape).astype(leaf.dtype))

    return jax.tree.map(lambda leaf: shake(leaf) if eqx.is_inexact_array(leaf) else leaf, model)


def agree(value, expected, tolerance=1e-11):
    np.testing.assert_allclose(value, expected, rtol=0, atol=tolerance)


def plain_readout(layer):
    return [np.asarray(part) for part in (layer.weight, layer.bias, layer.outer, layer.offset)]


@pytest.mark.parametrize("heads", [1, 3])
def test_scaled_attention_agrees_with_the_twin(heads):
    with float64():
        model = shaken(ScaledTokenTransformer.draw(KEY, dim=D, heads=heads, hidden=7))
        z = normal(B, N, D)
        expected = [
            twin.scaled_transformer(
                np.asarray(one),
                *(np.asarray(part) for part in (model.w_in, model.b_in, model.w_out, model.b_out)),
                readout=plain_readout(model.readout),
            )
            for one in z
        ]
        plain, fast = eqx.filter_jit(lambda m: (jax.vmap(m)(z), m.outputs(z)))(model)
        agree(plain, expected)
        agree(fast, expected)


@pytest.mark.parametrize(("heads", "bias"), [(1, False), (3, True)])
def test_projected_attention_agrees_with_the_twin(heads, bias):
    with float64():
        model = shaken(ProjectedTokenTransformer.draw(KEY, dim=D, heads=heads, hidden=7, output_bias=bias))
        z = normal(B, N, D)
        readout = [model.readout.weight, model.readout.bias, model.readout.outer]
        readout += [model.readout.offset] if bias else []
        expected = [
            twin.projected_transformer(np.asarray(one), np.asarray(model.w_in), [np.asarray(part) for part in readout])
            for one in z
        ]
        plain, fast = eqx.filter_jit(lambda m: (jax.vmap(m)(z), m.outputs(z)))(model)
        agree(plain, expected)
        agree(fast, expected)


def test_separate_projections_are_the_theorys_network_of_their_product():
    with float64():
        model, z = shaken(ProjectedTokenTransformer.draw(KEY, dim=D, heads=2, hidden=7)), normal(N, D)
        read = model.readout.weight.reshape(7, 2, D)
        weight = jnp.einsum("mhe,hed->mhd", read, model.w_in[:, 2]).reshape(7, 2 * D)
        full = TokenTransformer(model.query_key(), dataclasses.replace(model.readout, weight=weight))
        agree(model(z), full(z))


@pytest.mark.parametrize("heads", [1, 2])
def test_the_shortcut_has_the_gradient_of_the_definition(heads):
    with float64():
        model, z = shaken(ScaledTokenTransformer.draw(KEY, dim=D, heads=heads, hidden=7)), normal(B, N, D)
        trained, fixed = eqx.partition(model, eqx.is_inexact_array)
        target = normal(B, N, seed=5)

        def gradient(outputs):
            return jax.jit(jax.grad(lambda p: jnp.sum((outputs(eqx.combine(p, fixed)) - target) ** 2)))(trained)

        short, long = gradient(lambda m: m.outputs(z)), gradient(lambda m: jax.vmap(m)(z))
        for a, b in zip(jax.tree.leaves(short), jax.tree.leaves(long), strict=True):
            agree(a, b, 1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("include_token", [True, False])
def test_recurrent_networks_agree_with_the_twins(kind, include_token):
    with float64():
        model = shaken(TokenRecurrent.draw(KEY, kind=kind, dim=D, units=4, hidden=7, include_token=include_token))
        z = normal(B, N, D)
        weights = [
            [np.asarray(part) for part in (way.w_in, way.b_in, way.w_state, way.b_state)]
            for way in (model.forward, model.backward)
        ]
        outputs, plain = eqx.filter_jit(lambda m: (m.outputs(z), jax.vmap(m)(z)))(model)
        for one, output in zip(np.asarray(z), outputs, strict=True):
            left, right = twin.both_directions(kind, one, *weights)
            if include_token:
                expected = np.concatenate([left, right], axis=1) @ np.asarray(model.readout) + float(model.offset)
            else:
                nothing = np.zeros((1, 4))
                left, right = np.concatenate([nothing, left[:-1]]), np.concatenate([right[1:], nothing])
                rows = np.concatenate([left, right, one], axis=1)
                expected = [twin.two_layer(row, *plain_readout(model.readout)) for row in rows]
            agree(output, expected)
        agree(plain, outputs)


@pytest.mark.parametrize("kind", KINDS)
def test_recurrent_gradients_are_those_of_finite_differences(kind):
    with float64():
        model, z = shaken(TokenRecurrent.draw(KEY, kind=kind, dim=D, units=3)), normal(B, N, D)
        target = normal(B, N, seed=5)
        flat, back = jax.flatten_util.ravel_pytree(model)

        @jax.jit
        def loss(flat):
            return jnp.sum((back(flat).outputs(z) - target) ** 2)

        gradient = jax.grad(loss)(flat)
        for direction in np.random.default_rng(0).normal(size=(6, len(flat))):
            step = 1e-6 * jnp.asarray(direction)
            agree(jnp.vdot(gradient, direction), (loss(flat + step) - loss(flat - step)) / 2e-6, 1e-5)


def test_feedforward_network_by_hand():
    model = TokenFeedForward.draw(KEY, context_length=N, dim=D, first=7, second=8)
    z = normal(B, N, D)
    x = np.asarray(z).reshape(B, -1)
    for layer in model.layers[:-1]:
        x = np.maximum(x @ np.asarray(layer.weight).T + np.asarray(layer.bias), 0)
    expected = x @ np.asarray(model.layers[-1].weight).T + np.asarray(model.layers[-1].bias)
    agree(model.outputs(z), expected, 1e-5)
    agree(model(z[0]), expected[0], 1e-5)


USED = jnp.array([1, 1, 0, 1, 1, 0, 1, 0], bool)  # an embedding of five entries among eight
REAL = jnp.arange(7) < 4


def cut_out(array, *kept):
    """The entries kept along the last axes, by NumPy: JAX would compile every selection."""
    for axis, places in enumerate(reversed(kept), start=1):
        array = np.take(np.asarray(array), places, axis=-axis)
    return jnp.asarray(array)


def smaller(model, used, real, units):
    """The network that a padded one stands for, cut out by hand."""
    u, r, k = (np.flatnonzero(np.asarray(part)) for part in (used, real, units))
    if isinstance(model, ScaledTokenTransformer | ProjectedTokenTransformer):
        columns = np.concatenate([head * len(used) + u for head in range(len(model.w_in))])
        readout = dataclasses.replace(model.readout, weight=cut_out(model.readout.weight, columns))
        if isinstance(model, ProjectedTokenTransformer):
            return ProjectedTokenTransformer(cut_out(model.w_in, u, u), readout)
        weights = cut_out(model.w_in, u, u), cut_out(model.b_in, u), cut_out(model.w_out, u, u), cut_out(model.b_out, u)
        return ScaledTokenTransformer(*weights, readout, model.width)
    inputs = np.concatenate([i * len(used) + u for i in r])
    first, second, third = model.layers
    return TokenFeedForward(
        (
            dataclasses.replace(first, weight=cut_out(first.weight, k, inputs), bias=cut_out(first.bias, k)),
            dataclasses.replace(second, weight=cut_out(second.weight, k)),
            dataclasses.replace(third, weight=cut_out(third.weight, r, np.arange(6)), bias=cut_out(third.bias, r)),
        )
    )


UNITS = jnp.arange(9) < 6
predicted = eqx.filter_jit(lambda model, z: model.outputs(z))
PADDED = {
    "transformer": lambda: ScaledTokenTransformer.draw(KEY, dim=8, heads=2, hidden=6, used=USED),
    "projected": lambda: ProjectedTokenTransformer.draw(KEY, dim=8, heads=2, hidden=6, used=USED),
    "ffn": lambda: TokenFeedForward.draw(
        KEY, context_length=7, dim=8, first=9, second=6, used=USED, real=REAL, units=UNITS
    ),
}


@eqx.filter_jit
def stepped(model, z, y):
    """Predictions, and the model after a step along the gradient."""
    trained, fixed = eqx.partition(model, eqx.is_inexact_array)

    def loss(trained):
        output = eqx.combine(trained, fixed).outputs(z, REAL)
        return jnp.mean(jnp.where(REAL[None], (output - y) ** 2, 0)), output

    gradient, output = jax.grad(loss, has_aux=True)(trained)
    return output, eqx.combine(jax.tree.map(lambda p, g: p - 0.1 * g, trained, gradient), fixed)


@pytest.mark.parametrize("name", PADDED)
def test_a_padded_network_is_the_smaller_one_and_stays_it(name):
    """Predictions agree before and after a step along the gradient, and padding stays exactly 0."""
    model = PADDED[name]()
    z = jnp.where(jnp.outer(REAL, USED), jr.normal(jr.key(1), (B, 7, 8)), 0)
    cut = z[:, :4][..., np.flatnonzero(np.asarray(USED))]
    y = jr.normal(jr.key(2), (B, 7))
    for _ in range(2):
        small = smaller(model, USED, REAL, UNITS)
        output, model = stepped(model, z, y)
        agree(output[:, :4], predicted(small, cut), 1e-5)
    used, after = (
        sum(np.count_nonzero(leaf) for leaf in jax.tree.leaves(eqx.filter(one, eqx.is_inexact_array)))
        for one in (PADDED[name](), model)
    )
    biases = 0 if name != "transformer" else 2 * (3 * 5 + 5)  # start at 0 and learn
    assert after <= used + biases


@pytest.mark.parametrize("seed", [0, 1])
def test_initial_weights_fill_their_ranges(seed):
    model = ScaledTokenTransformer.draw(jr.key(seed), dim=40, heads=1)
    # 1,600 and more uniform numbers: the largest is within 1 % of the bound with probability 1 - 1e-7
    assert 0.99 < float(jnp.max(jnp.abs(model.w_in))) / np.sqrt(6 / 160) <= 1
    assert 0.99 < float(jnp.max(jnp.abs(model.w_out))) * np.sqrt(40) <= 1
    assert 0.99 < float(jnp.max(jnp.abs(model.readout.weight))) * np.sqrt(40) <= 1
    assert not np.any(model.b_in)
    assert int(model.width) == 40
    gru = TokenRecurrent.draw(jr.key(seed), kind="gru", dim=7, units=50)
    for way in (gru.forward, gru.backward):
        assert 0.99 < float(jnp.max(jnp.abs(way.w_state))) * np.sqrt(50) <= 1
    assert np.abs(gru.forward.w_state - gru.backward.w_state).max() > 0.01


def test_published_sizes():
    assert TokenRecurrent.draw(KEY, kind="gru", dim=34).forward.w_state.shape == (1500, 500)
    assert ScaledTokenTransformer.draw(KEY, dim=34).readout.weight.shape == (100, 34)
    assert draw_full(KEY, dim=34, heads=2).w_qk.shape == (2, 34, 34)


def test_one_draw_is_split_into_independent_parts():
    parts = _drawing.uniforms(KEY, a=(3, 4), b=(), c=(5,))
    assert [part.shape for part in parts.values()] == [(3, 4), (), (5,)]
    assert len(np.unique(np.concatenate([np.ravel(part) for part in parts.values()]))) == 18


@pytest.mark.parametrize(
    "build",
    [
        lambda: ScaledTokenTransformer.draw(KEY, dim=0),
        lambda: ProjectedTokenTransformer.draw(KEY, dim=3, hidden=0),
        lambda: draw_full(KEY, dim=3, heads=0),
        lambda: TokenFeedForward.draw(KEY, context_length=0, dim=3, first=4),
        lambda: TokenRecurrent.draw(KEY, kind="elman", dim=3),
    ],
)
def test_impossible_sizes_are_refused(build):
    with pytest.raises(ValueError, match=r"at least 1"):
        build()
