"""Documentation is executed: the README's Python and the examples."""

import doctest
import importlib.util
from pathlib import Path

import polars as pl

from genscope import Store
from genscope.lab import run

ROOT = Path(__file__).parents[1]


def test_python_in_the_readme():
    failed, attempted = doctest.testfile(str(ROOT / "README.md"), module_relative=False, encoding="utf-8")
    assert attempted > 5
    assert failed == 0


def test_the_example_study_runs_and_resumes(tmp_path):
    spec = importlib.util.spec_from_file_location("my_study", ROOT / "examples" / "my_study.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with Store(f"sqlite:///{tmp_path / 'example.db'}") as store:
        chosen = {"context_length": [5], "votes": [1], "sample_size": [4, 200]}
        first = run(module.study, store=store, where=chosen, seeds=4)
        assert (first.trials, first.computed, first.failed) == (8, 8, 0)
        assert run(module.study, store=store, where=chosen, seeds=4).computed == 0
        frame = store.frame(module.study.name)
        few, many = (frame.filter(pl.col("sample_size") == size)["accuracy"].mean() for size in (4, 200))
        assert few < many


def test_links_between_the_pages_lead_somewhere():
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        for part in page.read_text(encoding="utf-8").split("](")[1:]:
            target = part.split(")")[0].split("#")[0]
            if target and "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} links to {target}"
