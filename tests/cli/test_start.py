"""What each command loads, package by package: docs/benchmarks.md lists it, and a start must not load more.

Time is not tested, which depends on the machine; what is loaded decides it.
"""

import importlib.metadata
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from genscope.lab import Record, Store, select
from genscope.lab.plans.design import rounds
from genscope.studies import edelman2022_and, mousavi2025_lower
from tests.cli.test_app import QUICK

LISTED = Path(__file__).parents[2] / "docs/benchmarks.md"
REQUESTS = {
    "--help": ["--help"],
    "--version": ["--version"],
    "bound": QUICK,
    "probe": ["probe", "x0 & x1", "--bits", "4"],
    "store check": ["store", "check", "sqlite:///genscope.db"],
    "list": ["list"],
}
# What genscope itself asks for; packages below these come and go with versions.
ASKED = {
    re.split(r"[^\w-]", text)[0].lower().replace("-", "_") for text in importlib.metadata.requires("genscope") or ()
}
_LOADED = """
import json, sys
from genscope.cli._app import app
try: app(json.loads(sys.argv[1]))
except SystemExit as end: assert not end.code, end.code
outside = {name.partition(".")[0] for name in sys.modules} & {*json.loads(sys.argv[2])}
own = {".".join(name.split(".")[:2]) for name in sys.modules if name.startswith("genscope.")}
print("\\n" + json.dumps(sorted(outside | own)))
"""


def listed() -> dict[str, set[str]]:
    rows = re.findall(r"^\| `genscope ([^`]+)` \|[^|]*\|[^|]*\| (.+) \|$", LISTED.read_text(), re.MULTILINE)
    return {name: {*re.findall(r"`([\w.]+)`", packages)} for name, packages in rows}


def loaded(request: list[str], directory: Path) -> set[str]:
    code = [sys.executable, "-c", _LOADED, json.dumps(request), json.dumps(sorted(ASKED))]
    place = os.environ | {"XDG_CACHE_HOME": str(directory)}
    done = subprocess.run(code, cwd=directory, env=place, capture_output=True, text=True, check=True)
    return {*json.loads(done.stdout.splitlines()[-1])}


@pytest.fixture
def place(tmp_path):
    """A directory with a store in it, in which some trials of a search and of a grid are stored."""
    with Store(f"sqlite:///{tmp_path}/genscope.db") as store:
        for study, values in ((edelman2022_and.STUDY, {"success": True}), (mousavi2025_lower.HEADS, {"risk": 1.0})):
            chosen = select(study, "quick")
            [*listed] = next(iter(rounds(chosen, chosen.points[0], lambda trials: {})))
            store.add([Record(trial, values) for trial in listed])
    return tmp_path


@pytest.mark.parametrize("name", [name for name in REQUESTS if name != "list"])
def test_a_command_loads_what_is_listed_and_nothing_else(name, place):
    assert loaded(REQUESTS[name], place) == listed()[name]


def test_a_list_loads_studies_once(place):
    studies = {"jax", "genscope.studies", "genscope.claims"}
    assert loaded(["list"], place) > studies
    assert loaded(["list"], place) == listed()["list"]
    assert not studies & listed()["list"]


_THREADS = """
import json, sys
from genscope.cli import main
try: main()
except SystemExit as end: assert not end.code, end.code
from threadpoolctl import threadpool_info
print("\\n" + json.dumps([library["num_threads"] for library in threadpool_info()]))
"""


@pytest.mark.parametrize(("given", "threads"), [({}, 1), ({"OPENBLAS_NUM_THREADS": "2"}, 2)])
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores to see a difference")
def test_commands_compute_on_one_thread_unless_told_otherwise(place, given, threads):
    outside = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    code = [sys.executable, "-c", _THREADS, "list"]
    done = subprocess.run(code, cwd=place, env=outside | given, capture_output=True, text=True, check=True)
    assert {*json.loads(done.stdout.splitlines()[-1])} == {threads}
