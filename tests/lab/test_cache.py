import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

CACHE = """
import pathlib, sys
import jax
from genscope.lab import use_compilation_cache
chosen = use_compilation_cache(pathlib.Path(sys.argv[1]))
print(chosen)

if str(chosen) == sys.argv[1]:
    jax.jit(lambda x: x + 1)(1.0).block_until_ready()
"""


def test_the_compilation_cache(tmp_path, monkeypatch):
    def cache(directory):
        command = [sys.executable, "-c", CACHE, str(directory)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, timeout=120)
        return done.stdout.strip()

    assert cache(tmp_path) != str(tmp_path)  # the user's, here the tests' own
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR")
    monkeypatch.delenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS")
    assert cache(tmp_path / "new") == str(tmp_path / "new")
    assert any((tmp_path / "new").iterdir())
    (tmp_path / "file").touch()
    assert cache(tmp_path / "file") == "None"
