"""Named random streams: independent keys from one key and a word.

Guarantee: exact; the same key and name give the same stream, whatever other streams exist.
"""

import hashlib
import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Key, UInt32

from genscope.refusal import Refusal

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))  # of Threefry-2x32 (Salmon et al. 2011), for even and odd groups


def stream(key: Key[Array, ""], name: str) -> Key[Array, ""]:
    """Key of the stream `name` under `key`; adding a stream leaves the others unchanged."""
    return derived(key, int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big"))


def root(seed: int) -> Key[Array, ""]:
    """`jax.random.key` of a number below 2^32."""
    return _wrapped(np.array([0, seed], np.uint32))


def derived(key: Key[Array, ""], number: int) -> Key[Array, ""]:
    """The key that `jax.random.fold_in` derives from a key and a number below 2^32.

    Of a concrete key by the host, since JAX would compile a program for it, which takes a fifth of a second.
    """
    if isinstance(key, Tracer) or jr.key_impl(key) != "threefry2x32":
        return jr.fold_in(key, number)
    with np.errstate(over="ignore"):  # words wrap around
        return _wrapped(np.array(_threefry(np.asarray(jr.key_data(key)), np.uint32(number))))


def _wrapped(data: UInt32[np.ndarray, " 2"]) -> Key[Array, ""]:
    return jr.wrap_key_data(jax.device_put(data), impl="threefry2x32")


@partial(jax.jit, static_argnums=(1, 2))
def biased_bits(key: Key[Array, ""], shape: tuple[int, ...], probability: float) -> Bool[Array, "..."]:
    """Independent booleans, each true with `probability` (to within 2^-32).

    One comparison with raw words: many times faster to compile and to run than `jax.random.bernoulli`.
    """
    if not 0 <= probability <= 1:
        raise Refusal(
            f"biased_bits got {probability=}: a probability must lie between 0 and 1. Give a number in that range."
        )
    if probability == 1:  # 2^32 is not a word
        return jnp.ones(shape, bool)
    return (words(key, math.prod(shape)) < jnp.uint32(int(probability * 2**32))).reshape(shape)


def words(key: Key[Array, ""], size: int, start: UInt32[Array, ""] | int = 0) -> UInt32[Array, " size"]:
    """The random words number `start` to `start + size` (less than 2^32) of a key: those of `jax.random.bits`."""
    left, right = _threefry(jr.key_data(key), jax.lax.iota("uint32", size) + jnp.asarray(start, "uint32"))
    return left ^ right


def numbered(key: Key[Array, ""], numbers: UInt32[Array, " size"]) -> Key[Array, " size"]:
    """The keys that `jax.random.fold_in` derives from a key and each of the numbers."""
    if jr.key_impl(key) != "threefry2x32":
        return jax.vmap(lambda number: jr.fold_in(key, number))(numbers)
    return jr.wrap_key_data(jnp.stack(_threefry(jr.key_data(key), numbers), axis=1), impl="threefry2x32")


def _threefry(data: Any, counts: Any) -> tuple[Any, Any]:
    """Threefry-2x32 of the counts under a key's words, written out, for arrays of JAX and of NumPy.

    JAX keeps its rounds in a loop, which writes both halves of the state to memory five times; here XLA makes one
    vectorized pass, five times faster, that can begin anywhere.
    """
    first, second = data[0], data[1]  # all of JAX's usual key; keys of other kinds have more words
    schedule = (first, second, first ^ second ^ np.uint32(0x1BD11BDA))
    left, right = first, counts + second
    for group in range(5):
        for turn in _ROTATIONS[group % 2]:
            left = left + right
            right = left ^ (right << np.uint32(turn) | right >> np.uint32(32 - turn))
        left = left + schedule[(group + 1) % 3]
        right = right + (schedule[(group + 2) % 3] + np.uint32(group + 1))
    return left, right
