import numpy as np
import pytest

from genscope.fourier import points
from genscope.probe import Oracle
from genscope.probe.restriction import add_shifts, bucket_of, draw_matrix, restrict
from tests.chance import assert_count
from tests.probe.functions import random_sum, spectrum


def character(support, x):
    return (-1) ** int(np.sum(x[list(support)]))


@pytest.mark.parametrize("kind", ["affine", "coordinate"])
def test_buckets_by_the_definition(kind):
    rng = np.random.default_rng(0)
    table = rng.normal(size=32)
    oracle = Oracle(lambda x: table[x @ (1 << np.arange(5))], 5)
    base = np.array([1, 0, 1, 1, 0], bool)
    matrix = draw_matrix(kind, 3, 5, rng)
    found = add_shifts(oracle, restrict(oracle, matrix, base))
    expected = np.zeros((6, 8))
    for support, coefficient in spectrum(table.tolist(), 5).items():
        bucket = sum(2**j for j in range(3) if sum(matrix[j, i] for i in support) % 2)
        for row in range(6):
            at = base ^ (np.arange(5) == row - 1)
            expected[row, bucket] += coefficient * character(support, at)
    np.testing.assert_allclose(found.buckets, expected, atol=1e-14)
    assert oracle.queries == 3 + 6 * 8


def test_a_sum_is_taken_out():
    rng = np.random.default_rng(1)
    f = random_sum(rng, 9, 3, 5)
    oracle = Oracle(f, 9)
    found = add_shifts(oracle, restrict(oracle, draw_matrix("affine", 2, 9, rng), points(9)[77]))
    supports = np.zeros((5, 9), bool)
    for row, support in zip(supports, f.supports, strict=True):
        row[list(support)] = True
    assert np.abs(found.buckets).max() > 0.1
    assert np.abs(found.without(supports, np.array(f.coefficients)).buckets).max() < 1e-14
    assert np.abs(found.buckets).max() > 0.1  # and the restriction itself is as it was


def test_coordinate_rows_are_different_unit_vectors():
    matrix = draw_matrix("coordinate", 5, 7, np.random.default_rng(2))
    assert (matrix.sum(axis=1) == 1).all()
    assert (matrix.sum(axis=0) <= 1).all()


def test_two_components_meet_with_the_same_probability_whatever_they_are():
    """4000 affine matrices of four rows: 1/16, and a tenth more is found; coordinates depend on the components."""
    rng = np.random.default_rng(3)
    near = np.zeros((2, 12), bool)
    near[1, 0] = True
    for kind, share in (("affine", 1 / 16), ("coordinate", 8 / 12)):
        meet = [len(set(bucket_of(draw_matrix(kind, 4, 12, rng), near).tolist())) == 1 for _ in range(4000)]
        assert_count(sum(meet), 4000, share, planted=share + 0.1)
