import jax
import jax.random as jr
import numpy as np
import pytest

from genscope.compilation import FASTER, ONCE


@pytest.mark.parametrize("options", [FASTER, ONCE])
def test_the_compiler_knows_the_options_and_computes_the_same(options):
    def program(key):
        bits = jr.bernoulli(key, 0.5, (50,))
        return bits, jr.normal(key, (50,)) ** 2

    bits, squares = jax.jit(program, compiler_options=options)(jr.key(0))
    same_bits, same_squares = program(jr.key(0))
    assert (bits == same_bits).all()
    np.testing.assert_allclose(squares, same_squares, rtol=1e-5)


def test_unknown_options_are_refused():  # or the test above would say nothing
    with pytest.raises(Exception, match="xla_cpu_no_such_option"):
        jax.jit(lambda x: x + 1, compiler_options={"xla_cpu_no_such_option": False})(1.0)
