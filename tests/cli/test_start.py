"""What each command loads, package by package: docs/benchmarks.md lists it, and a start must not load more.

Time is not tested, which depends on the machine; what is loaded decides it.
"""

import importlib.metadata
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_app import QUICK

LISTED = Path(__file__).parents[2] / "docs/benchmarks.md"
REQUESTS = {
    "--help": ["--help"],
    "--version": ["--version"],
    "bound": QUICK,
    "probe": ["probe", "x0 & x1", "--bits", "4"],
    "store check": ["store", "check", "sqlite:///some.db"],
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
    done = subprocess.run(code, cwd=directory, capture_output=True, text=True, check=True)
    return {*json.loads(done.stdout.splitlines()[-1])}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_command_loads_what_is_listed_and_nothing_else(name, tmp_path):
    from genscope.lab import Store

    with Store(f"sqlite:///{tmp_path}/some.db"):
        pass
    assert loaded(REQUESTS[name], tmp_path) == listed()[name]
