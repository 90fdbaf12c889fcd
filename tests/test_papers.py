import dataclasses
import re
import subprocess
import sys
from pathlib import Path

import pytest

from genscope.papers import CITED, PAPERS

ERRATA = Path(__file__).parents[1] / "docs" / "errata.md"


@pytest.mark.parametrize(("key", "paper"), (PAPERS | CITED).items())
def test_a_key_is_first_author_and_year(key, paper):
    surname = re.split(r"[ -]", paper.authors[0].split(" ", 1)[1].split(". ")[-1])[0]
    assert key == f"{surname.lower()}{paper.year}"
    assert paper.link.startswith("https://")
    assert paper.title
    assert len(set(paper.errata)) == len(paper.errata)


@pytest.mark.parametrize("key", PAPERS)
def test_the_three_papers_are_linked_where_anyone_may_read_them(key):
    assert re.fullmatch(r"https://arxiv\.org/abs/\d{4}\.\d{5}", PAPERS[key].link)


def test_the_three_papers_are_there_and_frozen():
    assert list(PAPERS) == ["edelman2022", "mousavi2025", "lintilhac2026"]
    with pytest.raises(dataclasses.FrozenInstanceError):
        PAPERS["edelman2022"].year = 2021  # pyright: ignore[reportAttributeAccessIssue]  # which is the point


@pytest.mark.parametrize("key", PAPERS)
def test_the_page_has_one_numbered_row_for_each_erratum(key):
    section = ERRATA.read_text(encoding="utf-8").split(f"## {key}")[1].split("\n## ")[0]
    numbers = [int(row) for row in re.findall(r"^\| (\d+) \|", section, flags=re.MULTILINE)]
    assert numbers == list(range(1, len(PAPERS[key].errata) + 1))


def test_the_bibliography_does_not_load_jax():
    code = "import sys, genscope.papers; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
