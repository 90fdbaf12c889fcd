"""The persistent compilation cache: programs compiled once per machine type, in the user's cache directory.

JAX writes an entry in place, so that another thread or process may read half of it, warn and compile again; and an
entry that was cut off by a full disk or a kill is read, warned of and never replaced. Here entries are written aside
and renamed, and those that cannot be read are removed.

Guarantee: a program is only reused by the same JAX version on a processor with the same features; an entry is whole
or not there.
"""

import contextlib
import hashlib
import os
import uuid
from pathlib import Path

import platformdirs

from genscope.lab.execution.provenance import processor_features


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

    _keep_entries_whole()
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


def _keep_entries_whole() -> None:
    """Replace JAX's class of caches by one that writes aside; JAX has no public way to do so."""
    from jax._src import compilation_cache, lru_cache

    if compilation_cache.LRUCache is not lru_cache.LRUCache:  # pyright: ignore[reportPrivateImportUsage]  # JAX has no other
        return
    decompress = compilation_cache.decompress_executable

    class WholeEntries(lru_cache.LRUCache):
        def get(self, key: str) -> bytes | None:
            try:
                entry = super().get(key)
                if entry is not None:
                    decompress(entry)
            except FileNotFoundError:  # somebody removed it just now
                return None
            except Exception:  # of whichever library compressed it: the entry is cut off
                self._file(key).unlink(missing_ok=True)
                return None
            return entry

        def put(self, key: str, value: bytes) -> None:
            if self.eviction_enabled:  # the user limits the size; JAX then locks the directory
                super().put(key, value)
                return
            aside = self._file(f".{key}-{uuid.uuid4().hex}")
            try:
                aside.write_bytes(value)
                aside.replace(self._file(key))
            except OSError:  # a full disk: the program is compiled, which is what matters
                with contextlib.suppress(OSError):
                    aside.unlink(missing_ok=True)

        def _file(self, key: str) -> Path:
            return Path(self.path) / f"{key}-cache"

    compilation_cache.LRUCache = WholeEntries  # pyright: ignore[reportPrivateImportUsage]  # see above
