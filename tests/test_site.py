"""The site: its pages and links without Sphinx, and, slowly, the site itself as a reader's browser sees it."""

import doctest
import html.parser
import importlib
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).parents[1]
SITE = ROOT / "docs" / "site"


@pytest.fixture(scope="module")
def part():
    """A module of docs/site, by name."""
    sys.path.insert(0, str(SITE))
    yield importlib.import_module
    sys.path.remove(str(SITE))


@pytest.fixture(scope="module")
def staged(part, tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("staged") / "pages"
    part("build").stage(place)
    return place


def reference(staged: Path, name: str) -> str:
    """A page of the reference."""
    return (staged / "reference" / name).with_suffix(".md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["docstrings", "notebooks", "statements"])
def test_examples_in_the_modules(part, name):
    failed, attempted = doctest.testmod(part(name))
    assert attempted
    assert not failed


def test_every_page_has_its_place_in_the_navigation(staged):
    listed = {"index"}
    for index in (staged / "index.md", staged / "reference" / "index.md"):
        for tree in re.findall(r"^```\{toctree\}\n(.*?)^```$", index.read_text(), re.MULTILINE | re.DOTALL):
            names = [line for line in tree.splitlines() if line and not line.startswith(":")]
            listed |= {str((index.parent / name).relative_to(staged)) for name in names}
    assert listed == {str(page.relative_to(staged).with_suffix("")) for page in staged.rglob("*.md")}


def test_links_of_staged_pages_lead_somewhere(staged):
    checked = 0
    for page in staged.rglob("*.md"):
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} links to {target}"
                checked += 1
    assert checked > 100


def test_what_users_import_is_in_the_reference(staged):
    import genscope
    from genscope import bounds, constructions, lab, measure

    told = "\n".join(page.read_text() for page in (staged / "reference").glob("*.md"))
    for module in (bounds, constructions, lab, measure):
        names = getattr(module, "__all__", [name for name in vars(module) if not name.startswith("_")])
        for name in names:
            thing = getattr(module, name)
            if getattr(thing, "__module__", "").startswith("genscope") and hasattr(thing, "__qualname__"):
                heads = rf"\{{py:(?:class|function)\}} {thing.__name__}[(\n]"
                assert re.search(heads, told), f"{module.__name__}.{name}"
    assert genscope.__version__


def test_a_bound_tells_its_parameters_and_what_tests_it(staged):
    told = reference(staged, "bounds")
    start = told.index("{py:function} head(")
    here = told[start : told.index("{py:function}", start + 10)]
    assert "-> genscope.bounds.Bound" in here
    assert "| `epsilon` | accuracy of the cover | a finite number above 0 |" in here
    assert "genscope bound head" in here
    before = told[:start].rpartition("## attention")[2]
    assert "[EGKZ22, Corollary 4.5](../statements.md#statement-edelman2022-corollary-4-5)" in before
    assert "**Claims:** " in before


def test_statements_lead_to_code_claims_and_figures(part):
    found = part("statements").statements()
    lemma = found["edelman2022", "Lemma", "4.3"]
    assert "genscope.bounds.attention" in lemma.modules
    assert lemma.claims == ["A1"]
    assert lemma.studies == ["edelman2022-lipschitz"]
    assert ("edelman2022", "Theorem", "4") not in found  # it is Zhang's
    claims = {claim for each in found.values() for claim in each.claims}
    assert len(claims) >= 25


def test_formal_versions_stand_beside_what_exists(part, staged):
    told = reference(staged, "bounds") + reference(staged, "measure")
    public = {thing.public for group in part("objects").things().values() for thing in group}
    for each in part("lean").FORMAL:
        assert each.ours in public
        assert told.count(f"[`{each.theirs}`]({each.link})") == 1


def test_a_tutorial_becomes_a_notebook(part):
    notebooks = part("notebooks")
    file, prompts = "# mine.py\nx = 1\n", ">>> x = 1\n>>> x + 1\n2\n>>> for i in ():\n...     i\n\n"
    page = f"# T\n\nWords.\n\n```python\n{file}```\n\n```python\n{prompts}```\n"
    assert [cell.text for cell in notebooks.cells(page)] == [
        "# T\n\nWords.",
        "%%writefile mine.py\n# mine.py\nx = 1",
        "x = 1\nx + 1",
        "for i in ():\n    i",
    ]


class Page(html.parser.HTMLParser):
    """Ids, links and loaded files of a page."""

    def __init__(self, file: Path):
        super().__init__()
        self.ids, self.links, self.loaded, self.elements = set(), [], [], set()
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.elements.add(tag)
        self.ids |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if tag in ("img", "script", "iframe", "source") and given.get("src"):
            self.loaded.append(given["src"])
        if tag == "link" and given.get("rel") != "author":
            self.loaded.append(given["href"])


@pytest.mark.slow
@pytest.mark.timeout(1800)  # on a busy machine
def test_the_site_is_built_without_a_warning_or_a_dead_link(tmp_path):
    out = tmp_path / "site"
    command = [
        sys.executable,
        str(SITE / "build.py"),
        "--no-execute",
        "--out",
        str(out),
        "--stage",
        str(tmp_path / "s"),
    ]
    built = subprocess.run(command, capture_output=True, text=True, timeout=1700)
    assert built.returncode == 0, built.stdout + built.stderr
    assert "WARNING" not in built.stderr
    pages = {file: Page(file) for file in out.rglob("*.html")}
    assert len(pages) > 40
    assert "math" in pages[out / "reference" / "bounds.html"].elements
    assert (out / "searchindex.js").stat().st_size > 10_000
    for file, page in pages.items():
        for target in page.loaded:
            assert not urlsplit(target).netloc, f"{file.name} loads {target} from elsewhere"
        for target in page.links + page.loaded:
            there = urlsplit(target)
            if there.scheme or there.netloc:
                continue
            found = (file.parent / unquote(there.path)).resolve() if there.path else file
            assert found.exists(), f"{file.name} leads to {target}"
            if there.fragment and found in pages:
                assert unquote(there.fragment) in pages[found].ids, f"{file.name} leads to {target}"
