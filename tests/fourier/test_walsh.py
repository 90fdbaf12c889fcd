import itertools
import math

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from genscope.fourier import WalshFunction, parity, points, random_function, tiling
from genscope.precision import float64
from tests.chance import assert_count

HAND = WalshFunction(dim=3, supports=((0, 1), (2,)), coefficients=(1.0, 0.5), constant=0.25)


def brute(function: WalshFunction, x) -> float:
    """The definition, term by term, in Python integers."""
    value = function.constant
    for support, coefficient in zip(function.supports, function.coefficients, strict=True):
        chi = (-1) ** sum(int(x[i]) for i in support)
        value += coefficient * (chi if function.basis == "chi" else (1 + chi) / 2)
    return value


@st.composite
def expansions(draw, largest=7):
    """Arguments of a function; the function itself is made in the test, since beartype draws random numbers."""
    dim = draw(st.integers(1, largest))
    sets = st.sets(st.integers(0, dim - 1), min_size=1).map(lambda s: tuple(sorted(s)))
    supports = tuple(draw(st.lists(sets, max_size=6, unique=True)))
    numbers = st.floats(-4, 4, allow_subnormal=False)
    coefficients = tuple(draw(numbers) for _ in supports)
    return dim, supports, coefficients, draw(st.sampled_from(["chi", "phi"])), draw(numbers)


@given(expansions())
def test_values_table_and_conversions_are_the_definition(arguments):
    function = WalshFunction(*arguments)
    x = points(function.dim)
    expected = [brute(function, row) for row in x]
    for same in (
        function,
        function.to_chi(),
        function.to_phi(),
        function.to_chi().to_phi(),
        function.to_phi().to_chi(),
    ):
        np.testing.assert_allclose(same(x), expected, atol=1e-13)
        np.testing.assert_allclose(same.truth_table(), expected, atol=1e-13)
        assert same.degree == function.degree
        assert same.sparsity == function.sparsity
    assert function.mean == pytest.approx(np.mean(expected), abs=1e-13)
    assert function.variance == pytest.approx(np.var(expected), abs=1e-12)
    flips = [
        i
        for i in range(function.dim)
        if np.abs(function(x) - function(x ^ (np.arange(function.dim) == i))).max() > 1e-9
    ]
    assert set(flips) <= set(function.relevant)


def test_by_hand():
    assert (HAND.degree, HAND.sparsity, HAND.relevant) == (2, 2, (0, 1, 2))
    assert (HAND.mean, HAND.variance) == (0.25, 1.25)
    assert HAND.to_phi() == WalshFunction(3, ((0, 1), (2,)), (2.0, 1.0), "phi", -1.25)
    assert HAND(np.array([0, 1, 1])) == 0.25 - 1.0 - 0.5


def test_constants_and_zero_coefficients():
    constant = WalshFunction(2, (), (), constant=3.0)
    assert (constant.degree, constant.sparsity, constant.relevant, constant.variance) == (0, 0, (), 0.0)
    assert constant(points(2)).tolist() == [3.0] * 4
    assert WalshFunction(0, (), (), "phi", 2.0).truth_table().tolist() == [2.0]
    nearly = WalshFunction(4, ((0,), (1, 2, 3)), (1.0, 0.0))
    assert (nearly.degree, nearly.sparsity, nearly.relevant) == (1, 1, (0,))


@pytest.mark.parametrize("dim", [8, 63, 64, 65, 200])
def test_long_inputs_of_any_bit_type_and_shape(dim):
    function = random_function(jr.key(dim), dim=dim, degree=5, sparsity=20)
    x = np.random.default_rng(dim).integers(0, 2, (3, 4, dim))
    expected = [[brute(function, row) for row in rows] for rows in x]
    for kind in (bool, np.int8, np.uint8, np.uint64, np.int64):
        np.testing.assert_allclose(function(x.astype(kind)), expected, atol=1e-13)
    np.testing.assert_allclose(function(np.asfortranarray(x)), expected, atol=1e-13)
    assert function(x[:, :0]).shape == (3, 0)


def test_more_inputs_than_a_block_and_functions_read_from_their_table():
    few = random_function(jr.key(0), dim=16, degree=3, sparsity=4)
    many = random_function(jr.key(0), dim=16, degree=3, sparsity=100)
    for function in (few, many):
        np.testing.assert_allclose(function(points(16)), function.truth_table(), atol=1e-13)


def test_jax_inside_jit_and_vmap():
    x = points(6)
    for basis in ("chi", "phi"):
        function = random_function(jr.key(1), dim=6, degree=3, sparsity=5, basis=basis)
        fast = jax.jit(jax.vmap(function))(jnp.asarray(x))
        assert fast.dtype == np.float32
        np.testing.assert_allclose(fast, function(x), atol=1e-6)
        np.testing.assert_allclose(function(jnp.asarray(x, np.int32)), function(x), atol=1e-6)
    with float64():
        np.testing.assert_allclose(function(jnp.asarray(x)), function(x), atol=1e-14)
    assert WalshFunction(6, (), (), constant=1.0)(jnp.asarray(x)).tolist() == [1.0] * 64


