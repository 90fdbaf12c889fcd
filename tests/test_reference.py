"""The reference pages are those of the present docstrings, and no layer is forgotten."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MADE = runpy.run_path(str(ROOT / "docs" / "make_reference.py"))


@pytest.mark.parametrize(("name", "text"), MADE["pages"]().items(), ids=lambda value: value[:20])
def test_a_page_is_up_to_date(name, text):
    page = ROOT / "docs" / "reference" / f"{name}.md"
    assert page.read_text(encoding="utf-8") == text, "write them again: python docs/make_reference.py"


def test_every_package_but_the_commands_has_a_page():
    packages = {path.parent.name for path in (ROOT / "src" / "genscope").glob("*/__init__.py")}
    assert packages - {"cli"} == {*MADE["LAYERS"]}


def test_signatures_have_names_and_defaults_and_no_types():
    tree = MADE["ast"].parse("def f(self, a: int, b=1, *, c: str, d=(2, 3), **e): ...")
    assert MADE["_signature"](tree.body[0]) == "f(a, b=1, *, c, d=(2, 3), **e)"
