import jax
import jax.numpy as jnp
import numpy as np
import pytest

from genscope.fourier import bits, number_of_table, points, signs, table_of_number


@pytest.mark.parametrize("dim", [0, 1, 2, 5])
def test_point_i_holds_the_binary_digits_of_i(dim):
    assert points(dim).shape == (2**dim, dim)
    for i, point in enumerate(points(dim)):
        assert [int(bit) for bit in point] == [int(digit) for digit in bin(i)[2:].zfill(dim)[::-1][:dim]]


@pytest.mark.parametrize("dim", [-1, 25])
def test_refuses_to_list_too_much(dim):
    with pytest.raises(ValueError, match="Sample the cube instead"):
        points(dim)


@pytest.mark.parametrize("dim", [0, 1, 2, 3, 5])
def test_tables_as_numbers(dim):
    for number in {0, 1, 2**2**dim // 3, 2**2**dim - 1}:
        table = table_of_number(number, dim)
        assert table.tolist() == [bool(number >> i & 1) for i in range(2**dim)]
        assert number_of_table(table) == number


@pytest.mark.parametrize(("number", "dim"), [(2, 0), (256, 3), (-1, 3), (0, 25), (0, -1)])
def test_refuses_numbers_that_are_no_table(number, dim):
    with pytest.raises(ValueError, match="Correct the number or increase dim"):
        table_of_number(number, dim)


def test_signs_are_powers_of_minus_one():
    assert signs(np.array([False, True])).tolist() == [(-1) ** 0, (-1) ** 1]
    assert signs(np.array([0, 1], np.uint8), np.int8).tolist() == [1, -1]  # unsigned arithmetic would wrap around
    assert signs(np.array([0, 1], np.uint8)).dtype == np.float32


def test_signs_multiply_as_bits_add():
    b = points(4)
    assert (signs(b).prod(axis=1) == (-1.0) ** b.sum(axis=1)).all()


@pytest.mark.parametrize("dtype", [np.uint8, bool])
def test_signs_need_a_signed_type(dtype):
    with pytest.raises(ValueError, match="use int8"):
        signs(np.array([0, 1]), dtype)


def test_bits_undo_signs_in_both_libraries():
    b = points(3)
    assert (bits(signs(b)) == b).all()
    there_and_back = jax.jit(lambda x: bits(signs(x)))(jnp.asarray(b))
    assert there_and_back.dtype == bool
    assert (there_and_back == b).all()
