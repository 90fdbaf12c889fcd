"""A stack of classifiers against its members, one by one: outputs, gradients, and whole training runs in float64."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from genscope.models import bit_classifier_stack as stacks
from genscope.models.bit_classifier import TUNED
from genscope.models.bit_classifier_fast import TokenTable, indicators, mix_by_example, outputs_of_indicators, table
from genscope.models.bit_classifier_stack import member, outputs, stack
from genscope.models.bit_classifier_stack import outputs_of_indicators as outputs_of_stack
from genscope.precision import float64
from genscope.random import biased_bits, stream
from genscope.tasks import Batch
from genscope.train import Risk, Together, Whole, adam, fit, logistic

RUNS, LENGTH, SIZE = 3, 11, 14


def doubles(tree):
    return jax.tree.map(lambda leaf: leaf.astype("float64") if eqx.is_inexact_array(leaf) else leaf, tree)


@pytest.fixture(scope="module")
def case():
    key = jr.key(3)
    models = stack(LENGTH, jr.split(stream(key, "init"), RUNS), dim=16, heads=4, initialisation=TUNED)
    bits = biased_bits(stream(key, "bits"), (SIZE, LENGTH), 0.7)
    return models, bits, bits[:, :2].all(axis=1).astype("float32")


def sharpened(models, factor):
    """One classifier with wider scores; all take the form that is right for it."""
    return eqx.tree_at(lambda m: m.w_key, models, models.w_key.at[1].multiply(factor))


@jax.jit
def form(models):
    tables = eqx.filter_vmap(table)(models)
    return stacks._form(tables, jax.vmap(TokenTable.rows)(tables))


FORMS = {"by half a product": (1, 0), "by one product": (4e2, 1), "example by example": (1e7, 2)}


@pytest.mark.parametrize(("factor", "number"), FORMS.values(), ids=FORMS)
def test_outputs_and_gradients_are_those_of_the_members(case, factor, number):
    models, bits, y = case
    with float64():
        models = sharpened(doubles(models), factor)
        assert form(models) == number
        x, y = indicators(bits).astype("float64"), y.astype("float64")

        @jax.jit
        def loss(models):
            return jnp.sum(jnp.arange(1.0, RUNS + 1)[:, None] * outputs_of_stack(models, x) * (1 + y)[None])

        @jax.jit
        def loss_of_one(model, number):
            return jnp.sum((number + 1.0) * outputs_of_indicators(model, x) * (1 + y))

        found, slopes = jax.jit(outputs)(models, bits), jax.jit(jax.grad(loss))(models)
        for number in range(RUNS):
            alone = member(models, number)
            np.testing.assert_allclose(found[number], jax.jit(jax.vmap(alone))(bits), rtol=1e-9, atol=1e-11)
            expected = jax.jit(jax.grad(loss_of_one))(alone, number)
            for mine, theirs in zip(jax.tree.leaves(member(slopes, number)), jax.tree.leaves(expected), strict=True):
                scale = float(jnp.abs(theirs).max()) + 1e-12
                np.testing.assert_allclose(mine, theirs, rtol=1e-8, atol=1e-9 * scale)


def test_half_a_product_is_taken_while_it_loses_no_more_than_three_digits(case, monkeypatch):
    """Against float64, at the sharpest scores for which it is taken, and, planted, at some beyond."""
    models, bits, _ = case
    factors = np.geomspace(1, 1e3, 60)
    last = max(factor for factor in factors if form(sharpened(models, factor)) == 0)
    assert 1 < last < 1e3
    monkeypatch.setattr(stacks, "CONDITION", np.inf)
    errors = []
    for factor in (last, 8 * last):
        sharp = sharpened(models, factor)
        mixed = jax.jit(lambda models: stacks.mix(eqx.filter_vmap(table)(models), indicators(bits)))(sharp)
        with float64():
            tables = jax.jit(lambda models: table(member(models, 1)))(doubles(sharp))
            exact = mix_by_example(tables, indicators(bits).astype("float64"))
        errors.append(float(np.abs(np.asarray(mixed[1]) - np.asarray(exact)).max() / np.abs(np.asarray(exact)).max()))
    assert errors[0] < 1e-4
    assert not errors[1] < 1e-3  # nor is not-a-number


def test_a_stack_trains_as_its_members_would_alone(case):
    models, bits, y = case
    with float64():
        models = doubles(models)
        source = Whole(Batch(indicators(bits).astype("float64"), y.astype("float64"), jnp.ones(SIZE)))
        how = {"optimizer": adam(1e-2, epsilon=1e-5)}
        together = fit(models, source, Together(logistic, outputs_of_stack), 40, **how)
        other = fit(models, source, Together(logistic, outputs_of_stack), 40, optimizer=adam(1e-2, epsilon=2e-5))
        for number in range(RUNS):
            alone = fit(member(models, number), source, Risk(logistic, outputs_of_indicators), 40, **how)
            np.testing.assert_allclose(together.recorded["logistic"][:, number], alone.losses, rtol=1e-8)
            pairs = zip(jax.tree.leaves(member(together.model, number)), jax.tree.leaves(alone.model), strict=True)
            for mine, theirs in pairs:
                np.testing.assert_allclose(mine, theirs, rtol=1e-7, atol=1e-9)
            assert not np.allclose(other.recorded["logistic"][:, number], alone.losses, rtol=1e-6)  # planted
    np.testing.assert_allclose(together.losses, together.recorded["logistic"].sum(axis=1), rtol=1e-12)