@pytest.mark.parametrize("basis", ["chi", "phi"])
@pytest.mark.parametrize(
    ("dim", "degree", "sparsity"), [(5, 2, 10), (20, 3, 20), (1000, 5, 20), (6, 6, 1), (64, 1, 33)]
)
def test_random_functions_are_homogeneous_positive_and_of_length_one(dim, degree, sparsity, basis):
    function = random_function(jr.key(3), dim=dim, degree=degree, sparsity=sparsity, basis=basis)
    assert {len(s) for s in function.supports} == {degree}
    assert len(set(function.supports)) == sparsity == function.sparsity
    assert min(function.coefficients) > 0
    assert math.fsum(a * a for a in function.coefficients) == pytest.approx(1)
    assert function.variance == pytest.approx(1 if basis == "chi" else 0.25)
    assert function == random_function(jr.key(3), dim=dim, degree=degree, sparsity=sparsity, basis=basis)


@pytest.mark.parametrize("sparsity", [1, 4])  # by rejection, and from the list of all six
def test_every_support_is_equally_likely(sparsity):
    """500 functions; a set that is drawn in a fifth more of them is found."""
    keys = jr.split(jr.key(5), 500)
    seen = [s for key in keys for s in random_function(key, dim=4, degree=2, sparsity=sparsity).supports]
    for support in itertools.combinations(range(4), 2):
        assert_count(seen.count(support), 500, sparsity / 6, planted=sparsity / 6 + 0.22)


def test_the_links_between_the_bases_of_the_paper():
    chi, phi = (random_function(jr.key(7), dim=8, degree=2, sparsity=5, basis=b) for b in ("chi", "phi"))
    x = points(8)
    np.testing.assert_allclose(chi(x), 2 * phi(x) - sum(phi.coefficients), atol=1e-13)
    tiles = tiling(12, 3)
    assert tiles.supports == ((0, 1, 2), (3, 4, 5), (6, 7, 8), (9, 10, 11))
    assert tiles.coefficients == (0.5,) * 4
    assert parity(4).supports == ((0, 1, 2, 3),)
    assert (parity(4)(points(4)) == 1 - points(4).sum(1) % 2).all()


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        ((3, ((0, 3),), (1.0,)), "Sort it and correct the indices"),
        ((3, ((1, 0),), (1.0,)), "Sort it and correct the indices"),
        ((3, ((1, 1),), (1.0,)), "Sort it and correct the indices"),
        ((3, ((),), (1.0,)), "the empty set is `constant`"),
        ((3, ((-1, 1),), (1.0,)), "Sort it and correct the indices"),
        ((3, ((0,), (0,)), (1.0, 2.0)), "Add up the coefficients"),
        ((3, ((0,),), (1.0, 2.0)), "equally many of both"),
        ((3, ((0,),), (math.nan,)), "Remove NaN and infinity"),
        ((3, ((0,),), (1.0,), "chi", math.inf), "Remove NaN and infinity"),
        ((-1, (), ()), "Give 0 or more"),
    ],
)  # fmt: skip
def test_refuses_what_is_no_expansion(arguments, advice):
    with pytest.raises(ValueError, match=advice):
        WalshFunction(*arguments)


@pytest.mark.parametrize(
    ("x", "advice"),
    [
        (np.zeros((2, 4), bool), r"shape \[..., 3\]"),
        (np.array(1), r"shape \[..., 3\]"),
        (np.array([1, -1, 1]), "Convert signs"),
        (np.array([0.0, 1.0, 0.0]), "Convert signs"),
    ],
)
def test_refuses_what_are_no_bits(x, advice):
    with pytest.raises(ValueError, match=advice):
        HAND(x)


@pytest.mark.parametrize(
    ("make", "advice"),
    [
        (lambda: random_function(jr.key(0), dim=4, degree=2, sparsity=7), "Reduce the sparsity"),
        (lambda: random_function(jr.key(0), dim=4, degree=5, sparsity=1), "change the degree"),
        (lambda: random_function(jr.key(0), dim=4, degree=0, sparsity=1), "change the degree"),
        (lambda: tiling(10, 3), "the degree must divide dim"),
        (lambda: tiling(10, 0), "the degree must divide dim"),
        (lambda: WalshFunction(25, ((0,),), (1.0,)).truth_table(), "Evaluate the function at the inputs"),
    ],
)
def test_refuses_families_that_do_not_exist(make, advice):
    with pytest.raises(ValueError, match=advice):
        make()
