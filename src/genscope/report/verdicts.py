"""Rows of the claims table, from the verdicts of a store.

Guarantee: exact; a verdict is shown as it was stored.
"""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any

from genscope.lab import Verdict
from genscope.lab.results.verdict import DECISIONS, same_rule
from genscope.papers import PAPERS
from genscope.report import words

Rules = Mapping[str, Mapping[str, Any]]


def verdicts(stored: Sequence[Mapping[str, Any]], rules: Rules | None = None) -> list[Verdict]:
    """The verdicts of `Store.verdicts()`, in the order of their claims' ids (A2 before A10).

    Where `rules` says that a claim has another rule now, its verdict says so.
    """
    listed = [_marked(row, (rules or {}).get(row["claim"])) for row in stored]
    return sorted(listed, key=lambda verdict: words.natural(verdict.id))


def _marked(row: Mapping[str, Any], rule: Mapping[str, Any] | None) -> Verdict:
    found = Verdict.from_dict({"id": row["claim"], "budget": row["budget"], **row["verdict"]})
    if rule is None or same_rule(row["verdict"], rule):
        return found
    again = f"genscope reproduce --only {found.id} --budget {found.budget}"
    older = f"the rule has changed since this verdict, which is by the old one (decide again: {again})"
    return dataclasses.replace(found, cautions=(*found.cautions, older))


def tally(listed: Sequence[Verdict]) -> list[tuple[str, int]]:
    """How many claims have each verdict, verdicts that occur only."""
    found = [verdict.verdict for verdict in listed]
    return [(word, found.count(word)) for word in (*DECISIONS, *sorted({*found} - {*DECISIONS})) if word in found]


def errata(paper: str) -> list[tuple[str, str]]:
    """The errata of a paper, each after its anchor."""
    return [(_anchor(paper, row), text) for row, text in enumerate(PAPERS[paper].errata, start=1)]


def _anchor(paper: str, row: int) -> str:
    return f"erratum-{paper}-{row}"


def erratum(verdict: Verdict) -> str:
    """The anchor of the erratum that a verdict's remark points to; empty where there is none."""
    return _anchor(verdict.remark.paper, verdict.remark.row) if verdict.remark else ""


def numbers(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Names and numbers in words."""
    return [(name.replace("_", " "), _unbroken(words.value(value))) for name, value in found.items()]


def _unbroken(text: str) -> str:
    r"""The text with counts kept on one line, for narrow columns.

    >>> _unbroken("9 of 10, 3 of them late")
    '9\xa0of\xa010, 3 of them late'
    """
    return re.sub(r"(?<=\d) of (?=\d)", "\u00a0of\u00a0", text)
