"""Settings that change what a trial computes, whatever its code says: JAX's, and options of its compiler.

Guarantee: exact for the settings below, as a new thread sees them, and for the environment of now; what has its own
default is left out, and so are options that change no numbers.
"""

import os
import threading
from typing import Any

_DEFAULTS = {
    "jax_enable_x64": False,
    "jax_default_matmul_precision": None,
    "jax_default_prng_impl": "threefry2x32",
    "jax_threefry_partitionable": True,
    "jax_random_seed_offset": 0,
    "jax_disable_jit": False,
    "jax_disable_most_optimizations": False,
}
# Threads are counted, devices are named, and what is written down changes nothing.
_OTHERS = ("--xla_cpu_multi_thread_eigen", "--xla_force_host_platform_device_count", "--xla_dump", "--xla_gpu")


def settings() -> dict[str, Any]:
    """The settings of this process that are not JAX's own; contexts of the caller's thread do not reach trials."""
    import jax

    found: dict[str, Any] = {}

    def look() -> None:
        found.update({name: getattr(jax.config, name, default) for name, default in _DEFAULTS.items()})

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    changed = {name: value for name, value in found.items() if value != _DEFAULTS[name]}
    flags = [flag for flag in os.environ.get("XLA_FLAGS", "").split() if not flag.startswith(_OTHERS)]
    return changed | ({"XLA_FLAGS": " ".join(flags)} if flags else {})
