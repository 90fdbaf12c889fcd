"""Short codes of positions: their inner products by brute force, their search, and what is refused."""

import math

import numpy as np
import pytest

from genscope.constructions.cyclic_code import cyclic_code, usual_dim
from genscope.constructions.parity_chain import parity_chain
from genscope.precision import float64


@pytest.mark.parametrize(("length", "dim"), [(3, 2), (7, 4), (8, 4), (9, 8), (64, 12)])
def test_coherence_is_that_of_all_pairs(length, dim):
    code = cyclic_code(length, dim)
    assert code.dim == dim
    assert len({*code.frequencies}) == dim // 2
    with float64():
        vectors = np.asarray(parity_chain(length, dim=dim).model.codes())
    angle = 2 * np.pi * np.outer(np.arange(length), code.frequencies) / length
    by_hand = np.hstack([np.cos(angle), np.sin(angle)]) / math.sqrt(dim / 2)
    np.testing.assert_allclose(vectors, by_hand, atol=1e-12)
    products = vectors @ vectors.T
    np.testing.assert_allclose(np.diag(products), 1, atol=1e-12)
    assert products[~np.eye(length, dtype=bool)].max() == pytest.approx(code.coherence, abs=1e-12)


def test_a_pair_of_frequencies_is_the_best_of_all_pairs():
    """Exchanges find the optimum where it can be looked for: 105 pairs at T = 32."""
    best = min(
        np.cos(2 * np.pi * np.outer(np.arange(1, 32), [f, g]) / 32).mean(axis=1).max()
        for f in range(1, 16)
        for g in range(f + 1, 16)
    )
    assert cyclic_code(32, 4).coherence == pytest.approx(best, abs=1e-12)


def test_orthogonal_codes_where_the_length_allows_them():
    assert cyclic_code(8, 4).coherence == pytest.approx(0, abs=1e-12)  # χ and -χ of the odd frequencies


def test_longer_codes_stay_apart():
    """Far better than frequencies at random, whose largest inner product at T = 1024 is about 0.6."""
    assert cyclic_code(64, 12).coherence < 0.30
    assert cyclic_code(1024, 24).coherence < 0.41
    assert [usual_dim(length) for length in (3, 8, 64, 1024)] == [2, 6, 14, 24]


def test_what_is_refused():
    for length, dim in ((2, 2), (8, 3), (8, 8), (8, 0), (5000, 24)):
        with pytest.raises(ValueError, match="Correct the one that is out of range"):
            cyclic_code(length, dim)
    with pytest.raises(ValueError, match="must be even, here from 2 to 6"):
        parity_chain(8, dim=7)
