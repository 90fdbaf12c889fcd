"""The wheel as a stranger gets it: in a fresh environment of each Python, with what the registry has, and no lock."""

import os
import shutil
import subprocess
import sys
import zipfile
from email.parser import BytesParser
from pathlib import Path

import pytest
from packaging.metadata import Metadata

ROOT = Path(__file__).parents[1]
VERSIONS = ("3.11", "3.12", "3.13")


def interpreter(version: str) -> str | None:
    """A Python of that version that runs: on the path, or one of pyenv's."""
    places = [shutil.which(f"python{version}"), *Path.home().glob(f".pyenv/versions/{version}.*/bin/python")]
    asked = "import sys; print('{}.{}'.format(*sys.version_info))"
    for place in filter(None, places):
        said = subprocess.run([str(place), "-c", asked], capture_output=True, text=True)
        if said.stdout.strip() == version:
            return str(place)
    return None


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> dict[str, Path]:
    """The wheel and the source archive, by their endings."""
    place = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(place)]
    subprocess.run(command, check=True, cwd=ROOT, timeout=120, capture_output=True)
    return {file.suffix: file for file in place.iterdir()}


def test_metadata_are_complete_and_valid(made):
    with zipfile.ZipFile(made[".whl"]) as wheel:
        [name] = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
        text = wheel.read(name)
        assert any(name.endswith("licenses/LICENSE") for name in wheel.namelist())
    told = Metadata.from_email(text, validate=True)
    assert told.description_content_type == "text/markdown"
    assert told.license_expression == "MIT"
    assert str(told.requires_python) == ">=3.11"
    classifiers = told.classifiers or []
    assert {f"Programming Language :: Python :: {version}" for version in VERSIONS} <= set(classifiers)
    assert {"report", "explorer", "postgres", "cluster", "torch", "all"} <= set(told.provides_extra or [])
    assert str(BytesParser().parsebytes(text).get_payload()).startswith("# genscope")


def test_the_source_archive_builds_the_same_wheel(made, tmp_path):
    shutil.unpack_archive(made[".gz"], tmp_path)
    [tree] = tmp_path.iterdir()
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path / "again")]
    subprocess.run(command, check=True, cwd=tree, timeout=120, capture_output=True)
    [again] = (tmp_path / "again").iterdir()
    ours, theirs = (sorted(zipfile.ZipFile(file).namelist()) for file in (made[".whl"], again))
    assert ours == theirs


@pytest.mark.slow
@pytest.mark.timeout(1800)  # on a busy machine
@pytest.mark.parametrize("version", VERSIONS)
def test_a_fresh_environment_without_the_lock(version, made, tmp_path):
    python = interpreter(version)
    if python is None:
        pytest.skip(f"there is no Python {version} here")
    subprocess.run([python, "-m", "venv", str(tmp_path / "own")], check=True, timeout=120)
    programs = tmp_path / "own" / "bin"
    install = [str(programs / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    installed = subprocess.run([*install, f"{made['.whl']}[report]"], capture_output=True, text=True, timeout=900)
    assert installed.returncode == 0, installed.stderr
    check = subprocess.run([str(programs / "python"), "-m", "pip", "check"], capture_output=True, text=True)
    assert check.returncode == 0, check.stdout
    # What the test suite asks of JAX is not what a stranger does, and another JAX may not know it.
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("XLA_", "JAX_", "PYTHON"))}
    for words in (
        ["genscope", "--version"],
        ["python", "-m", "genscope", "probe", "x0 & x1 ^ x2", "--bits", "4", "--json"],
        ["genscope", "construct", "maj(x1,x2,x5)", "--context-length", "8"],
        ["genscope", "learn", "x1 & x4", "--context-length", "8", "--network", "ideal", "--budget", "quick"],
        ["python", "-W", "error", "-c", "import genscope as gs; [getattr(gs, name) for name in dir(gs)]"],
    ):
        command = [str(programs / words[0]), *words[1:]]
        done = subprocess.run(command, cwd=tmp_path, env=plain, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout or words[0] == "python"
