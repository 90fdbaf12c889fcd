"""Other normalisations than softmax: closed forms, derivatives, and their constants searched for violations."""

import math

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from genscope.measure.lipschitz import HeadCase, head_ratio
from genscope.models.edelman2022 import Head
from genscope.models.normalisation import clipped, entmax
from genscope.precision import float64
from genscope.refusal import Refusal


def projected(scores):
    """Sparsemax by sorting: the nearest point of the simplex."""
    ordered = np.sort(scores)[::-1]
    sums = np.cumsum(ordered)
    kept = np.flatnonzero(1 + np.arange(1, len(scores) + 1) * ordered > sums)[-1]
    return np.maximum(scores - (sums[kept] - 1) / (kept + 1), 0)


def test_sparsemax_is_the_projection_to_the_simplex():
    chance = np.random.default_rng(0)
    with float64():
        for _ in range(50):
            scores = chance.normal(size=7) * chance.choice([0.1, 1.0, 5.0])
            assert np.asarray(entmax(2.0)(jnp.asarray(scores))) == pytest.approx(projected(scores), abs=1e-12)


def test_entmax_of_two_scores_and_its_way_to_softmax():
    with float64():
        p = np.asarray(entmax(1.5)(jnp.array([0.5, 0.0, -9.0])))
        # sqrt(p1) - sqrt(p2) = 0.25 and p1 + p2 = 1
        root = (0.25 + math.sqrt(2 - 0.0625)) / 2
        assert p == pytest.approx([root**2, (root - 0.25) ** 2, 0])
        scores = jnp.array([1.0, 0.3, -2.0])
        assert np.asarray(entmax(1.0001)(scores)) == pytest.approx(np.asarray(jax.nn.softmax(scores)), abs=1e-4)


@pytest.mark.parametrize("alpha", [1.3, 1.5, 2.0])
def test_its_derivative(alpha):
    with float64():
        scores = jnp.array([0.7, 0.4, -0.1, -3.0])
        found = np.asarray(jax.jacfwd(entmax(alpha))(scores))
        step = 1e-6
        for i in range(4):
            moved = step * jnp.eye(4)[i]
            slope = (entmax(alpha)(scores + moved) - entmax(alpha)(scores - moved)) / (2 * step)
            assert found[:, i] == pytest.approx(np.asarray(slope), abs=1e-6)
        assert np.asarray(jax.jacrev(entmax(alpha))(scores)) == pytest.approx(found)


@pytest.mark.parametrize("tokens", [2, 4, 8])
@pytest.mark.parametrize("alpha", [1.25, 1.5, 2.0])
def test_no_ratio_exceeds_the_constant(alpha, tokens):
    chance, constant = np.random.default_rng(tokens), tokens ** (alpha - 1)
    with float64():
        normalise = jax.jit(jax.vmap(entmax(alpha)))
        scales = chance.choice([0.01, 0.3, 1.0, 5.0], (4000, 2, 1))
        first = chance.normal(size=(4000, tokens)) * scales[:, 0]
        second = first + chance.choice([-1.0, 1.0], (4000, tokens)) * scales[:, 1] * 0.1
        moved = np.abs(np.asarray(normalise(first)) - np.asarray(normalise(second))).sum(axis=1)
        ratios = moved / np.abs(first - second).max(axis=1)
        assert ratios.max() <= constant * (1 + 1e-9)
        near = np.zeros(tokens)
        signs = np.where(np.arange(tokens) % 2 == 0, 1e-4, -1e-4)
        attained = np.abs(np.asarray(entmax(alpha)(jnp.asarray(near + signs)) - entmax(alpha)(jnp.asarray(near)))).sum()
        assert attained / 1e-4 == pytest.approx(constant, rel=1e-3)  # equal scores, half up and half down: sharp


def test_clipped_scores_keep_the_constant_of_softmax():
    chance = np.random.default_rng(3)
    with float64():
        first, second = chance.normal(size=(2, 2000, 5)) * 3
        moved = np.abs(np.asarray(clipped(2.0)(jnp.asarray(first)) - clipped(2.0)(jnp.asarray(second)))).sum(axis=1)
        assert (moved <= np.abs(first - second).max(axis=1) * (1 + 1e-12)).all()
        assert np.asarray(clipped(2.0)(jnp.asarray(100 * first))).min() >= math.exp(-4) / 5 * (1 - 1e-12)


def test_a_head_with_entmax_keeps_lemma_4_3_with_its_constant():
    """And exceeds it with the constant of softmax."""
    with float64():
        eye = jnp.eye(4)
        tokens = jnp.concatenate([eye, -eye])  # values of both signs
        head = Head(jnp.eye(4)[:, :1], jnp.zeros((4, 1)), eye, None, lambda x: x, False, entmax(2.0))
        up = jnp.array([[1.0], [1.0], [1.0], [1.0]]) * 1e-3
        moved = Head(head.w_q, up, eye, None, lambda x: x, False, entmax(2.0))
        case = HeadCase(head, moved, tokens, eye[0])
        assert float(head_ratio(case, softmax_constant=8.0)) <= 1 + 1e-9
        assert float(head_ratio(case, softmax_constant=1.0)) > 1.5
        default = Head.draw(jr.key(0), dim=3, head_dim=2)
        scores = jnp.array([0.1, 0.5])
        assert np.asarray(default.mix(scores, jnp.eye(2)).attention) == pytest.approx(
            np.asarray(jax.nn.softmax(scores))
        )


def test_refusals():
    for alpha in (1.0, 2.5):
        with pytest.raises(Refusal, match="must be above 1"):
            entmax(alpha)
    with pytest.raises(Refusal, match="must be positive"):
        clipped(0.0)
