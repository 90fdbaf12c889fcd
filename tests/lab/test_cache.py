import os
import subprocess
import sys
from pathlib import Path

from jax._src import compilation_cache

from genscope.lab.execution.cache import use_compilation_cache

ROOT = Path(__file__).parents[2]

CACHE = """
import pathlib, sys
import jax
from genscope.lab.execution.cache import use_compilation_cache
for directory in sys.argv[1:]:
    print(use_compilation_cache(pathlib.Path(directory)))
jax.jit(lambda x: x + 1)(1.0).block_until_ready()
"""


def test_the_compilation_cache(tmp_path, monkeypatch):
    assert use_compilation_cache(tmp_path) == Path(os.environ["JAX_COMPILATION_CACHE_DIR"])  # a user's, here the tests'
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR")
    monkeypatch.delenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS")
    file, new = tmp_path / "file", tmp_path / "new"
    file.touch()
    command = [sys.executable, "-c", CACHE, str(file), str(new)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, timeout=120)
    assert done.stdout.split() == ["None", str(new)]
    assert any(new.iterdir())


PROGRAM = """
import pathlib, sys, warnings
warnings.simplefilter("error")
import jax
from genscope.lab.execution.cache import use_compilation_cache
directory = use_compilation_cache()
def run():
    jax.clear_caches()
    assert jax.jit(lambda x: x * 3 + 1)(2.0) == 7
    return {file.name: file.read_bytes() for file in directory.iterdir()}
whole = run()
assert whole
for name, entry in whole.items():
    (directory / name).write_bytes(entry[: len(entry) // 2])
mended = run()  # a warning would be an error
assert mended.keys() == whole.keys()
assert all(len(mended[name]) > len(whole[name]) // 2 for name in whole)
"""


def test_an_entry_that_was_cut_off_is_replaced(tmp_path, monkeypatch):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    monkeypatch.setenv("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "0")
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, cwd=ROOT, timeout=120)


def test_an_entry_appears_whole(tmp_path, monkeypatch):
    """Entries are written slowly, and looked at while they are."""
    cache = compilation_cache.LRUCache(str(tmp_path), max_size=-1)  # pyright: ignore[reportPrivateImportUsage]
    entry = compilation_cache.compress_executable(bytes(1000))
    seen = []
    write = Path.write_bytes

    def slow_write(path, data):
        write(path, data[:10])
        seen.append(cache.get("key"))
        return write(path, data)

    monkeypatch.setattr(Path, "write_bytes", slow_write)
    cache.put("key", entry)
    assert seen == [None]
    assert cache.get("key") == entry


def test_a_full_disk_leaves_no_entry_and_no_rest(tmp_path, monkeypatch):
    cache = compilation_cache.LRUCache(str(tmp_path), max_size=-1)  # pyright: ignore[reportPrivateImportUsage]

    def full(path, data):
        path.touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    cache.put("key", b"entry")
    assert not list(tmp_path.iterdir())
