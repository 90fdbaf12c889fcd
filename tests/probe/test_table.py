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
    for kept in (0, 1, 10, 63):
        tolerance = sum(squares[kept:]) * (1 + 1e-9)
        found = read_table(table, tuple(range(6)), 6, resolution=1e-12, tolerance=tolerance)
        assert found.sparsity == kept
        assert found.left_out == pytest.approx(sum(squares[kept:]))
        residual = table - found.function.truth_table()
        assert np.mean(residual**2) == pytest.approx(found.left_out)


def test_of_many_components_the_largest_are_listed():
    table = np.random.default_rng(1).normal(size=2**13)
    found = read_table(table, tuple(range(13)), 13, resolution=1e-12)
    assert found.sparsity == 2**13 - 1
    assert found.function.sparsity in (LISTED, LISTED - 1)
    residual = table - found.function.truth_table()
    assert np.mean(residual**2) == pytest.approx(found.left_out)
