import itertools
import math

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from genscope.fourier import WalshFunction, points
from genscope.tasks import WalshSum
from tests.chance import assert_count
from tests.seeds import seed


def test_targets_are_those_of_the_function_on_the_cube():
    task = WalshSum.draw(jr.key(1), context_length=7, degree=3, sparsity=5)
    function = task.function()
    cube = points(7)
    np.testing.assert_allclose(jax.vmap(task.target)(jnp.asarray(cube)), function(cube), atol=1e-6)
    assert (function.degree, function.sparsity, function.mean) == (3, 5, 0)
    assert math.isclose(function.variance, 1, rel_tol=1e-6)
    assert min(function.coefficients) > 0
    again = WalshSum.of(function)
    assert again.function() == function
    np.testing.assert_allclose(jax.vmap(again.target)(jnp.asarray(cube)), function(cube), atol=1e-6)


def test_indicators_of_even_parity():
    task = WalshSum.draw(jr.key(1), context_length=7, degree=3, sparsity=5, basis="phi")
    function = task.function().to_phi()
    assert abs(function.constant) < 1e-6
    assert math.isclose(math.hypot(*function.coefficients), 1, rel_tol=1e-6)
    assert math.isclose(function.variance, 0.25, rel_tol=1e-6)


def test_mixed_degrees_and_signs():
    function = WalshFunction(4, ((0,), (1, 2, 3)), (0.5, -2.0), "phi", constant=0.25)
    np.testing.assert_allclose(
        jax.vmap(WalshSum.of(function).target)(jnp.asarray(points(4))), function(points(4)), atol=1e-6
    )


def test_all_sets_of_a_size_can_be_asked_for():
    task = WalshSum.draw(jr.key(2), context_length=4, degree=2, sparsity=6)
    assert {*task.function().supports} == {*itertools.combinations(range(4), 2)}


def test_supports_are_uniform_without_replacement():
    """20 sets of three pairs out of four positions, 20,000 draws; a set that is drawn 40 % too often is found."""
    draws = 20_000
    keys = jr.split(jr.key(seed(3)), draws)
    members = jax.jit(jax.vmap(lambda key: WalshSum.draw(key, context_length=4, degree=2, sparsity=3).members))(keys)
    codes = np.sort(np.asarray(members) @ (1 << np.arange(4)), axis=1)
    counts = np.unique(codes, axis=0, return_counts=True)[1].tolist()
    assert len(counts) == 20
    for count in counts:
        assert_count(count, draws, 1 / 20, planted=1.4 / 20)


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        ({"degree": 2, "sparsity": 7}, "Reduce the sparsity"),
        ({"degree": 0, "sparsity": 1}, "change the degree"),
        ({"degree": 5, "sparsity": 1}, "change the degree"),
    ],
)
def test_impossible_families_are_refused(arguments, advice):
    with pytest.raises(ValueError, match=advice):
        WalshSum.draw(jr.key(0), context_length=4, **arguments)


def test_inputs_of_another_length_are_refused():
    task = WalshSum.of(WalshFunction(3, ((0,),), (1.0,)))
    with pytest.raises(ValueError, match=r"jax\.vmap"):
        task.target(jnp.zeros(4, bool))
