"""The networks of the theory against NumPy twins, by hand, and in their edge cases."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest

from genscope.models.mousavi2025 import (
    Affine,
    BidirectionalRNN,
    TokenTransformer,
    TwoLayer,
    project,
)
from genscope.precision import float64
from tests.reference import mousavi2025 as twin

jitted = eqx.filter_jit(lambda function, *args: function(*args))
N, D, H, M, S = 5, 4, 2, 3, 3


@pytest.fixture(autouse=True)
def in_float64():
    with float64():
        yield


def normal(*shape, seed=0):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape))


def agree(value, expected):
    np.testing.assert_allclose(value, expected, rtol=0, atol=1e-12)


def readout(inputs, offset=None):
    return TwoLayer(normal(M, inputs, seed=1), normal(M, seed=2), normal(M, seed=3), offset)


def arrays(layer):
    return np.asarray(layer.weight), np.asarray(layer.bias), np.asarray(layer.outer)


def test_transformer_agrees_with_the_twin():
    z, model = normal(N, D), TokenTransformer(normal(H, D, D, seed=4), readout(H * D))
    agree(jitted(model, z), twin.full_transformer(np.asarray(z), np.asarray(model.w_qk), arrays(model.readout)))


def test_scores_have_the_query_on_the_left_and_no_root():
    # W sends a key (a, b) to its first entry: query (0, 1) scores keys by b only through W = e2 e1^T
    w = jnp.zeros((1, 2, 2)).at[0, 1, 0].set(3.0)
    model = TokenTransformer(w, TwoLayer(jnp.eye(2), jnp.zeros(2), jnp.ones(2)))
    attention = model.activations(jnp.array([[1.0, 0.0], [0.0, 1.0]])).attention[0]
    agree(attention[0], [0.5, 0.5])  # <e1, W z> = 0
    agree(attention[1], [np.exp(3) / (1 + np.exp(3)), 1 / (1 + np.exp(3))])


def test_padding_is_not_seen():
    z, model = normal(N, D), TokenTransformer(normal(H, D, D, seed=4), readout(H * D))
    padded = jnp.concatenate([z, normal(2, D, seed=9)])
    real = jnp.arange(N + 2) < N
    agree(model(padded, real)[:N], model(z))
    agree(model.activations(padded, real).attention[..., N:], np.zeros((H, N + 2, 2)))


def test_an_output_bias_is_added_once():
    z = normal(N, D)
    without, with_one = (
        TokenTransformer(normal(H, D, D), readout(H * D, offset)) for offset in (None, jnp.asarray(0.7))
    )
    agree(with_one(z) - without(z), np.full(N, 0.7))


def net(sizes, seed):
    layers = [
        Affine(0.5 * normal(out, inn, seed=seed + i), normal(out, seed=seed + 50 + i))
        for i, (inn, out) in enumerate(itertools.pairwise(sizes[:-1]))
    ]
    return (*layers, Affine(0.5 * normal(sizes[-1], sizes[-2], seed=seed + 99)))


def recurrent(radius=1.5):
    forward, backward = net([S + D, 6, 5, S], 10), net([S + D, 4, S], 20)
    return BidirectionalRNN(forward, backward, net([2 * S + D, 7, 1], 30), radius)


@pytest.mark.parametrize("radius", [0.3, 1.5, 100.0])
def test_recurrent_network_agrees_with_the_twin(radius):
    z, model = normal(N, D), recurrent(radius)
    forward, backward, output = [
        [(np.asarray(a.weight), None if a.bias is None else np.asarray(a.bias)) for a in part]
        for part in (model.forward, model.backward, model.output)
    ]
    agree(jitted(model, z), twin.theory_rnn(np.asarray(z), forward, backward, output, radius))


def test_states_exclude_their_token_and_stay_in_the_ball():
    z, model = 3 * normal(N, D), recurrent(0.5)
    states = model.activations(z)
    agree(states.forward[0], np.zeros(S))
    agree(states.backward[-1], np.zeros(S))
    for part in (states.forward, states.backward):
        assert np.all(np.linalg.norm(part, axis=1) <= 0.5 + 1e-12)
    moved = model.activations(z.at[2].set(normal(D, seed=8)))
    agree(moved.forward[:3], states.forward[:3])
    agree(moved.backward[2:], states.backward[2:])
    assert np.abs(moved.forward[3] - states.forward[3]).max() > 1e-6


def test_projection_has_a_gradient_at_zero():
    agree(jax.jacobian(lambda h: project(h, 2.0))(jnp.zeros(3)), np.eye(3))
    agree(project(jnp.array([3.0, 4.0]), 2.0), [1.2, 1.6])


def test_one_token():
    z = normal(1, D)
    model = TokenTransformer(normal(H, D, D), readout(H * D))
    agree(model(z)[0], model.readout(jnp.tile(z[0], H)))
    assert recurrent()(z).shape == (1,)


@pytest.mark.parametrize(
    "build",
    [
        lambda: TwoLayer(normal(3, 2), normal(2), normal(3)),
        lambda: TokenTransformer(normal(2, 3, 4), readout(6)),
        lambda: TokenTransformer(normal(2, 3, 3), readout(7)),
        lambda: BidirectionalRNN(net([7, 3], 0), net([6, 3], 0), net([10, 1], 0), 1.0),
        lambda: BidirectionalRNN(net([7, 3], 0), net([7, 3], 0), net([10, 2], 0), 1.0),
        lambda: BidirectionalRNN(net([7, 3], 0), net([7, 3], 0), net([10, 1], 0), 0.0),
    ],
)
def test_misfits_are_refused_with_advice(build):
    # under the tests' type checker some shapes are refused before our own message
    with pytest.raises((ValueError, jaxtyping.TypeCheckError), match=r"agree|Give every hidden unit|Type-check"):
        build()
