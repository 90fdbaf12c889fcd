"""The documentation as a site, from this repository alone: `python docs/site/build.py [--no-execute]`.

Pages are plain Markdown, in docs/ and beside the README. They are put together in build/docs with those that are
generated (reference, commands, statements), tutorials become notebooks, and Sphinx makes the site in build/site.
Warnings are errors.

Guarantee: outputs are those of the code in this tree: a cache of executed notebooks is kept by the digest of the
package's source.
"""

import argparse
import hashlib
import os
import re
import shutil
import sys
from pathlib import Path

SITE = Path(__file__).parent
ROOT = SITE.parents[1]
DOCS = ROOT / "docs"
STAGE = ROOT / "build" / "docs"
BESIDE = ("CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "RELEASING.md", "SECURITY.md")
NAVIGATION = {
    "Guide": ("guide", "learning", "explorer", "scale", "notation", "cite"),
    "Tutorials": tuple(
        f"tutorials/{name}"
        for name in (
            "learn",
            "one-figure",
            "your-own",
            "probe",
            "certify",
            "checkpoint",
            "my-pytorch-classifier",
            "my-hugging-face-encoder",
        )
    ),
    "Notebooks": (
        *(f"notebooks/{name}" for name in ("log-t", "transformer", "black-box", "flat-minima", "covering-numbers")),
        "gallery",
    ),
    "Evidence": ("claims", "statements", "errata", "preregistration", "benchmarks"),
    "Reference": ("reference/commands", "reference/index"),
    "Project": ("architecture", "decisions", "CHANGELOG", "CONTRIBUTING", "SECURITY", "CODE_OF_CONDUCT", "RELEASING"),
}
# Generated pages, which a repository does not have: where their titles are emphasised, the site links them.
GENERATED = {"From theorem to figure": "statements", "Commands": "reference/commands", "Reference": "reference/index"}
TITLE = re.compile(rf"(?<!\*)\*({'|'.join(GENERATED)})\*(?!\*)")
LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)\s]*)?\))")


def stage(place: Path) -> None:
    """Put all pages together in an empty directory."""
    import commands
    import notebooks
    import reference
    import statements

    shutil.rmtree(place, ignore_errors=True)
    for page in [*DOCS.rglob("*.md"), *(ROOT / name for name in BESIDE)]:
        target = place / _staged(page)
        target.parent.mkdir(parents=True, exist_ok=True)
        if page.parent.name in ("tutorials", "notebooks") or page.name == "gallery.md":
            text = notebooks.myst(page)
            if not notebooks.missing(page):
                download = place / "_extra" / _staged(page).with_suffix(".ipynb")
                download.parent.mkdir(parents=True, exist_ok=True)
                download.write_text(notebooks.ipynb(page), encoding="utf-8")
        else:
            text = page.read_text(encoding="utf-8")
        text = LINK.sub(lambda found, page=page: _moved(found, page, place), text)
        target.write_text(TITLE.sub(lambda found, page=page: _generated(found, page), text), encoding="utf-8")
    for name, text in {"commands": commands.page(), **(listed := reference.pages())}.items():
        _write(place / "reference" / f"{name}.md", text)
    _write(place / "statements.md", statements.page())
    _write(place / "index.md", (place / "index.md").read_text(encoding="utf-8") + _trees())
    subtree = _tree("", [name for name in listed if name != "index"])
    _write(place / "reference" / "index.md", (place / "reference" / "index.md").read_text(encoding="utf-8") + subtree)


def _staged(page: Path) -> Path:
    """Where a page stands on the site: what is in docs/ at the top, with the neighbours of the README."""
    return page.relative_to(DOCS) if page.is_relative_to(DOCS) else Path(page.name)


def _moved(found: re.Match[str], page: Path, place: Path) -> str:
    """A link to a file of the repository, seen from the page's place on the site; other files are copied there."""
    if "://" in found[2] or found[2].startswith("mailto:"):
        return found[0]
    target = (page.parent / found[2]).resolve()
    if target == ROOT / "README.md":
        target = DOCS / "index.md"
    if target.suffix != ".md" or not (target.is_relative_to(DOCS) or target.name in BESIDE):
        copied = place / "_files" / target.relative_to(ROOT)
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(target, copied)
        moved = Path("_files") / target.relative_to(ROOT)
    else:
        moved = _staged(target)
    return f"{found[1]}{os.path.relpath(moved, _staged(page).parent)}{found[3]}"


def _generated(found: re.Match[str], page: Path) -> str:
    """A link to a generated page."""
    return f"[{found[1]}]({os.path.relpath(GENERATED[found[1]], _staged(page).parent)}.md)"


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def _trees() -> str:
    told = []
    for caption, names in NAVIGATION.items():
        told.append(_tree(caption, list(names)))
    return "".join(told)


def _tree(caption: str, pages: list[str]) -> str:
    head = [":hidden:", *([f":caption: {caption}"] if caption else [])]
    return "\n".join(["", "```{toctree}", *head, "", *pages, "```", ""])


def source_digest() -> str:
    """A digest of the package's source, by which executed notebooks are kept."""
    found = hashlib.sha256()
    for file in sorted((ROOT / "src").rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            found.update(file.read_bytes())
    return found.hexdigest()[:16]


def _kernel_settings(place: Path) -> None:
    """A kernel without the user's own settings, which reports errors alone."""
    _write(place / "profile_default" / "ipython_kernel_config.py", "c = get_config()\nc.IPKernelApp.log_level = 40\n")
    os.environ["IPYTHONDIR"] = str(place)


def main(arguments: list[str]) -> int:
    """Stage the pages and call Sphinx."""
    parser = argparse.ArgumentParser(description="Build the documentation site.")
    parser.add_argument("--no-execute", action="store_true", help="leave the notebooks without outputs")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "site")
    parser.add_argument("--stage", type=Path, default=STAGE, help="where pages are put together")
    asked = parser.parse_args(arguments)
    cache = ROOT / "build" / "notebooks" / source_digest()
    os.environ["GENSCOPE_DOCS_EXECUTE"] = "off" if asked.no_execute else "cache"
    os.environ["GENSCOPE_DOCS_CACHE"] = str(cache)
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    _kernel_settings(ROOT / "build" / "ipython")
    if cache.parent.exists() and not cache.exists():
        shutil.rmtree(cache.parent)
    stage(asked.stage)
    from sphinx.cmd.build import build_main

    shutil.rmtree(asked.out, ignore_errors=True)
    options = ["-q", "-W", "--keep-going", "-E", "-d", str(asked.stage.with_name(f"{asked.stage.name}-state"))]
    options += ["-D", f"html_extra_path={asked.stage / '_extra'}"]
    status = build_main([*options, "-b", "html", "-c", str(SITE), str(asked.stage), str(asked.out)])
    if status == 0:
        print(f"The site is in {asked.out}: open index.html there.")
    return status


if __name__ == "__main__":
    sys.path.insert(0, str(SITE))
    sys.exit(main(sys.argv[1:]))
