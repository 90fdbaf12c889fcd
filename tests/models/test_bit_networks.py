"""Perceptron, recurrent networks and encoder over bits, against networks written down by hand."""

import equinox as eqx
import jax
import jax.random as jr
import numpy as np
import pytest

from genscope.models import BitEncoder, BitPerceptron, BitRecurrent
from genscope.models.token_recurrent import KINDS
from genscope.precision import float64
from tests.reference import bit_networks

T = 5
INPUTS = np.random.default_rng(3).random((4, T)) < 0.5


def shaken(model):
    """With weights of which none is 0, so that no bias hides."""
    return jax.tree.map(lambda w: w + 0.1 if eqx.is_inexact_array(w) else w, model)


@pytest.mark.parametrize("hidden", [(), (6,), (7, 3)])
def test_a_perceptron_is_the_one_written_by_hand(hidden):
    with float64():
        model = shaken(BitPerceptron(T, hidden=hidden, key=jr.key(0)))
        found = jax.vmap(model)(INPUTS)
    weights = [np.asarray(w) for w in model.weights], [np.asarray(b) for b in model.biases]
    expected = [bit_networks.perceptron(*weights, np.asarray(model.w_read), float(model.b_read), x) for x in INPUTS]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_a_recurrent_network_is_the_one_written_by_hand(kind):
    with float64():
        model = shaken(BitRecurrent(T, kind=kind, units=3, embedding=2, key=jr.key(0)))
        found = jax.vmap(model)(INPUTS)
    d = model.direction
    arrays = [np.asarray(w) for w in (model.position, d.w_in, d.b_in, d.w_state, d.b_state, model.w_read)]
    expected = [bit_networks.recurrent(kind, arrays, float(model.b_read), x) for x in INPUTS]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize(("layers", "heads"), [(1, 2), (3, 1)])
def test_an_encoder_is_the_one_written_by_hand(layers, heads):
    with float64():
        model = shaken(BitEncoder(T, layers=layers, heads=heads, dim=4, key=jr.key(0)))
        found = jax.vmap(model)(INPUTS)
    np.testing.assert_allclose(found, [bit_networks.encoder(model, x) for x in INPUTS], rtol=1e-10)


def test_initial_gates_are_those_that_are_customary():
    lstm = BitRecurrent(T, kind="lstm", units=3, key=jr.key(0))
    np.testing.assert_array_equal(lstm.direction.b_in[3:6], 1)
    rnn = BitRecurrent(T, kind="rnn", units=3, key=jr.key(0))
    np.testing.assert_array_equal(rnn.direction.w_state, np.eye(3))


@pytest.mark.parametrize(
    ("make", "advice"),
    [
        (lambda: BitPerceptron(0, key=jr.key(0)), "no layers for a linear model"),
        (lambda: BitPerceptron(3, hidden=(0,), key=jr.key(0)), "no layers for a linear model"),
        (lambda: BitRecurrent(3, kind="transformer", key=jr.key(0)), "one of rnn, gru, lstm"),
        (lambda: BitEncoder(3, heads=3, dim=4, key=jr.key(0)), "a multiple of the number of heads"),
    ],
)
def test_sizes_that_cannot_be_are_refused(make, advice):
    with pytest.raises(ValueError, match=advice):
        make()
