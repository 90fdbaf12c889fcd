import itertools

import numpy as np
import pytest

from genscope.fourier import table_of_number
from genscope.probe.table import LISTED, read_table
from tests.probe.functions import degree_of, sparsity_of, spectrum


def test_functions_of_four_bits_by_the_definition():
    for number in range(0, 65536, 499):
        table = table_of_number(number, 4)
        coefficients = spectrum(table.astype(float).tolist(), 4)
        found = read_table(table, (0, 1, 2, 3), 4, resolution=1e-12)
        assert (found.degree, found.sparsity) == (degree_of(coefficients), sparsity_of(coefficients))
        assert found.relevant == tuple(sorted(set().union(*coefficients)))
        assert found.left_out == 0


def test_variables_have_their_names():
    found = read_table(np.array([0.0, 0.0, 0.0, 1.0]), (7, 3), 9, resolution=1e-12)
    assert found.function.supports == ((3,), (3, 7), (7,))
    assert found.relevant == (3, 7)


def test_a_tolerance_keeps_the_fewest_components():
    rng = np.random.default_rng(0)
    table = rng.normal(size=64)
    squares = sorted((c**2 for s, c in spectrum(table.tolist(), 6).items() if s), reverse=True)
    for kept, scale in itertools.product((1, 10, 63), (1.0, 0.01, 1e6)):
        tolerance = sum(squares[kept:]) / sum(squares) * (1 + 1e-9)
        unit = {"resolution": 1e-12 * scale, "tolerance": tolerance}
        found = read_table(scale * table + 3 * scale, tuple(range(6)), 6, **unit)
        assert found.sparsity == kept
        assert found.left_out == pytest.approx(sum(squares[kept:]) / sum(squares))
        residual = scale * table + 3 * scale - found.function.truth_table()
        assert np.mean(residual**2) == pytest.approx(found.left_out * scale**2 * sum(squares))


def test_a_constant_has_nothing_to_leave_out():
    found = read_table(np.full(8, -2.5), (0, 1, 2), 3, resolution=1e-12, tolerance=0.5)
    assert (found.degree, found.sparsity, found.left_out, found.function.constant) == (0, 0, 0.0, -2.5)
    assert read_table(np.ones(1), (), 4, resolution=1e-12).function.constant == 1


def test_of_many_components_the_largest_are_listed():
    table = np.random.default_rng(1).normal(size=2**13)
    found = read_table(table, tuple(range(13)), 13, resolution=1e-12)
    assert found.sparsity == 2**13 - 1
    assert found.function.sparsity == LISTED
    assert found.function.constant == pytest.approx(table.mean())
    residual = table - found.function.truth_table()
    assert np.mean(residual**2) == pytest.approx(found.left_out * table.var())
