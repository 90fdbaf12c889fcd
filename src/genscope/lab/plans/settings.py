"""JAX's settings that change what a trial computes, whatever its code says: precision, and how random bits are made.

Guarantee: exact for the settings below, as a new thread sees them; those that have JAX's own default are left out.
"""

import threading
from typing import Any

_DEFAULTS = {
    "jax_enable_x64": False,
    "jax_default_matmul_precision": None,
    "jax_default_prng_impl": "threefry2x32",
    "jax_threefry_partitionable": True,
    "jax_random_seed_offset": 0,
}


def settings() -> dict[str, Any]:
    """The settings of this process that are not JAX's own; contexts of the caller's thread do not reach trials."""
    import jax

    found: dict[str, Any] = {}

    def look() -> None:
        found.update({name: getattr(jax.config, name, default) for name, default in _DEFAULTS.items()})

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    return {name: value for name, value in found.items() if value != _DEFAULTS[name]}
