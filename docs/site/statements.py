"""From theorem to code, to claim, to figure: every statement of a paper that genscope cites, with what cites it.

Guarantee: read from the line *Source:* of each module, and from the sources of claims and studies; a statement that
is cited in running text only is not listed.
"""

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import lean
from objects import Module, packages

from genscope.claims import ALL as CLAIMS
from genscope.lab import Study
from genscope.papers import PAPERS
from genscope.studies import ALL as STUDIES

SHORT = {"edelman2022": "EGKZ22", "mousavi2025": "MH25", "lintilhac2026": "LS26"}
KINDS = {"Corollar": "Corollary", "Appendi": "Appendix"}
NUMBER = r"(?:\(\d+\)|[A-Z](?:\.\d+)*|\d+(?:\.\d+)*[ab]?)(?![\w(])"
CITED = re.compile(rf"\b([A-Z][a-z]+?)(?:s|ies|ces|y|x)? ((?:{NUMBER}(?:, and |, | and | to )?)+)")
NAMED = ("Definition", "Lemma", "Theorem", "Proposition", "Corollary", "Assumption", "Remark", "Equation", "Figure")
PLACES = (*NAMED, "Section", "Appendix")
END = re.compile(r"[;:|]|\.\s|\b[a-z]+\d{4}\b|\(\D|, which is")


@dataclass
class Statement:
    """A numbered statement or place of a paper, and who cites it."""

    paper: str
    kind: str
    number: str
    modules: list[str] = field(default_factory=list)
    claims: list[str] = field(default_factory=list)
    studies: list[str] = field(default_factory=list)

    @property
    def label(self) -> str:
        """As the paper calls it."""
        return f"{self.kind} {self.number}"

    @property
    def anchor(self) -> str:
        """The name of its place on the page."""
        return re.sub(r"[^a-z0-9]+", "-", f"statement {self.paper} {self.label}".lower()).strip("-")


def cited(text: str) -> Iterator[tuple[str, str, str]]:
    """Paper, kind and number of each statement that a source names.

    >>> list(cited("lintilhac2026, Theorems 10, 13 and 14; edelman2022, Figures 2 to 4."))[2:5]
    [('lintilhac2026', 'Theorem', '14'), ('edelman2022', 'Figure', '2'), ('edelman2022', 'Figure', '3')]
    """
    text = " ".join(text.split())
    for found in re.finditer("|".join(PAPERS), text):
        rest = text[found.end() :]
        stop = END.search(rest)
        for kind, listed in CITED.findall(rest[: stop.start()] if stop else rest):
            kind = KINDS.get(kind, kind)
            if kind in PLACES:
                yield from ((found[0], kind, number) for number in _numbers(listed))


def _numbers(listed: str) -> Iterator[str]:
    parts = re.split(r", and |, | and ", re.sub(r"(, and|,| and| to)\s*$", "", listed.strip()))
    for part in parts:
        first, _, last = part.partition(" to ")
        if last and first.isdigit() and last.isdigit():
            yield from map(str, range(int(first), int(last) + 1))
        else:
            yield from filter(None, (first, last))


def source_of(module: Module) -> str:
    """The fact *Source:* of a module."""
    found = re.search(r"^Source: (.*?)(?=\n(?:Departures|Guarantee):|\n\s*\n|\Z)", module.docstring, re.M | re.S)
    return found[1] if found else ""


@functools.cache
def statements() -> dict[tuple[str, str, str], Statement]:
    """All that are cited, by paper, kind and number."""
    found: dict[tuple[str, str, str], Statement] = {}

    def note(text: str, what: str, name: str) -> None:
        for key in dict.fromkeys(cited(text)):
            listed = getattr(found.setdefault(key, Statement(*key)), what)
            if name not in listed:
                listed.append(name)

    for modules in packages().values():
        for module in modules:
            if not module.name.startswith(("genscope.claims", "genscope.studies")) and not module.private:
                note(source_of(module), "modules", module.name)
    for claim in CLAIMS:
        note(claim.source, "claims", claim.id)
    for study in STUDIES:
        note(study.source, "studies", study.name)
    return found


def page() -> str:
    """The page."""
    found = statements()
    parts = [
        "# From theorem to figure",
        "Every statement of the three papers that genscope cites: the code that implements it, the claims that test "
        "it, "
        "and the studies whose figures show it. Mistakes found in the statements are in the [errata](errata.md).",
    ]
    for paper, short in SHORT.items():
        about = PAPERS[paper]
        own = sorted((each for each in found.values() if each.paper == paper), key=_order)
        rows = [
            f"| [{each.label}]{{#{each.anchor}}} | {_modules(each)} | {_claims(each)} | {_studies(each)} |"
            for each in own
        ]
        parts += [
            f"## {short}",
            f"*{about.title}*, {', '.join(about.authors)}, {about.year} ([paper]({about.link})).",
            "\n".join(["| Statement | Code | Claims | Studies |", "|---|---|---|---|", *rows]),
        ]
    parts += [lean.section(), "## Claims", *(_claim(claim) for claim in CLAIMS)]
    parts += ["## Studies and their figures", *(_study(study) for study in STUDIES)]
    return "\n\n".join(parts) + "\n"


def _order(each: Statement) -> tuple[int, list[tuple[int, str]]]:
    pieces = re.findall(r"\d+|[A-Za-z]+", each.number)
    return PLACES.index(each.kind), [(int(piece), "") if piece.isdigit() else (0, piece) for piece in pieces]


def _modules(each: Statement) -> str:
    return ", ".join(f"`{name.removeprefix('genscope.')}`" for name in each.modules)


def _claims(each: Statement) -> str:
    return ", ".join(f"[{claim}](#claim-{claim.lower()})" for claim in each.claims)


def _studies(each: Statement) -> str:
    return ", ".join(f"[{study}](#study-{study})" for study in each.studies)


def _claim(claim) -> str:
    named = dict.fromkeys(study.name for budget in claim.studies.values() for study in budget)
    studies = ", ".join(f"[{name}](#study-{name})" for name in named)
    return "\n".join(
        [
            f"(claim-{claim.id.lower()})=\n### Claim {claim.id}",
            "",
            f"{claim.statement}",
            "",
            f"- Source: {claim.source}",
            f"- Rule: {claim.rule}",
            f"- Studies: {studies or 'none'}",
            f"- Decide it: `genscope reproduce --only {claim.id} --budget quick`",
        ]
    )


def _study(study: Study) -> str:
    deciding = [claim.id for claim in CLAIMS if any(study in budget for budget in claim.studies.values())]
    claims = ", ".join(f"[{name}](#claim-{name.lower()})" for name in deciding)
    code = f"genscope.studies.{study.trial.__module__.rpartition('.')[2]}"
    return "\n".join(
        [
            f"(study-{study.name})=\n### {study.name}",
            "",
            f"{study.title}.",
            "",
            f"- Source: {study.source}",
            f"- Code: `{code.removeprefix('genscope.')}`",
            f"- Claims: {claims or 'none'}",
            f"- Figures: {'; '.join(figure.title for figure in study.figures) or 'none'}",
            f"- Draw them: `genscope run {study.name} --budget quick`, then `genscope report`",
        ]
    )
