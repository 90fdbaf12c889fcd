"""Verification against the plain model, brute force, a NumPy twin, and planted faults."""

import dataclasses
import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from genscope import constructions
from genscope.constructions import SparseFunction, verify
from genscope.constructions._attention_sums import Terms, attention_terms, extremes, outputs
from genscope.fourier import points
from genscope.models.edelman2022 import Transformer
from genscope.models.encoding import Positional
from genscope.precision import float64
from tests.reference import edelman2022 as twin

KEY = jr.key(5)
FUNCTION = SparseFunction((4, 0, 2), np.random.default_rng(1).normal(size=8), 6)
BUILDERS = {
    "positional": constructions.any_function,
    "bag": constructions.bag_any_function,
    "random": lambda function: constructions.random_any_function(function, dimension=40, key=KEY),
}


def plain(model, bits):
    with float64():
        return np.asarray(eqx.filter_jit(lambda model, x: jax.vmap(model)(x))(model, jnp.asarray(bits)))


@pytest.mark.parametrize("name", BUILDERS)
def test_sums_give_what_the_model_gives(name):
    model = BUILDERS[name](FUNCTION).model
    terms, cls = attention_terms(model)
    assert outputs(model, terms.all_choices() + cls) == pytest.approx(plain(model, points(6)), abs=1e-12)


@pytest.mark.parametrize("name", BUILDERS)
def test_the_built_weights_compute_the_function_in_a_slow_twin(name):
    """Tokens, scores and sums entry by entry; nothing is shared with the package but the weights."""
    model = BUILDERS[name](FUNCTION).model
    with float64():
        vectors = np.asarray(model.encoding.vectors @ jnp.eye(model.encoding.dim))
    (head,) = model.heads.heads
    weights = [np.asarray(w) for w in (head.w_q, head.w_k, head.w_v, head.w_c)]
    hidden = [(np.asarray(h.weight), None if h.bias is None else np.asarray(h.bias)) for h in model.readout.hidden]
    for bits in itertools.product((0, 1), repeat=6):
        if sum(bits) % 3:  # a third of the inputs is enough for a slow twin
            continue
        if name == "bag":
            tokens, cls = twin.bag(bits, vectors[0], vectors[1:])
        else:
            tokens, cls = twin.positional(bits, vectors[0], vectors[1:3], vectors[3:])
        output = twin.transformer(tokens, cls, [weights], np.asarray(model.readout.w), hidden)
        assert output == pytest.approx(FUNCTION.values[bits[4] + 2 * bits[0] + 4 * bits[2]], abs=1e-12)


def test_extremes_are_those_of_all_choices():
    """Random terms, with ties and with tokens whose weight does not depend on their bit, against 2^9 choices."""
    rng = np.random.default_rng(0)
    for trial in range(50):
        values = rng.normal(size=(2, 9, 3))
        weights = np.exp(rng.normal(size=(2, 9, 1)))
        if trial % 3 == 0:
            weights[1] = weights[0]
        if trial % 5 == 0:
            values[:, 1:4], weights[:, 1:4] = values[:, :1], weights[:, :1]
        terms = Terms(*(np.concatenate([w * v, w], axis=1) for v, w in zip(values, weights, strict=True)))
        fixed = np.abs(rng.normal(size=(7, 4)))
        direction = rng.normal(size=3)
        found = extremes(terms, fixed, direction)
        everything = terms.all_choices()[None] + fixed[:, None]
        best = (everything[..., :-1] @ direction / everything[..., -1]).max(axis=1)
        assert found[:, :-1] @ direction / found[:, -1] == pytest.approx(best, rel=1e-12)
        distance = np.abs(everything - found[:, None]).max(axis=2).min(axis=1)
        assert distance.max() < 1e-12  # the sums belong to a choice of bits


def test_a_trained_or_foreign_model_is_told_from_the_function():
    with float64():
        model = Transformer.draw(KEY, encoding=Positional.orthonormal(context_length=6), head_dim=2)
    promise = dataclasses.replace(constructions.any_function(FUNCTION), model=model)
    verdict = verify(promise, FUNCTION, key=KEY)
    assert verdict.max_error == pytest.approx(np.abs(plain(model, points(6)) - _values(points(6))).max(), abs=1e-12)
    assert not verdict.verified


def _values(bits):
    return FUNCTION.values[bits[:, 4] + 2 * bits[:, 0] + 4 * bits[:, 2]]


def _moved(built, change):
    """The construction with its model changed at one place."""
    with float64():
        return dataclasses.replace(built, model=change(built.model))


@pytest.mark.parametrize("length", [12, 60])
def test_planted_faults_are_found(length):
    """One weight of the last layer off by 1e-6, one position too many or too few attended to, one bit misread."""
    function = SparseFunction((2, 7, 11), np.random.default_rng(2).normal(size=8), length)
    built = constructions.any_function(function)
    faults = {
        "last layer": lambda m: eqx.tree_at(lambda m: m.readout.w, m, m.readout.w.at[5].add(1e-6)),
        "intruder": lambda m: eqx.tree_at(lambda m: m.heads.heads[0].w_k, m, m.heads.heads[0].w_k.at[3 + 5].set(1.0)),
        "overlooked": lambda m: eqx.tree_at(lambda m: m.heads.heads[0].w_k, m, m.heads.heads[0].w_k.at[3 + 7].set(0)),
        "not a number": lambda m: eqx.tree_at(lambda m: m.readout.w, m, m.readout.w.at[0].set(np.nan)),
    }
    assert verify(built, function, key=KEY).exact
    for name, change in faults.items():
        assert not verify(_moved(built, change), function, key=KEY).verified, name


def test_adversarial_bits_find_what_equal_and_random_bits_miss():
    """Irrelevant positions pull the first bit up and down in turn: this cancels unless ones and zeros alternate too."""
    function = SparseFunction((0, 1, 2), np.random.default_rng(3).normal(size=8), 400)
    built = constructions.any_function(function)
    pulls = np.resize([5.0, -5.0], 397)
    spoiled = _moved(
        built,
        lambda m: eqx.tree_at(
            lambda m: m.heads.heads[0].w_v, m, m.heads.heads[0].w_v.at[6:, 0].set(jnp.asarray(pulls))
        ),
    )
    terms, cls = attention_terms(spoiled.model)
    others, patterns = terms.at(np.arange(3, 400)), terms.at(np.arange(3)).all_choices() + cls
    rng = np.random.default_rng(4)
    for bits in (np.zeros(397, bool), np.ones(397, bool), *(rng.random((50, 397)) < rng.random((50, 1)))):
        assert outputs(spoiled.model, patterns + others.choice(bits)) == pytest.approx(function.values, abs=1e-10)
    assert verify(spoiled, function, key=KEY).max_error > 0.01


def test_a_model_with_two_heads_is_refused():
    with float64():
        model = Transformer.draw(KEY, encoding=Positional.orthonormal(context_length=6), head_dim=2, heads=2)
    with pytest.raises(ValueError, match="Give such a model"):
        verify(dataclasses.replace(constructions.any_function(FUNCTION), model=model), FUNCTION, key=KEY)
