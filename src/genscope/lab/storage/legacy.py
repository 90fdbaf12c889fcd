"""Selections of stores from before selections were stored, told from the manifests and the trials.

Guarantee: exact for budgets whose trials are all stored; of budgets with the same trials, the first is named. Where
trials are stored beside them, all that is stored is one more selection.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import sqlalchemy as sa

from genscope.lab import values
from genscope.lab.plans.design import rounds
from genscope.lab.plans.selection import Request, Selection, search_from

_TRIALS = "SELECT id, status, result FROM trial WHERE study = :study AND revision = :revision"


def selections(connection: sa.Connection) -> list[dict[str, Any]]:
    """Rows of the table `selection` for all studies of a store."""
    rows = []
    studies = connection.execute(sa.text("SELECT name, revision, manifest, updated FROM study")).all()
    for study, revision, text, updated in studies:
        trials = connection.execute(sa.text(_TRIALS), {"study": study, "revision": revision}).all()
        stored = {name: (status, result) for name, status, result in trials}
        for number, found in enumerate(_recovered(study, revision, json.loads(text), stored)):
            asked = updated + 1e-5 * number  # in this order, whatever order the database keeps rows in
            facts = json.dumps(found.facts())
            rows.append({"id": found.id, "study": study, "revision": revision, "facts": facts, "asked": asked})
    return rows


def everything(study: str, revision: int, manifest: Mapping[str, Any]) -> Selection:
    """All stored trials; thresholds are those of the standard search, if there is one."""
    standard = manifest.get("budgets", {}).get("standard", {})
    return Selection(study, revision, grid=search_from(standard.get("search")))


def _recovered(
    study: str, revision: int, manifest: Mapping[str, Any], stored: Mapping[str, tuple[str, str]]
) -> Iterator[Selection]:
    covers: list[set[str]] = []
    for budget, plan in manifest.get("budgets", {}).items():
        search = search_from(plan["search"])
        seeds = range(0 if search else plan["seeds"])
        found = Selection(study, revision, tuple(plan["points"]), seeds, search, request=Request(study, budget))
        cover = _cover(found, stored)
        if cover and cover not in covers:
            covers.append(cover)
            yield found
    if stored.keys() - set().union(*covers):
        yield everything(study, revision, manifest)


def _cover(selection: Selection, stored: Mapping[str, tuple[str, str]]) -> set[str]:
    """The identities of its trials; none at all if one of them is not stored."""
    cover: set[str] = set()
    for point in selection.points:
        for trials in rounds(
            selection, point, lambda trials: {trial.id: _values(*stored[trial.id]) for trial in trials}
        ):
            cover |= (ids := {trial.id for trial in trials})
            if not stored.keys() >= ids:
                return set()
    return cover


def _values(status: str, result: str) -> dict[str, Any] | None:
    return values.decode(result) if status == "ok" else None
