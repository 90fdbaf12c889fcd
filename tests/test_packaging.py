"""The wheel, installed beside the packages of the core alone: what works there, and what names the extra it needs."""

import json
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from genscope.extras import EXTRAS
from tests.checkpoints import files

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(place)]
    subprocess.run(command, check=True, cwd=ROOT, timeout=120, capture_output=True)
    [made] = place.iterdir()
    return made


def _needed(texts: list[str], extras: frozenset[str] = frozenset()) -> Iterator[tuple[str, frozenset[str]]]:
    """Names, and extras of theirs, of the requirements that hold on this machine."""
    for requirement in map(Requirement, texts):
        environments = [default_environment() | {"extra": extra} for extra in extras or {""}]
        if requirement.marker is None or any(map(requirement.marker.evaluate, environments)):
            yield canonicalize_name(requirement.name), frozenset(requirement.extras)


def _closure(texts: list[str]) -> list[Distribution]:
    """The installed distributions that the requirements bring."""
    found, waiting = {}, list(_needed(texts))
    while waiting:
        if (key := waiting.pop()) not in found:
            found[key] = distribution(key[0])
            waiting += _needed(found[key].requires or [], key[1])
    return list({each.metadata["Name"]: each for each in found.values()}.values())


@pytest.fixture(scope="module")
def core(wheel, tmp_path_factory) -> Path:
    """The programs of an environment that holds the wheel, and what its metadata asks for without extras."""
    place = tmp_path_factory.mktemp("core")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True, timeout=120)
    install = [sys.executable, "-m", "pip", "--python", str(place / "bin" / "python"), "install", "--quiet"]
    subprocess.run([*install, "--no-deps", "--no-index", str(wheel)], check=True, timeout=120)
    [packages] = place.glob("lib/python*/site-packages")
    for each in _closure(PROJECT["dependencies"]):
        for top in {Path(file).parts[0] for file in each.files or ()} - {"..", "__pycache__"}:
            if not (packages / top).exists():
                (packages / top).symlink_to(each.locate_file(top))
    return place / "bin"


@pytest.fixture
def call(core, tmp_path):
    def call(*words: str, status: int = 0) -> str:
        """What a command prints, or its message if it is to be refused."""
        command = [str(core / "genscope"), *words]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert done.returncode == status, done.stderr
        assert "Traceback" not in done.stderr
        return done.stderr if status else done.stdout

    return call


def test_the_wheel_holds_every_file_of_the_package(wheel):
    held = set(zipfile.ZipFile(wheel).namelist())
    source = [file for file in (ROOT / "src").rglob("*") if file.is_file() and "__pycache__" not in file.parts]
    assert {str(file.relative_to(ROOT / "src")) for file in source} <= held
    assert "genscope/py.typed" in held


def test_the_version_is_that_of_the_project_everywhere(call):
    assert call("--version") == f"genscope {PROJECT['version']}\n"
    assert f"version: {PROJECT['version']}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"version = {{{PROJECT['version']}}}" in (ROOT / "docs" / "cite.md").read_text()


def test_extras_are_what_the_project_says():
    declared = {}
    for extra, texts in PROJECT["optional-dependencies"].items():
        named = [(requirement.name, requirement.extras) for requirement in map(Requirement, texts)]
        inside = {
            name for package, extras in named if package == "genscope" for each in extras for name in declared[each]
        }
        declared[extra] = inside | {package for package, _ in named if package != "genscope"}
    assert declared == {name: set(packages) for name, packages in EXTRAS.items()} | {
        "all": {package for extra, packages in EXTRAS.items() for package in packages if extra != "torch"}
    }


def test_an_import_of_the_core_is_declared(core):
    """Nothing that the core brings is an extra, or the tests below would say nothing."""
    program = "import importlib.util, sys; print(*(name for name in sys.argv[1:] if importlib.util.find_spec(name)))"
    names = {name for packages in EXTRAS.values() for name in packages}
    found = subprocess.run([str(core / "python"), "-c", program, *names], check=True, capture_output=True, text=True)
    assert found.stdout.split() == []


LINEAR = ["bound", "linear-cover", "--weight-norm", "1", "--input-norm", "1", "--epsilon", "0.1"]


def test_the_core_bounds_probes_constructs_and_reads_checkpoints(call, core, tmp_path):
    help = subprocess.run(
        [str(core / "python"), "-m", "genscope", "--help"], check=True, capture_output=True, text=True
    )
    assert "reproduce" in help.stdout
    assert json.loads(call(*LINEAR, "--points", "1000", "--json"))["value"] > 0
    assert len(json.loads(call(*LINEAR, "--vary", "points=10:1000", "--json"))["curve"]) > 1
    assert json.loads(call("probe", "x0 & x1 ^ x2", "--bits", "4", "--json"))["degree"] == 3
    call("construct", "x3 & ~x1", "--context-length", "5", "--out", "mine.safetensors")
    assert json.loads(call("probe", "mine.safetensors", "--bits", "5", "--json"))["relevant"] == [1, 3]
    call("construct", "fourier", "--components", "0,1:0.6;2,3:0.8", "--context-length", "6", "--json")
    (tmp_path / "config.json").write_text(json.dumps(files.config("BERT")))
    files.save(tmp_path / "model.safetensors", files.bert(files.draw()))
    assert len(json.loads(call("checkpoint", "model.safetensors", "--json"))["layers"]) == files.LAYERS


def test_the_core_runs_and_exports_a_study(call, tmp_path):
    (tmp_path / "my_study.py").write_text((ROOT / "examples" / "my_study.py").read_text())
    where = ["--where", "context_length=5", "--where", "votes=1", "--where", "sample_size=32"]
    call("run", "my_study.py:study", *where, "--seeds", "2")
    assert "2 trials" in call("export", "nearest-majority", "--format", "csv")


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ("report", [*LINEAR, "--vary", "points=10:1000", "--plot", "curve.svg"]),
        ("report", ["checkpoint", "none.safetensors", "--plot", "norms.svg"]),
        ("report", ["report"]),
        ("report", ["reproduce", "--only", "A1"]),
        ("explorer", ["serve", "--no-browser"]),
        ("postgres", ["export", "study", "--store", "postgresql://me:sesame@host/name"]),
        ("cluster", ["run", "edelman2022-capacity", "--cluster", "tcp://127.0.0.1:1"]),
    ],
)
def test_what_needs_an_extra_names_it(call, tmp_path, extra, words):
    message = call(*words, status=2)
    assert f"from genscope's extra {extra}. In a clone of genscope, run pip install '.[{extra}]'." in message
    assert f"this needs {', '.join(sorted(EXTRAS[extra]))}" in message
    assert "sesame" not in message
    assert not list(tmp_path.glob("*.svg"))
