import jax.numpy as jnp
import numpy as np
import pytest

from genscope.precision import float64


def default():
    return jnp.zeros(()).dtype


def test_holds_inside_and_ends_outside():
    assert default() == jnp.float32
    with float64():
        assert default() == jnp.float64
        with float64():
            assert default() == jnp.float64
        assert default() == jnp.float64
        third = np.asarray(jnp.asarray(1 / 3))
    assert third == 1 / 3
    assert default() == jnp.float32


def test_ends_after_an_error():
    with pytest.raises(ZeroDivisionError), float64():
        raise ZeroDivisionError
    assert default() == jnp.float32


def test_decorates_functions_that_may_be_called_twice():
    decorated = float64()(default)
    assert decorated() == decorated() == jnp.float64
    assert default() == jnp.float32
