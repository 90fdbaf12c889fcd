"""Deciding claims: run their studies, read them, store the verdict as soon as the last study of a claim is there.

Source: product.md, Section 4.
Departures: None.
Guarantee: a study that several claims rest on runs once; a claim that cannot be decided does not keep the others.
"""

import time
import traceback
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from genscope import claims
from genscope.claims import Claim
from genscope.cli._board import Board
from genscope.cli._crew import Crew, Failure
from genscope.cli._findings import warnings
from genscope.cli._schedule import Outcome, one_by_one, side_by_side
from genscope.lab import Store, Study, preview
from genscope.lab.provenance import provenance
from genscope.lab.reading import Reading, read
from genscope.report.page import write_report


def chosen(only: Sequence[str]) -> list[Claim]:
    """The claims of these ids, or all, in the order of the claims table."""
    known = {claim.id: claim for claim in claims.ALL}
    names = [name.strip() for text in only for name in text.split(",")]
    for name in names:
        if name not in known:
            raise ValueError(f"reproduce got the claim {name!r}: claims are {', '.join(known)}. Choose among these.")
    return [claim for claim in claims.ALL if not only or claim.id in names]


class Bench:
    """Claims before the judge: which studies they wait for, and what was decided."""

    def __init__(self, listed: Sequence[Claim], budget: str, store: Store, board: Board):
        self._listed, self._budget, self._store, self._board = listed, budget, store, board
        self._readings: dict[str, Reading] = {}
        self._verdicts: dict[str, dict[str, Any]] = {}
        self._broken: dict[str, str] = {}
        self.studies = {study.name: study for claim in listed for study in claim.studies[budget]}
        self._decide()

    def hear(self, outcomes: Iterable[Outcome]) -> None:
        """Take note of studies that are over, and decide what can be decided."""
        for outcome in outcomes:
            if isinstance(outcome, Failure):
                resting = [
                    claim.id for claim in self._listed if outcome.study in map(_name, claim.studies[self._budget])
                ]
                for name in resting:
                    self._break(name, f"{outcome.study} did not finish: {outcome.reason.rstrip()}")
                continue
            self._readings[outcome.study] = read(self.studies[outcome.study], store=self._store, budget=self._budget)
            for warning in (*warnings(self._readings[outcome.study].frame), *outcome.stopped):
                self._board.say(f"warning: {outcome.study}: {warning}")
            self._decide()

    def verdicts(self) -> list[dict[str, Any]]:
        """What was decided, in the order of the claims table."""
        return [self._verdicts[claim.id] for claim in self._listed if claim.id in self._verdicts]

    def broken(self) -> dict[str, str]:
        """Claims that a crash left without a verdict, and what crashed."""
        return dict(self._broken)

    def _decide(self) -> None:
        for claim in self._listed:
            names = [study.name for study in claim.studies[self._budget]]
            if claim.id in self._verdicts or claim.id in self._broken or not self._readings.keys() >= {*names}:
                continue
            found = [self._readings[name] for name in names]
            try:
                verdict = claim.verdict(found, budget=self._budget, seconds=sum(map(_seconds, found)))
            except Exception:  # a mistake of ours in one rule: the other claims are decided all the same
                self._break(claim.id, f"its rule fell over: {traceback.format_exc().rstrip()}")
                continue
            self._store.put_verdict(claim.id, self._budget, verdict)
            self._verdicts[claim.id] = verdict
            self._board.decided(claim, verdict["verdict"])

    def _break(self, claim: str, reason: str) -> None:
        self._broken.setdefault(claim, reason)
        self._board.say(f"{claim} will have no verdict: {reason.splitlines()[-1]}")


def decide(
    listed: Sequence[Claim], budget: str, *, store: Store, url: str, processes: int, out: Path, board: Board
) -> dict[str, Any]:
    """Verdicts on the claims and the report; `url` is the store's, with its password."""
    start = time.monotonic()
    bench = Bench(listed, budget, store, board)
    missing = {name: study for name, study in bench.studies.items() if _is_missing(study, budget, store)}
    stored = [study for name, study in bench.studies.items() if name not in missing]
    bench.hear(one_by_one(stored, store=store, budget=budget, follow=board))
    if processes == 1 or not missing:
        bench.hear(one_by_one(missing.values(), store=store, budget=budget, follow=board))
    else:
        with Crew(processes, url=url, budget=budget) as crew:
            bench.hear(side_by_side(missing.values(), crew=crew, budget=budget, follow=board))
    path = write_report(store, out / "report.html")
    facts = provenance()
    return {
        "claims": bench.verdicts(),
        "broken": bench.broken(),
        "budget": budget,
        "seconds": time.monotonic() - start,
        "versions": facts["libraries"] | {"python": facts["python"]},
        "report": str(path),
        "store": store.url,
    }


def _is_missing(study: Study, budget: str, store: Store) -> bool:
    seen = preview(study, store=store, budget=budget)
    return seen.stored < seen.trials


def _name(study: Study) -> str:
    return study.name


def _seconds(reading: Reading) -> float:
    """Time spent on the trials of a reading, in whichever run they were computed."""
    return float(reading.frame.select(pl.sum("seconds") + pl.sum("compile_seconds")).item())
