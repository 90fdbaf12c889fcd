"""Encodings: norms, gaps, refusals, and the probabilities with which Assumption 3 holds."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from genscope.tasks.token_encoding import default_encoding_dim, encoding_correlation, encoding_gap, rademacher_encoding
from tests.chance import Seldom
from tests.seeds import seed


def test_rows_are_unit_vectors_of_signs():
    rows = np.asarray(rademacher_encoding(jr.key(0), tokens=9, dim=16))
    np.testing.assert_allclose(np.abs(rows), 0.25)
    assert np.unique(rows).size == 2


def test_gap_and_correlation_by_hand():
    rows = jnp.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    assert float(encoding_gap(rows)) == 1.0  # signed: the opposite row is far away
    assert float(encoding_correlation(rows)) == 1.0
    assert float(encoding_gap(rows[jnp.array([0, 0])])) == 0.0
    assert float(encoding_gap(rows[:1])) == 2.0


def test_refused_rows():
    rows = rademacher_encoding(jr.key(1), tokens=12, dim=40, max_correlation=0.5)
    assert float(encoding_correlation(rows)) <= 0.5 + 1e-6
    with pytest.raises(ValueError, match="Increase the dimension"):
        rademacher_encoding(jr.key(1), tokens=12, dim=3, max_correlation=0.5)
    with pytest.raises(ValueError, match="at least 1"):
        rademacher_encoding(jr.key(1), tokens=0, dim=3)


# Share of draws on which Assumption 3 holds, and on which two rows are equal (2,000 draws, rounded in the source).
TABLE = {4: (0.22, 0.09), 8: (0.027, 0.024), 12: (0.064, 0.019), 25: (0.0025, 0.0065), 33: (0.0, 0.003)}


def shares(tokens, draws, key):
    """How many of the draws hold, and how many collide."""
    dim = default_encoding_dim(tokens)

    def look(key):
        rows = rademacher_encoding(key, tokens=tokens, dim=dim)
        return encoding_correlation(rows) <= 0.5 + 1e-6, encoding_gap(rows) < 1e-6

    holds, equal = jax.jit(jax.vmap(look))(jr.split(key, draws))
    return int(jnp.sum(holds)), int(jnp.sum(equal))


@pytest.mark.parametrize("tokens", TABLE)
def test_published_shares(tokens):
    """Theirs were measured on 2,000 draws and rounded: a range. Three times a share is found, and a quarter of 0.05."""
    draws = 12_000
    for count, published in zip(shares(tokens, draws, jr.key(seed(5))), TABLE[tokens], strict=True):
        spread = np.sqrt(published * (1 - published) / 2000) * 4 + 0.05 * published + 0.001
        assert Seldom(draws, published + spread, planted=max(3 * published, 0.05)).explains(count)
        if published >= 0.05:
            assert Seldom(draws, 1 - (published - spread), planted=1 - published / 4).explains(draws - count)
