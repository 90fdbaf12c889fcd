"""Words are those of JAX's own generator, from wherever they begin."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from genscope.random import biased_bits, derived, numbered, root, words


@pytest.mark.parametrize(("size", "start"), [(1, 0), (1000, 0), (7, 990), (0, 5)])
def test_words_are_those_of_jax(size, start):
    key = jr.key(11)
    expected = jr.bits(key, (1000,), "uint32")[start : start + size]
    np.testing.assert_array_equal(words(key, size, start), expected)
    np.testing.assert_array_equal(jax.jit(words, static_argnums=1)(key, size, jnp.uint32(start)), expected)


def test_numbered_keys_are_those_of_fold_in():
    key, numbers = jr.key(5), jnp.array([0, 1, 7, 2**31, 2**32 - 1], "uint32")
    for compiled in (numbered, jax.jit(numbered)):
        for number, found in zip(numbers, compiled(key, numbers), strict=True):
            assert jr.key_data(found).tolist() == jr.key_data(jr.fold_in(key, number)).tolist()


@pytest.mark.parametrize("number", [0, 1, 7, 2**31, 2**32 - 1])
def test_keys_of_the_host_are_those_of_jax(number):
    key = root(11)
    assert jr.key_data(key).tolist() == jr.key_data(jr.key(11)).tolist()
    expected = jr.key_data(jr.fold_in(key, np.uint32(number))).tolist()
    for one in (derived, jax.jit(derived, static_argnums=1)):
        assert jr.key_data(one(key, number)).tolist() == expected


def test_keys_of_another_kind_derive_as_jax_does():
    key = jr.key(11, impl="rbg")
    assert jr.key_data(derived(key, 7)).tolist() == jr.key_data(jr.fold_in(key, 7)).tolist()


def test_another_key_gives_other_words():
    """Of 1,000 pairs of words one is equal with probability 2.3e-7."""
    assert not np.any(np.asarray(words(jr.key(0), 1000)) == np.asarray(words(jr.key(1), 1000)))


def test_a_probability_beyond_one_is_refused():
    with pytest.raises(ValueError, match="Give a number in that range"):
        biased_bits(jr.key(0), (3,), 1.5)


@pytest.mark.parametrize("probability", [0.0, 0.3, 1.0])
def test_biased_bits_are_the_small_words(probability):
    expected = np.asarray(jr.bits(jr.key(11), (35,), "uint32")) < probability * 2**32
    np.testing.assert_array_equal(biased_bits(jr.key(11), (5, 7), probability), expected.reshape(5, 7))


def test_keys_of_another_kind_serve_too():
    """2,000 fair bits: fewer than 800 or more than 1,200 ones have probability 2e-18."""
    key = jr.key(11, impl="rbg")
    assert 800 < int(biased_bits(key, (2000,), 0.5).sum()) < 1200
    assert len({*words(numbered(key, jnp.arange(3, dtype="uint32"))[1], 5).tolist()} - {*words(key, 5).tolist()}) == 5
