"""Tutorials and notebooks are executed, word by word."""

import importlib.util
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
WALKER = ROOT / "tests" / "walker.py"
DOCS = ROOT / "docs"
QUICK = "black-box"  # the notebook that `make test` executes
PAGES = [*sorted((DOCS / "tutorials").glob("*.md")), *sorted((DOCS / "notebooks").glob("*.md")), DOCS / "gallery.md"]
LONG = ("learn", "your-own")  # tutorials that train
SLOW = [page for page in PAGES if page.stem in LONG or (page.parent.name != "tutorials" and page.stem != QUICK)]
NEEDS = runpy.run_path(str(DOCS / "site" / "notebooks.py"))["NEEDS"]


def follow(page, directory):
    plain = {name: value for name, value in os.environ.items() if not name.endswith("_PROMOTION")}
    plain["MPLBACKEND"] = "agg"
    return subprocess.run([sys.executable, WALKER, page], cwd=directory, env=plain, capture_output=True, text=True)


@pytest.mark.parametrize(
    "page", [pytest.param(page, id=page.stem, marks=[pytest.mark.slow] * (page in SLOW)) for page in PAGES]
)
def test_the_page_does_what_it_says(page, tmp_path):
    missing = [name for name in NEEDS.get(page.stem, ()) if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}: run make test-torch")
    walked = follow(page, tmp_path)
    assert walked.returncode == 0, walked.stdout + walked.stderr
    assert int(walked.stdout.splitlines()[-1]) >= 3


def test_a_page_that_errs_is_caught(tmp_path):
    page = tmp_path / "page"
    for text, said in (
        ("console\n$ genscope bound no-such\n", "no-such"),
        ("python\n>>> 1 + 1\n3\n\n", "Expected:\n    3"),
        ("python\nassert 1 + 1 == 3\n", "AssertionError"),
    ):
        page.write_text(f"```{text}```\n")
        walked = follow(page, tmp_path)
        assert walked.returncode == 1
        assert said in walked.stdout + walked.stderr
