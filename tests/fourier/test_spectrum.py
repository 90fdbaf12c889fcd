import jax.random as jr
import numpy as np
import pytest

from genscope.fourier import (
    WalshFunction,
    degree,
    from_expression,
    from_table,
    influences,
    level_weights,
    noise_sensitivity,
    noise_stability,
    parity,
    parse,
    points,
    random_function,
    sparsity,
    table_of_number,
    total_influence,
)
from tests.reference import spectrum as reference


def agrees_with_the_definition(table, *, noise: bool) -> None:
    """Everything that the module says of a table of 0 and 1, and of its expansion, against integer arithmetic."""
    weights, exact = reference.level_weights(table), reference.influences(table)
    for function in (table, from_table(table)):
        assert degree(function) == reference.degree(table)
        assert sparsity(function) == reference.sparsity(table)
        assert level_weights(function) == pytest.approx(weights, abs=1e-15)
        assert influences(function) == pytest.approx(exact, abs=1e-15)
        if noise:
            assert total_influence(function) == pytest.approx(sum(exact), abs=1e-14)
            expected = reference.noise_sensitivity(table, 0.2)
            assert noise_sensitivity(function, 0.2) == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_all_functions_of_few_bits(dim):
    for number in range(2**2**dim):
        agrees_with_the_definition(table_of_number(number, dim), noise=True)


def test_all_functions_of_three_bits():
    for number in range(256):
        agrees_with_the_definition(table_of_number(number, 3), noise=number % 16 == 5)


def test_functions_of_four_bits():
    for number in range(0, 65536, 1021):
        agrees_with_the_definition(table_of_number(number, 4), noise=False)


@pytest.mark.slow
def test_all_functions_of_four_bits():
    """Degree, sparsity, weights and influences, against whole-array forms of the definitions."""
    tables = (np.arange(65536)[:, None] >> np.arange(16)) & 1
    chi = np.array([[(-1) ** (x & s).bit_count() for x in range(16)] for s in range(16)])
    spectra = tables @ chi / 16
    sizes = np.array([s.bit_count() for s in range(16)])
    flipped = [tables[:, np.arange(16) ^ 1 << i] for i in range(4)]
    expected = np.stack([((tables - other) ** 2).mean(1) / 4 for other in flipped], 1)
    weights = np.stack([(spectra[:, sizes == k] ** 2).sum(1) for k in range(5)], 1)
    for table, spectrum, influence, weight in zip(tables, spectra, expected, weights, strict=True):
        assert degree(table) == max(sizes[spectrum != 0], default=0)
        assert sparsity(table) == np.count_nonzero(spectrum[1:])
        assert (influences(table) == influence).all()
        assert np.abs(level_weights(table) - weight).max() < 1e-15


@pytest.mark.parametrize("basis", ["chi", "phi"])
def test_expansions_and_their_tables_say_the_same(basis):
    function = random_function(jr.key(0), dim=9, degree=3, sparsity=7, basis=basis)
    table = function.truth_table()
    found = from_table(table)
    assert {*found.supports} == {*function.supports}
    np.testing.assert_allclose(found(points(9)), table, atol=1e-14)
    for measure in (degree, sparsity, level_weights, influences, total_influence):
        np.testing.assert_allclose(measure(table), measure(function), atol=1e-14)
    assert level_weights(function).sum() == pytest.approx(np.mean(table**2))  # Parseval
    assert total_influence(function) == pytest.approx(3 * function.variance)  # homogeneous of degree 3
    assert noise_stability(function, 0.4) == pytest.approx(function.mean**2 + 0.4**3 * function.variance)


def test_coefficients_below_the_tolerance_count_as_zero():
    table = WalshFunction(4, ((0,), (0, 1, 2, 3)), (1.0, 1e-6)).truth_table()
    assert (degree(table), sparsity(table)) == (4, 2)
    assert (degree(table, tolerance=1e-5), sparsity(table, tolerance=1e-5)) == (1, 1)
    assert from_table(table, tolerance=1e-5).supports == ((0,),)
    assert from_table(np.zeros(8)) == WalshFunction(3, (), ())
    with pytest.raises(ValueError, match="at least 0 and below 1"):
        degree(table, tolerance=1.0)


def test_noise():
    signs = 1 - 2.0 * (points(5).sum(1) % 2)
    assert noise_stability(signs, 0.5) == pytest.approx(0.5**5)
    assert noise_sensitivity(signs, 0.1) == pytest.approx((1 - 0.8**5) / 2)  # an odd number of flips
    assert noise_sensitivity(parity(5), 1.0) == pytest.approx(0.25)
    assert noise_stability(parity(5), -1.0) == pytest.approx(0.0)
    with pytest.raises(ValueError, match="Give a number from 0 to 1"):
        noise_sensitivity(signs, 1.5)
    with pytest.raises(ValueError, match="give 1 - 2 p"):
        noise_stability(signs, -1.5)


def test_expressions():
    majority = from_expression("maj(x1, x3, x4)")
    assert majority.dim == 5
    assert dict(zip(majority.supports, majority.coefficients, strict=True)) == {
        (1,): -0.25, (3,): -0.25, (4,): -0.25, (1, 3, 4): 0.25,
    }  # fmt: skip
    assert majority.constant == 0.5
    wide = from_expression(parse("x0 & ~x2 | 0"), dim=7)
    assert (wide(points(7)) == parse("x0 & ~x2")(points(7))).all()
    assert from_expression("x3 ^ x3") == WalshFunction(0, (), ())
    with pytest.raises(ValueError, match="Give at least 5"):
        from_expression("maj(x1, x3, x4)", dim=4)


@pytest.mark.parametrize(
    ("table", "advice"),
    [
        (np.zeros((2, 2)), "one table at a time"),
        (np.array([1.0, np.nan]), "Give finite values"),
        (np.zeros(3), "a value for each point"),
    ],
)
def test_refuses_what_is_no_table(table, advice):
    with pytest.raises(ValueError, match=advice):
        level_weights(table)
    with pytest.raises(ValueError, match=advice):
        influences(table)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")  # boofun says which optional libraries it misses
def test_agrees_with_boofun():
    boofun = pytest.importorskip("boofun", reason="a peer for comparison, not a dependency")
    for number in (0x96, 0xE8, 0x01, 0xCA, 0x1D):
        for dim, table in (
            (3, table_of_number(number, 3)),
            (5, np.resize(table_of_number(number, 3), 32) ^ points(5)[:, 4]),
        ):
            theirs = boofun.create(table.astype(int).tolist())
            signs = 1 - 2.0 * table  # boofun analyses (-1)^f
            ours = from_table(signs)
            spectrum = np.zeros(2**dim)
            spectrum[0] = ours.constant
            for support, coefficient in zip(ours.supports, ours.coefficients, strict=True):
                spectrum[sum(1 << i for i in support)] = coefficient
            np.testing.assert_allclose(theirs.fourier(), spectrum, atol=1e-12)
            assert theirs.degree() == degree(signs)
            np.testing.assert_allclose(theirs.influences(), influences(signs), atol=1e-12)
            assert theirs.total_influence() == pytest.approx(total_influence(signs))
            assert theirs.noise_stability(0.3) == pytest.approx(noise_stability(signs, 0.3))
