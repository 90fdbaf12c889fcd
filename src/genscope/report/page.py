"""The report: one HTML file made from a store alone, readable offline, on paper and by those who do not see it.

Guarantee: exact; the page shows what the store holds, the same store gives the same page, and it loads nothing.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from genscope.files import check_place, draft
from genscope.lab import Reading, Selection, Store, Verdict
from genscope.papers import PAPERS, Paper
from genscope.refusal import Refusal
from genscope.report import verdicts, words
from genscope.report.environment import environment
from genscope.report.file import chosen, declared
from genscope.report.opening import KEY, openings
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


def write_report(
    store: Store,
    out: str | os.PathLike[str],
    *,
    budget: str | None = None,
    only: Sequence[str] = (),
    rules: verdicts.Rules | None = None,
) -> Path:
    """Write the report of a store to a file; the file is replaced at once when the page is complete.

    Of the selections of a study, the largest complete one is shown, of those at `budget` if there are any; of the
    studies those in `only`, if it names some, with the claims that rest on them. `rules` are those of the claims as
    they are now (`genscope.listing.rules()`): a verdict by an older one says so.
    """
    path = Path(out)
    check_place(path, "the report", "report.html")
    text = render(store, budget=budget, only=only, rules=rules)
    with draft(path) as beside:
        beside.write_text(text, encoding="utf-8", newline="\n")
    return path


def render(
    store: Store, *, budget: str | None = None, only: Sequence[str] = (), rules: verdicts.Rules | None = None
) -> str:
    """The report of a store as HTML."""
    manifests = {name: facts for name, facts in store.manifests().items() if name in only or not only}
    if missing := [name for name in only if name not in manifests]:
        held = ", ".join(store.manifests()) or "none yet"
        raise Refusal(f"the store has no results of {', '.join(missing)}: it holds {held}. Choose from these.")
    claims = [each for each in verdicts.verdicts(store.verdicts(), rules) if not only or {*each.studies} & {*only}]
    read = [
        _Read(f"study-{number}", manifest, *chosen(store, manifest["name"], budget))
        for number, (_, manifest) in enumerate(_in_order(manifests), start=1)
    ]
    studies = [
        show(each.manifest, each.selection, each.reading, others=each.others, anchor=each.anchor) for each in read
    ]
    papers = _papers(studies, claims)
    return _TEMPLATES.get_template("report.html.jinja").render(
        openings=openings((each.anchor, declared(each.manifest), each.reading) for each in read),
        key=KEY,
        markup=Markup,
        claims=claims,
        pictures={claim.id: _picture(claim, studies) for claim in claims},
        tally=verdicts.tally(claims),
        budgets=sorted({claim.budget for claim in claims}),
        papers=papers,
        errata={anchor for group in papers for anchor, _ in group.errata},
        places={study.name: study.anchor for study in studies},
        anchor=verdicts.erratum,
        in_words=verdicts.numbers,
        duration=words.duration,
    )


@dataclass(frozen=True)
class _Read:
    """A study with the selection that is shown, its reading, and the other selections."""

    anchor: str
    manifest: Mapping[str, Any]
    selection: Selection
    reading: Reading
    others: Sequence[Selection]


@dataclass(frozen=True)
class _ClaimPicture:
    """A small drawing, and the figure that it leads to."""

    anchor: str
    title: str
    thumbnail: Markup


def _picture(claim: Verdict, studies: Sequence[ShownStudy]) -> _ClaimPicture | None:
    """The figure that stands for a claim: one that names it, otherwise the first of its studies."""
    figures = [figure for study in studies if study.name in claim.studies for figure in study.figures]
    drawn = [figure for figure in figures if figure.svg is not None]
    named = [figure for figure in drawn if claim.id in figure.claims]
    chosen = next(iter([*named, *(figure for figure in drawn if not figure.claims), *drawn]), None)
    if chosen is None or chosen.thumbnail is None:
        return None
    own = chosen.thumbnail.replace(f"{chosen.anchor}t-", f"{claim.id}-{chosen.anchor}t-")  # ids are unique in a page
    return _ClaimPicture(chosen.anchor, chosen.title, own)


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
