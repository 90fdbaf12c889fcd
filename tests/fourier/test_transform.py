import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import hadamard

from genscope.fourier import fwht, points, transform, walsh_coefficients
from genscope.precision import float64
from tests.reference import spectrum as reference

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 7, 10])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_is_the_product_with_the_hadamard_matrix(n, dtype):
    a = RNG.integers(-9, 10, 2**n).astype(dtype)
    given = a.copy()
    b = fwht(a)
    assert b.dtype == dtype
    assert (b == hadamard(2**n) @ given).all()
    assert (a == given).all()
    assert not np.shares_memory(a, b)


@pytest.mark.parametrize("n", [1, 5, 12, 17, 21])  # beyond 16 bits the slow ones are transformed apart
def test_twice_multiplies_by_the_number_of_points(n):
    a = RNG.normal(size=(2, 1, 2**n))
    np.testing.assert_allclose(fwht(fwht(a)), 2**n * a, atol=1e-9)


@pytest.mark.parametrize("slow", [1, 4, 5, 9])  # one product, two, three
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tables_beyond_a_piece_are_transformed_factor_by_factor(slow, dtype, monkeypatch):
    monkeypatch.setattr(transform, "_CACHED", 10)
    left, right = RNG.integers(-1, 2, 2**slow).astype(dtype), RNG.integers(-1, 2, 2**10).astype(dtype)
    table = np.stack([np.kron(left, right), np.kron(right, left)])
    product = np.kron(fwht(left), fwht(right))
    assert (fwht(table)[0] == product).all()
    assert (fwht(table)[1] == np.kron(fwht(right), fwht(left))).all()


def test_a_batch_is_transformed_row_by_row():
    a = RNG.normal(size=(2, 3, 32))
    rows = np.stack([[fwht(row) for row in block] for block in a])
    np.testing.assert_allclose(fwht(a), rows, atol=1e-12)
    np.testing.assert_allclose(fwht(np.asfortranarray(a)), rows, atol=1e-12)
    assert fwht(a[:0]).shape == (0, 3, 32)


@pytest.mark.parametrize(("n", "masks"), [(6, (0, 1, 2, 32, 37, 63)), (18, (1 << 17 | 1 << 3, 1 << 16, 77))])
def test_characters_are_orthonormal_in_the_house_order(n, masks):
    for mask in masks:
        character = 1 - 2.0 * (points(n)[:, [i for i in range(n) if mask >> i & 1]].sum(1) % 2)
        assert (walsh_coefficients(character) == (np.arange(2**n) == mask)).all()


def test_exact_on_integers_and_booleans_up_to_the_stated_size():
    table = RNG.integers(0, 2, 2**16) == 1
    assert fwht(table)[0] == table.sum()
    assert fwht(table)[1] == table[::2].sum() - table[1::2].sum()
    assert (fwht(table) == fwht(table.astype(np.int8))).all()
    large = np.array([2**52, 2**51, 1, 2**50], np.int64)
    assert fwht(large).astype(np.int64).tolist() == (hadamard(4) @ large).tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounding_stays_within_the_stated_bound(dtype):
    n = 14
    a = RNG.normal(size=2**n).astype(dtype)
    exact = np.array([int(v) for v in np.ldexp(a.astype(np.float64), 80).tolist()], object)
    for i in range(n):  # the radix-2 butterfly, in Python's unlimited integers
        low, high = exact.reshape(-1, 2, 2**i)[:, 0].copy(), exact.reshape(-1, 2, 2**i)[:, 1].copy()
        exact = np.stack([low + high, low - high], 1).reshape(-1)
    error = max(abs(float(b) - e / 2**80) for b, e in zip(fwht(a).tolist(), exact.tolist(), strict=True))
    assert error <= 4 * (n + 6) * np.finfo(dtype).eps / 2 * float(np.abs(a).sum(dtype=np.float64))


def test_jax_form_agrees_and_is_differentiable_and_vmappable():
    a = RNG.normal(size=(3, 64)).astype(np.float32)
    expected = fwht(a)
    np.testing.assert_allclose(jax.jit(jax.vmap(fwht))(jnp.asarray(a)), expected, atol=1e-4)
    np.testing.assert_allclose(jax.jit(lambda x: fwht(x, backend="jax"))(a), expected, atol=1e-4)
    # The transform is its own transpose, so the gradient of <c, H a> is H c.
    gradient = jax.jit(jax.grad(lambda x: jnp.vdot(a[0], fwht(x))))(jnp.asarray(a[1]))
    np.testing.assert_allclose(gradient, expected[0], atol=1e-4)
    assert jax.jit(walsh_coefficients)(jnp.array([False, True])).tolist() == [0.5, -0.5]
    with float64():
        found = jax.jit(fwht)(jnp.asarray(a[0], np.float64))
        np.testing.assert_allclose(found, fwht(a[0].astype(np.float64)), rtol=1e-12)


def test_pyfwht_agrees():
    pytest.importorskip("pyfwht", reason="optional")
    a = RNG.normal(size=(2, 1024))
    np.testing.assert_allclose(fwht(a, backend="pyfwht"), fwht(a), atol=1e-10)


def test_all_functions_of_three_bits_against_the_definition():
    tables = (np.arange(256)[:, None] >> np.arange(8)) & 1
    assert (fwht(tables) == [reference.sums(table) for table in tables]).all()


def test_all_functions_of_four_bits_against_the_matrix_of_characters():
    tables = (np.arange(65536)[:, None] >> np.arange(16)) & 1
    chi = np.array([[(-1) ** (x & s).bit_count() for x in range(16)] for s in range(16)])
    assert (walsh_coefficients(tables) * 16 == tables @ chi).all()


@pytest.mark.parametrize(
    ("a", "backend", "advice"),
    [
        (np.zeros(3), None, "Pad with zeros"),
        (np.zeros(0), None, "Pad with zeros"),
        (np.array(1.0), None, "Pad with zeros"),
        (np.zeros(4, np.float16), None, "Convert them first"),
        (np.zeros(4, complex), None, "separately"),
        (np.zeros(4), "cuda", "Choose one of them"),
    ],
)
def test_refuses_what_it_cannot_transform(a, backend, advice):
    with pytest.raises(ValueError, match=advice):
        fwht(a, backend)


def test_refuses_jax_arrays_in_numpy():
    with pytest.raises(ValueError, match=r"Convert it with numpy\.asarray"):
        fwht(jnp.zeros(4), "numpy")


def test_says_how_to_do_without_pyfwht(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyfwht", None)
    with pytest.raises(ValueError, match="backend='numpy'"):
        fwht(np.zeros(4), "pyfwht")
