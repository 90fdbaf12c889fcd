"""Deciding claims one after the other: run their studies, read them, store the verdict.

Source: product.md, Section 4.
Departures: None.
Guarantee: a study that several claims rest on runs once.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from genscope import claims, lab
from genscope.claims import Claim
from genscope.cli._findings import warnings
from genscope.cli._progress import Follower
from genscope.lab import Store, Study
from genscope.lab.provenance import provenance
from genscope.lab.reading import Reading, read
from genscope.report.page import write_report


def chosen(only: Sequence[str], budget: str) -> list[Claim]:
    """The claims of these ids, or all: those with the fewest trials first, so that something shows early."""
    known = {claim.id: claim for claim in claims.ALL}
    names = [name.strip() for text in only for name in text.split(",")]
    for name in names:
        if name not in known:
            raise ValueError(f"reproduce got the claim {name!r}: claims are {', '.join(known)}. Choose among these.")
    listed = [claim for claim in claims.ALL if not only or claim.id in names]
    return sorted(listed, key=lambda claim: sum(_most_trials(study, budget) for study in claim.studies[budget]))


def _most_trials(study: Study, budget: str) -> int:
    plan = study.plan(budget)
    return len(plan.points) * (plan.seeds if plan.search is None else plan.search.trials)


def decide(listed: Sequence[Claim], budget: str, *, store: Store, out: Path, follow: Follower) -> dict[str, Any]:
    """Verdicts on the claims, in the order of the claims table, and the report."""
    start = time.monotonic()
    readings: dict[str, Reading] = {}
    verdicts: dict[str, dict[str, Any]] = {}
    for claim in listed:
        for study in claim.studies[budget]:
            if study.name not in readings:
                summary = lab.run(study, store=store, budget=budget, progress=follow)
                readings[study.name] = read(study, store=store, budget=budget)
                for warning in (*warnings(readings[study.name].frame), *summary.stopped):
                    follow.say(f"warning: {study.name}: {warning}")
        found = [readings[study.name] for study in claim.studies[budget]]
        verdict = claim.verdict(found, budget=budget, seconds=sum(map(_seconds, found)))
        store.put_verdict(claim.id, budget, verdict)
        verdicts[claim.id] = verdict
        follow.say(f"{claim.id} {verdict['verdict']}: {claim.statement}")
    path = write_report(store, out / "report.html")
    facts = provenance()
    return {
        "claims": [verdicts[claim.id] for claim in claims.ALL if claim.id in verdicts],
        "budget": budget,
        "seconds": time.monotonic() - start,
        "versions": facts["libraries"] | {"python": facts["python"]},
        "report": str(path),
        "store": store.url,
    }


def _seconds(reading: Reading) -> float:
    """Time spent on the trials of a reading, in whichever run they were computed."""
    return float(reading.frame.select(pl.sum("seconds") + pl.sum("compile_seconds")).item())
