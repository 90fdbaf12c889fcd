"""Documentation is executed: the README's Python and the examples."""

import doctest
import importlib.util
import re
import subprocess
from pathlib import Path
from typing import Any

import polars as pl

from genscope import Store
from genscope.lab import run, select

ROOT = Path(__file__).parents[1]
GENERATED = {
    "statements.md",
    "commands.md",
    "bounds.md",
    "measure.md",
}  # pages that the site has, and the repository has not


def test_python_in_the_readme():
    failed, attempted = doctest.testfile(str(ROOT / "README.md"), module_relative=False, encoding="utf-8")
    assert attempted > 5
    assert failed == 0


def loaded(file: Path) -> Any:
    """The module of a file that is no part of a package."""
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_table_of_networks_is_that_of_its_kept_answers():
    """An answer whose recipe or revision is no longer the program's is not among them."""
    table = loaded(ROOT / "docs" / "make_learning_table.py")
    advice = "run python docs/make_learning_table.py --kept, or without it to ask what is not known"
    assert table.PAGE.read_text(encoding="utf-8") == table.page(table.kept()), advice


def test_the_example_study_runs_and_resumes(tmp_path):
    module = loaded(ROOT / "examples" / "my_study.py")
    with Store(f"sqlite:///{tmp_path / 'example.db'}") as store:
        chosen = {"context_length": [5], "votes": [1], "sample_size": [4, 200]}
        first = run(module.study, select(module.study, where=chosen, seeds=4), store=store)
        assert (first.trials, first.computed, first.failed) == (8, 8, 0)
        assert run(module.study, select(module.study, where=chosen, seeds=4), store=store).computed == 0
        frame = store.frame(module.study.name)
        few, many = (frame.filter(pl.col("sample_size") == size)["accuracy"].mean() for size in (4, 200))
        assert few < many


def test_the_table_of_packages_tells_what_each_imports():
    guide = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \|.*\| ([^|]+) \|$", guide, flags=re.MULTILINE)
    packages = {name for name, _ in rows}
    assert {"lab", "cli", "domination"} <= packages
    for name, told in rows:
        where = ROOT / "src" / "genscope" / name
        files = where.rglob("*.py") if where.is_dir() else [where.with_suffix(".py")]
        text = "\n".join(file.read_text(encoding="utf-8") for file in files)
        lines = re.findall(r"^ *from genscope(?:\.(\w+)\S*)? import (.+)$", text, flags=re.MULTILINE)
        found = {word for package, names in lines for word in ([package] if package else re.findall(r"\w+", names))}
        listed = packages - {"cli"} if told.startswith("all") else set()
        assert listed ^ {*re.findall(r"`(\w+)`", told)} == found & packages - {name}, name


def test_what_is_to_be_registered_has_its_place():
    """Every file that the table names is there, and defines the name that is given after it."""
    guide = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| an? [^|]+\|[^|]+\|([^|]+)\|$", guide, flags=re.MULTILINE)
    assert len(rows) == 12
    for row in rows:
        places = re.findall(r"`((?:[a-z_]+/)+[\w.]*)(?:: (\w+))?`", row)
        assert places, row
        for path, name in places:
            found = [base / path for base in (ROOT, ROOT / "src" / "genscope") if (base / path).exists()]
            assert found, path
            assert not name or re.search(
                rf"^{name}\b.* = ", found[0].read_text(encoding="utf-8"), flags=re.MULTILINE
            ), name


def test_links_between_the_pages_lead_somewhere():
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        for part in page.read_text(encoding="utf-8").split("](")[1:]:
            target = part.split(")")[0].split("#")[0]
            if target and "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_nothing_refers_to_pages_that_are_not_here():
    """A name ending in .md is that of a page of this repository."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    pages = {Path(name).name for name in listed} | GENERATED
    for name in listed:
        if name.endswith((".py", ".md", ".toml", ".js", ".html")):
            for page in re.findall(r"[A-Za-z0-9_-]+\.md\b", (ROOT / name).read_text(encoding="utf-8")):
                assert page in pages, f"{name} refers to {page}"
