"""How far studies are: what budgets plan, what is stored of it, and how fast more arrives.

Guarantee: exact counts; a rate is what arrived between looks at the store over the last minute.
"""

import json
import threading
import time
from collections.abc import Mapping
from typing import Any

from genscope.lab import Store

WINDOW = 60.0  # seconds over which a rate is taken
_SEEDS = 2**31  # more than any search uses
COUNTED = 100_000  # trials of a study up to which its points are counted anew at every look


class Watch:
    """Remembers how many trials there were a while ago; one for all pages."""

    def __init__(self) -> None:
        self._seen: list[tuple[float, Mapping[str, int]]] = []
        self._lock = threading.Lock()

    def rates(self, totals: Mapping[str, int]) -> dict[str, float | None]:
        """Trials per second that arrived for each study; None at a first look."""
        now = time.monotonic()
        with self._lock:
            self._seen = [*(seen for seen in self._seen if seen[0] >= now - WINDOW), (now, dict(totals))]
            then, before = self._seen[0]
        if now <= then:
            return dict.fromkeys(totals)
        return {name: max(0, total - before.get(name, 0)) / (now - then) for name, total in totals.items()}


def plans(store: Store, manifest: Mapping[str, Any], total: int) -> list[dict[str, Any]]:
    """Per budget, how many trials it plans, whether this is all or the most, and how many of them are stored.

    The stored ones are not counted in a large study.
    """
    found = []
    for budget, plan in manifest["budgets"].items():
        search = plan["search"]
        each = search["trials"] if search else plan["seeds"]
        facts = {"budget": budget, "planned": len(plan["points"]) * each, "exact": not search, "stored": None}
        if total <= COUNTED:
            seeds = range(_SEEDS if search else plan["seeds"])
            axes = sorted(plan["points"][0]) if plan["points"] else []
            wanted = {tuple(point.get(axis) for axis in axes) for point in plan["points"]}
            tallies = store.stored_seeds(manifest["name"], manifest["revision"], seeds).items()
            points = ((json.loads(text), number) for text, number in tallies)
            inside = (number for point, number in points if tuple(point.get(axis) for axis in axes) in wanted)
            facts["stored"] = min(sum(inside), facts["planned"])
        found.append(facts)
    return found
