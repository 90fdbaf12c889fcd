"""Shares of the construction's block, and attention on the token that is asked for."""

import jax.numpy as jnp
import numpy as np
import pytest

from genscope.measure.query_key import attention_mass, block_share

DIM, CODE = 3, 4


def built(alpha, slot=0, slots=1):
    """The matrix of Lemma 11."""
    size = DIM + (slots + 1) * CODE
    matrix = np.zeros((size, size), np.float32)
    start = DIM + (slot + 1) * CODE
    matrix[start : start + CODE, DIM : DIM + CODE] = alpha * np.eye(CODE)
    return jnp.asarray(matrix)


@pytest.mark.parametrize(("slot", "slots"), [(0, 1), (1, 2)])
def test_the_construction_has_both_shares_one(slot, slots):
    share = block_share(built(2.5, slot, slots), dim=DIM, encoding_dim=CODE, slot=slot)
    assert (float(share.block), float(share.diagonal), float(share.mean_diagonal)) == (1.0, 1.0, 2.5)


def test_the_transposed_block_does_not_count():
    assert float(block_share(built(1.0).T + 1e-6, dim=DIM, encoding_dim=CODE).block) < 1e-6


def test_chance_levels_are_those_of_a_constant_matrix():
    share = block_share(jnp.ones((11, 11)), dim=DIM, encoding_dim=CODE)
    assert float(share.block) == pytest.approx(share.block_chance)
    assert float(share.diagonal) == pytest.approx(share.diagonal_chance)


def test_the_identity_share_is_that_of_the_nearest_multiple_of_the_identity():
    """By least squares over a grid of α; a diagonal of changing signs is no multiple of the identity."""
    block = np.random.default_rng(1).normal(size=(CODE, CODE)) + 2 * np.eye(CODE)
    matrix = np.zeros((11, 11), np.float32)
    matrix[DIM + CODE :, DIM : DIM + CODE] = block
    left = min(float(((block - alpha * np.eye(CODE)) ** 2).sum()) for alpha in np.linspace(-5, 5, 100_001))
    share = block_share(jnp.asarray(matrix), dim=DIM, encoding_dim=CODE)
    assert float(share.identity) == pytest.approx(1 - left / (block**2).sum(), abs=1e-5)
    assert float(share.identity) < float(share.diagonal)
    signs = jnp.asarray(np.asarray(built(1.0)) * np.where(np.arange(11) % 2, 1.0, -1.0).astype(np.float32))
    assert float(block_share(signs, dim=DIM, encoding_dim=CODE).identity) < 0.5


def test_a_slot_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="Give the sizes of the task"):
        block_share(built(1.0), dim=DIM, encoding_dim=CODE, slot=1)


def test_mass_by_a_loop():
    rng = np.random.default_rng(0)
    attention = rng.dirichlet(np.ones(5), size=(2, 3, 5)).astype(np.float32)
    t = rng.integers(5, size=(2, 5, 2)).astype(np.int32)
    mass = attention_mass(jnp.asarray(attention), jnp.asarray(t))
    for h in range(3):
        for slot in range(2):
            picked = [attention[b, h, i, t[b, i, slot]] for b in range(2) for i in range(5)]
            assert float(mass[h, slot]) == pytest.approx(np.mean(picked), rel=1e-5)
