"""Interpolating networks: they meet their points, within the norm promised, and as often as the lemmas say."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genscope.bounds.recurrent import interpolation_norm
from genscope.constructions.interpolation import (
    interpolate,
    interpolating_rnn,
    interpolation_bound,
    squared_interpolation_norm,
)
from genscope.precision import float64
from genscope.refusal import Refusal
from tests.chance import Seldom
from tests.seeds import seed

ALONG = np.ones(1)


def values(net, x):
    """The network in NumPy."""
    hidden = np.maximum(np.asarray(x, float) @ np.asarray(net.weight).T + np.asarray(net.bias), 0)
    return hidden @ np.asarray(net.outer)


def squared_norm(net):
    return sum(float(np.sum(np.asarray(leaf) ** 2)) for leaf in jax.tree.leaves(net))


def test_two_hundred_normals():
    generator = np.random.default_rng(0)
    z, y = generator.normal(size=(200, 1)), generator.normal(size=200)
    net = interpolate(z, y, direction=ALONG)
    with float64():
        assert np.abs(np.asarray(net(jnp.asarray(z))) - y).max() < 1e-9  # slopes of 10^4, 200 terms, in float64
    assert squared_norm(net) < interpolation_bound(z, y, direction=ALONG) / 20
    assert net.weight.shape == (200, 1)


def test_between_points_it_is_linear_and_before_them_it_is_zero():
    net = interpolate(np.array([[2.0], [0.0], [1.0]]), np.array([5.0, 1.0, -1.0]), direction=ALONG)
    at = np.array([[-2.0], [-1.0], [-0.5], [0.0], [0.5], [1.0], [1.5], [2.0], [3.0]])
    assert values(net, at) == pytest.approx([0, 0, 0.5, 1, 0, -1, 2, 5, 11])


def test_one_point_and_no_height():
    assert values(interpolate(np.array([[3.0]]), np.array([7.0]), direction=ALONG), [[3.0]]) == pytest.approx([7])
    flat = interpolate(np.array([[3.0], [4.0]]), np.zeros(2), direction=ALONG)
    assert values(flat, [[3.0], [4.0]]) == pytest.approx([0, 0])
    assert squared_norm(flat) == 0


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(-50, 50), st.integers(-9, 9)), min_size=1, max_size=12, unique_by=lambda p: p[0]))
def test_any_points(points):
    x, y = np.array(points, float).T
    net = interpolate(x[:, None] / 3, y, direction=ALONG)
    assert values(net, x[:, None] / 3) == pytest.approx(y, abs=1e-9)
    assert squared_norm(net) <= interpolation_bound(x[:, None] / 3, y, direction=ALONG) * (1 + 1e-12)


def test_random_directions_do_as_often_as_the_lemmas_say():
    """Lemmas 36 and 37: in at least a third and a sixth of all draws; a tenth, and a fiftieth, would be found."""
    generator = np.random.default_rng(seed(9))
    trials, n, d = 400, 12, 5
    separated = small = 0
    for _ in range(trials):
        x, u, v = generator.normal(size=(n, d)), generator.normal(size=d), generator.normal(size=d)
        u, v = u / np.linalg.norm(u), v / np.linalg.norm(v)
        z = np.sort(x @ v)
        separated += np.diff(z).min() >= math.sqrt(math.pi) / (3 * n**2) and z @ z <= 3 * n
        y = generator.normal(size=(n, d)) @ u  # labels of other tokens, as hard as any
        small += squared_norm(interpolate(x, y, direction=v)) <= interpolation_norm(n)
    assert Seldom(trials, 2 / 3, planted=0.9).explains(trials - separated)
    assert Seldom(trials, 5 / 6, planted=0.98).explains(trials - small)


@pytest.mark.parametrize(
    ("x", "y", "direction"),
    [
        (np.zeros((0, 1)), np.zeros(0), ALONG),
        (np.zeros((2, 1)), np.zeros(2), ALONG),
        (np.ones((1, 1)), np.zeros(1), 2 * ALONG),
    ],
)
def test_points_that_cannot_be_met_are_refused(x, y, direction):
    with pytest.raises(ValueError, match="Drop repeated points, or choose another direction"):
        interpolate(x, y, direction=direction)


@pytest.mark.parametrize("depth", [2, 3, 5])
def test_the_recurrent_network_of_theorem_7(depth):
    """It has the labels at the positions asked for, in JAX and in NumPy, and the norm that the lemma says."""
    generator = np.random.default_rng(3)
    n, tokens, dim = 12, 5, 7  # the last four coordinates encode positions, which the network does not read
    z, asked = generator.normal(size=(n, tokens, dim)), generator.integers(tokens, size=n)
    y, v = generator.normal(size=n), np.zeros(dim)
    v[:3] = generator.normal(size=3)
    v /= np.linalg.norm(v)
    net = interpolating_rnn(z, asked, y, direction=v, depth=depth, state=4)
    with float64():
        outputs = np.asarray(jax.vmap(net)(jnp.asarray(z)))
    assert outputs[np.arange(n), asked] == pytest.approx(y, abs=1e-9)
    read = np.concatenate([np.zeros((n, tokens, 8)), z], axis=2)  # states stay 0
    *layers, last = net.output
    for layer in layers:
        bias = 0 if layer.bias is None else np.asarray(layer.bias)
        read = np.maximum(read @ np.asarray(layer.weight).T + bias, 0)
    assert (read @ np.asarray(last.weight).T)[..., 0] == pytest.approx(outputs, abs=1e-9)
    shallow = squared_norm(interpolate(z[np.arange(n), asked], y, direction=v))
    assert squared_interpolation_norm(z[np.arange(n), asked], y, direction=v) == pytest.approx(shallow)
    deeper = 0 if depth == 2 else 2 * (depth - 2)
    assert squared_norm(net) == pytest.approx((1 if depth == 2 else math.sqrt(2)) * shallow + deeper)
    assert interpolation_norm(n, depth) / interpolation_norm(n) <= math.sqrt(2) + deeper  # the same law, as a bound


def test_a_recurrent_network_needs_a_hidden_layer_and_a_state():
    z, y = np.ones((1, 2, 1)), np.ones(1)
    for wrong in ({"depth": 1}, {"state": 0}):
        with pytest.raises(Refusal, match="Give at least"):
            interpolating_rnn(z, np.zeros(1, int), y, direction=ALONG, **wrong)
