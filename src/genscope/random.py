"""Named random streams: independent keys from one key and a word.

Source: None (house convention).
Departures: None.
Guarantee: exact; the same key and name give the same stream, whatever other streams exist.
"""

import hashlib
import math

import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Key, UInt32


def stream(key: Key[Array, ""], name: str) -> Key[Array, ""]:
    """Key of the stream `name` under `key`; adding a stream leaves the others unchanged."""
    return jr.fold_in(key, int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big"))


def biased_bits(key: Key[Array, ""], shape: tuple[int, ...], probability: float) -> Bool[Array, "..."]:
    """Independent booleans, each true with `probability` (to within 2^-32).

    A flat draw of raw words and one comparison: several times faster to compile and to run than `jax.random.bernoulli`.
    """
    if not 0 <= probability <= 1:
        raise ValueError(
            f"biased_bits got {probability=}: a probability lies between 0 and 1. Give a number in that range."
        )
    if probability == 1:  # 2^32 is not a word
        return jnp.ones(shape, bool)
    words: UInt32[Array, " size"] = jr.bits(key, (math.prod(shape),), "uint32")
    return (words < jnp.uint32(int(probability * 2**32))).reshape(shape)
