"""The report: one HTML file made from a store alone, readable offline, on paper and by those who do not see it.

Guarantee: exact; the page shows what the store holds, the same store gives the same page, and it loads nothing.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from genscope.files import check_place, draft
from genscope.lab import Store, Verdict
from genscope.lab.results.reading import largest
from genscope.papers import PAPERS, Paper
from genscope.report import verdicts, words
from genscope.report.environment import environment
from genscope.report.study import ShownStudy, show

_TEMPLATES = environment("genscope.report")


@dataclass(frozen=True)
class PaperGroup:
    """A paper, what it claims, the studies that look at it, and its errata by anchor."""

    anchor: str
    title: str
    claims: Sequence[Verdict]
    studies: Sequence[ShownStudy]
    paper: Paper | None = None
    errata: Sequence[tuple[str, str]] = ()


def write_report(store: Store, out: str | os.PathLike[str], *, budget: str | None = None) -> Path:
    """Write the report of a store to a file; the file is replaced at once when the page is complete.

    Of the selections of a study, the largest complete one is shown, of those at `budget` if there are any.
    """
    path = Path(out)
    check_place(path, "the report", "report.html")
    text = render(store, budget=budget)
    with draft(path) as beside:
        beside.write_text(text, encoding="utf-8", newline="\n")
    return path


def render(store: Store, *, budget: str | None = None) -> str:
    """The report of a store as HTML."""
    studies = [
        _study(store, manifest, budget, f"study-{number}")
        for number, (_, manifest) in enumerate(_in_order(store.manifests()), start=1)
    ]
    claims = verdicts.verdicts(store.verdicts())
    papers = _papers(studies, claims)
    return _TEMPLATES.get_template("report.html.jinja").render(
        claims=claims,
        tally=verdicts.tally(claims),
        budgets=sorted({claim.budget for claim in claims}),
        papers=papers,
        errata={anchor for group in papers for anchor, _ in group.errata},
        places={study.name: study.anchor for study in studies},
        anchor=verdicts.erratum,
        in_words=verdicts.numbers,
        duration=words.duration,
    )


def _study(store: Store, manifest: Mapping[str, Any], budget: str | None, anchor: str) -> ShownStudy:
    selections = store.selections(manifest["name"])
    selection, reading = largest(store, [each for each in selections if each.budget == budget] or selections)
    others = [each for each in selections if each.id != selection.id]
    return show(manifest, selection, reading, others=others, anchor=anchor)


def _in_order(manifests: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, Mapping[str, Any]]]:
    """Studies by their place in their paper, Figure 2 before Figure 10."""
    return sorted(manifests.items(), key=lambda item: (words.natural(item[1]["source"]), item[0]))


def _papers(studies: Sequence[ShownStudy], claims: Sequence[Verdict]) -> list[PaperGroup]:
    """Claims and studies under the paper that their source begins with; those of no known paper at the end."""
    groups = [
        PaperGroup(
            anchor=f"paper-{key}",
            title=paper.title,
            claims=[claim for claim in claims if claim.paper == key],
            studies=[study for study in studies if study.paper == key],
            paper=paper,
            errata=verdicts.errata(key),
        )
        for key, paper in PAPERS.items()
    ]
    other_claims = [claim for claim in claims if claim.paper not in PAPERS]
    other_studies = [study for study in studies if study.paper not in PAPERS]
    groups.append(PaperGroup("paper-none", "Other studies", other_claims, other_studies))
    return [group for group in groups if group.claims or group.studies]
