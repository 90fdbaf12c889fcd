"""Rows of the claims table, from the verdicts of a store.

Source: product.md, Section 4.
Departures: None.
Guarantee: exact; a verdict is shown as it was stored.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from genscope.papers import PAPERS
from genscope.report import words

VERDICTS = ("holds", "fails", "undecided")


@dataclass(frozen=True)
class Part:
    """One question inside a claim."""

    statement: str
    verdict: str
    numbers: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Claim:
    """A claim, its verdict, and what the verdict rests on."""

    id: str
    statement: str
    source: str
    verdict: str
    numbers: Sequence[tuple[str, str]]
    rule: str
    parts: Sequence[Part]
    departures: Sequence[str]
    budget: str
    time: str
    studies: Sequence[str] = ()  # whose trials decided
    remark: str = ""
    erratum: str = ""  # its anchor on the page

    @property
    def paper(self) -> str:
        """The citation key that the source begins with."""
        return self.source.partition(",")[0].strip()

    @property
    def reasons(self) -> list[str]:
        """The parts that keep the claim from holding; a claim of one part is its own reason."""
        return [
            part.statement for part in self.parts if part.verdict == self.verdict != "holds" and len(self.parts) > 1
        ]


def claims(stored: Sequence[Mapping[str, Any]]) -> list[Claim]:
    """The claims of `Store.verdicts()`, in the order of their ids (A2 before A10)."""
    return sorted((_claim(row) for row in stored), key=lambda claim: words.natural(claim.id))


def tally(listed: Sequence[Claim]) -> list[tuple[str, int]]:
    """How many claims have each verdict, verdicts that occur only."""
    found = [claim.verdict for claim in listed]
    return [(word, found.count(word)) for word in (*VERDICTS, *sorted({*found} - {*VERDICTS})) if word in found]


def errata(paper: str) -> list[tuple[str, str]]:
    """The errata of a paper, each after its anchor."""
    return [(_anchor(paper, row), text) for row, text in enumerate(PAPERS[paper].errata, start=1)]


def _anchor(paper: str, row: int) -> str:
    return f"erratum-{paper}-{row}"


def _claim(row: Mapping[str, Any]) -> Claim:
    facts = {"id": row["claim"], "budget": row["budget"], **row["verdict"]}
    parts = [Part(part["statement"], part["decision"], _numbers(part["numbers"])) for part in facts.get("parts") or ()]
    remark = facts.get("remark") or {}
    return Claim(
        id=facts["id"],
        statement=facts.get("statement", ""),
        source=facts.get("source", ""),
        verdict=facts.get("verdict", "undecided"),
        numbers=[] if parts else _numbers(facts.get("numbers") or {}),  # the parts repeat them
        rule=facts.get("rule", ""),
        parts=parts,
        departures=facts.get("departures") or [],
        budget=facts["budget"],
        time=words.duration(facts["seconds"]) if "seconds" in facts else "",
        studies=facts.get("studies") or (),
        remark=remark.get("text", ""),
        erratum=_anchor(remark["paper"], remark["row"]) if remark else "",
    )


def _numbers(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(name.replace("_", " "), _unbroken(words.value(value))) for name, value in found.items()]


def _unbroken(text: str) -> str:
    r"""The text with counts kept on one line, for narrow columns.

    >>> _unbroken("9 of 10, 3 of them late")
    '9\xa0of\xa010, 3 of them late'
    """
    return re.sub(r"(?<=\d) of (?=\d)", "\u00a0of\u00a0", text)
