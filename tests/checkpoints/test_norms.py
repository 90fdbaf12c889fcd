import numpy as np
import pytest

from genscope.checkpoints import norms
from genscope.checkpoints._layout import HeadWeights
from genscope.checkpoints.norms import largest_row_norm, query_key_norms, value_norms
from tests.checkpoints import dense, files


def stacked(layer):
    return HeadWeights(*(np.stack(part) for part in layer))


def assert_close(found, expected, rtol=1e-12):
    np.testing.assert_allclose(np.stack(found), expected, rtol=rtol)


def test_the_worked_example_of_the_definition():
    matrix = np.array([[3.0, 0.0], [4.0, 1.0]])
    heads = HeadWeights(matrix[None], np.eye(2)[None], matrix[None])
    root = np.sqrt(26 / 2 + np.sqrt((26 / 2) ** 2 - 9))  # eigenvalues of M^T M: trace 26, determinant 9
    expected = [[root], [np.sqrt(26)], [6], [3 + np.sqrt(17)]]
    assert_close(value_norms(heads), expected)
    assert_close(query_key_norms(heads), expected)
    turned = query_key_norms(HeadWeights(np.eye(2)[None], matrix[None], matrix[None]))  # W_QK = M^T
    assert_close(turned, [expected[0], expected[1], expected[3], expected[2]])


@pytest.mark.parametrize(
    "shape",
    [
        {"dimension": 40, "width": 5, "heads": 6, "groups": 6},
        {"dimension": 40, "width": 5, "heads": 6, "groups": 2},
        {"dimension": 40, "width": 5, "heads": 6, "groups": 1},
        {"dimension": 4, "width": 7, "heads": 3, "groups": 3},  # wider than the tokens
        {"dimension": 5, "width": 1, "heads": 1, "groups": 1},
        {"dimension": 1, "width": 1, "heads": 2, "groups": 2},
    ],
)
@pytest.mark.parametrize("block", [1, 10_000, norms.BLOCK_BYTES])
def test_norms_agree_with_the_formed_product(shape, block, monkeypatch):
    monkeypatch.setattr(norms, "BLOCK_BYTES", block)
    (layer,) = files.draw(**shape, layers=1)
    value, query_key = dense.layer_norms(layer)
    assert_close(value_norms(stacked(layer)), value)
    assert_close(query_key_norms(stacked(layer)), query_key)


def test_a_wrong_map_from_query_to_key_heads_would_be_seen():
    (layer,) = files.draw(heads=6, groups=2, layers=1)
    turned = layer._replace(key=layer.key[::-1])
    assert not np.allclose(np.stack(query_key_norms(stacked(turned))), dense.layer_norms(layer)[1], rtol=1e-3)


@pytest.mark.parametrize("size", [1e-200, 1e-154, 1e150])
def test_no_square_overflows_or_vanishes(size):
    (layer,) = files.draw(layers=1, dtype=np.float64)
    value, query_key = dense.layer_norms(layer)
    heads = stacked(layer)
    assert_close(value_norms(heads._replace(value=size * heads.value)), size * value)
    scaled = heads._replace(query=size * heads.query, key=heads.key / size)
    assert_close(query_key_norms(scaled), query_key)


def test_factors_that_nearly_cancel_keep_their_digits():
    """W_Q and W_K are large, their product is not: Gram matrices would lose it, since they square the ratio."""
    generator = np.random.default_rng(0)
    q, _ = np.linalg.qr(generator.normal(size=(30, 2)))
    query = q @ np.diag([1e6, 1e-6])
    key = q @ np.diag([1e-6, 1e6])
    found = query_key_norms(HeadWeights(query[None], key[None], key[None]))
    np.testing.assert_allclose(found.spectral, 1.0, rtol=1e-9)
    np.testing.assert_allclose(found.frobenius, np.sqrt(2), rtol=1e-9)


def test_maps_of_zeros_have_norm_zero():
    zeros = np.zeros((2, 4, 3), np.float16)
    assert not np.stack(value_norms(HeadWeights(zeros, zeros, zeros))).any()
    assert not np.stack(query_key_norms(HeadWeights(zeros, zeros, zeros))).any()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("part", ["query", "key", "value"])
def test_weights_that_are_no_numbers_are_refused(bad, part):
    heads = stacked(files.draw(layers=1)[0])
    getattr(heads, part)[-1, 3, 2] = bad
    with pytest.raises(ValueError, match="from before it diverged"):
        (value_norms if part == "value" else query_key_norms)(heads)


def test_norms_beyond_all_numbers_are_refused():
    huge = np.full((1, 4, 3), 1e307)
    with pytest.raises(ValueError, match="Use another checkpoint"):
        query_key_norms(HeadWeights(huge, huge, huge))


def test_the_longest_row_of_a_table(monkeypatch):
    monkeypatch.setattr(norms, "BLOCK_BYTES", 64)
    table = np.random.default_rng(0).normal(size=(50, 4)).astype(files.BFLOAT16)
    expected = max(np.sqrt(sum(float(entry) ** 2 for entry in row)) for row in table)
    assert largest_row_norm(table) == pytest.approx(expected, rel=1e-14)
