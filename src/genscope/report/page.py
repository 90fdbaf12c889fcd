"""The report: one HTML file made from a store alone, readable offline, on paper and by those who do not see it.

Source: product.md, Sections 4, 5 and 8.
Departures: None.
Guarantee: exact; the page shows what the store holds, the same store gives the same page, and it loads nothing.
"""

import contextlib
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2

from genscope.lab.store import Store
from genscope.papers import PAPERS, Paper
from genscope.report import verdicts, words
from genscope.report.account import Account, account

_TEMPLATES = jinja2.Environment(
    loader=jinja2.PackageLoader("genscope.report"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


@dataclass(frozen=True)
class Group:
    """A paper and the studies that look at it."""

    anchor: str
    title: str
    studies: Sequence[Account]
    paper: Paper | None = None


def write_report(store: Store, out: str | os.PathLike[str]) -> Path:
    """Write the report of a store to a file; the file is replaced at once when the page is complete."""
    path = Path(out)
    if path.is_dir() or not path.parent.is_dir():
        what = "a directory" if path.is_dir() else f"but there is no directory {path.parent}"
        raise ValueError(
            f"write_report got {path}, {what}: a report is a file in an existing directory. "
            "Give a file name such as report.html, or make the directory first."
        )
    text = render(store)
    try:
        handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise OSError(
            f"write_report got {path}, and {path.parent} cannot be written ({error.strerror}): a report is first "
            "written beside its place. Choose another directory, or change its permissions."
        ) from error
    try:
        with open(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        os.chmod(draft, 0o644)
        os.replace(draft, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        raise OSError(
            f"write_report could not write {path} ({error.strerror}): the file that was there is unchanged. "
            "Free some space, or choose another file."
        ) from error
    return path


def render(store: Store) -> str:
    """The report of a store as HTML."""
    studies = [
        account(manifest, store.frame(name), store.provenances(name), f"study-{number}")
        for number, (name, manifest) in enumerate(_in_order(store.manifests()), start=1)
    ]
    claims = verdicts.claims(store.verdicts())
    return _TEMPLATES.get_template("report.html.jinja").render(
        claims=claims,
        tally=verdicts.tally(claims),
        papers=_papers(studies),
        places={study.source: study.anchor for study in studies},
    )


def _in_order(manifests: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, Mapping[str, Any]]]:
    """Studies by their place in their paper, Figure 2 before Figure 10."""
    return sorted(manifests.items(), key=lambda item: (words.natural(item[1]["source"]), item[0]))


def _papers(studies: Sequence[Account]) -> list[Group]:
    """Studies under the paper that their source begins with; those of no known paper at the end."""
    keys = {study.anchor: study.source.partition(",")[0].strip() for study in studies}
    groups = [
        Group(f"paper-{key}", paper.title, [study for study in studies if keys[study.anchor] == key], paper)
        for key, paper in PAPERS.items()
    ]
    others = [study for study in studies if keys[study.anchor] not in PAPERS]
    return [group for group in [*groups, Group("paper-none", "Other studies", others)] if group.studies]
