"""The persistent compilation cache: programs compiled once per machine type, in the user's cache directory.

Source: None (house design).
Departures: None.
Guarantee: a program is only reused by the same JAX version on a processor with the same features.
"""

import hashlib
import os
from pathlib import Path

import platformdirs

from genscope.lab.provenance import processor_features


def cache_directory() -> Path:
    """Where compiled programs of this JAX on this kind of machine are kept."""
    import jax

    features = hashlib.sha256(processor_features().encode()).hexdigest()[:12]
    return Path(platformdirs.user_cache_dir("genscope")) / "xla" / f"{jax.__version__}-{features}"


def use_compilation_cache(directory: Path | None = None) -> Path | None:
    """Turn the cache on for this process; None, and no cache, where the directory cannot be written.

    A cache that the user has set (`JAX_COMPILATION_CACHE_DIR`) stays.
    """
    import jax

    chosen = jax.config.values["jax_compilation_cache_dir"]
    if chosen:
        return Path(chosen)
    directory = directory or cache_directory()
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    if not os.access(directory, os.W_OK):
        return None
    jax.config.update("jax_compilation_cache_dir", str(directory))
    # Small programs count: a study has hundreds of them, and processes side by side share them.
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)
    return directory
