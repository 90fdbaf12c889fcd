"""float64(): the one place that knows how JAX spells 64-bit mode.

Guarantee: exact; the mode holds inside the context, in this thread, and ends with it, also after an error.
"""

import contextlib
from collections.abc import Iterator

import jax


@contextlib.contextmanager
def float64() -> Iterator[None]:
    """Arrays made inside this context (or decorated function) are 64-bit by default.

    Arrays made outside keep their precision, so make the model and the data inside.

    >>> import jax.numpy as jnp
    >>> with float64():
    ...     inside = jnp.zeros(()).dtype
    >>> print(inside, jnp.zeros(()).dtype)
    float64 float32
    """
    with jax.enable_x64(True):
        yield
