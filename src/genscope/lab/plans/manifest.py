"""The manifest of a study: what the report needs to know about it, as JSON.

Guarantee: exact; a report is made from manifests and trials alone, without the study's code.
"""

import dataclasses
import inspect
from typing import Any

from genscope.lab.plans.study import BUDGETS, Plan, Study


def manifest(study: Study) -> dict[str, Any]:
    """Name, title, source, revision, axes, plans of all budgets, figures, and what the trial says of itself."""
    return {
        "name": study.name,
        "title": study.title,
        "source": study.source,
        "revision": study.revision,
        "axes": list(study.axes()),
        "paired": sorted(study.paired),
        "stacked": study.stacked,
        "batch": study.batch,
        "budgets": {budget: _plan(study.plan(budget)) for budget in BUDGETS},
        "figures": [figure.manifest() for figure in study.figures],
        "trial": inspect.getdoc(study.trial) or "",
    }


def _plan(plan: Plan) -> dict[str, Any]:
    search = None if plan.search is None else dataclasses.asdict(plan.search)
    return {"points": [dict(point) for point in plan.points], "seeds": plan.seeds, "search": search}
