"""A run's plan and its findings, printed as tables and sentences.

Guarantee: exact up to rounding; `--json` has all digits.
"""

from collections.abc import Sequence
from typing import Any

from genscope.cli._output import counted, echo, print_table
from genscope.lab.statistics.threshold import words_of
from genscope.report import words

Facts = dict[str, Any]

_MEASURED = ("low", "high", "trials", "state", "level", "plateau")
_REASONS = {"plateau": "successes level off: no threshold", "unresolved": "too few trials to tell"}


def print_plan(plan: Facts) -> None:
    """What a run would do."""
    missing = plan["trials"] - plan["stored"]
    more = "" if plan["most"] == plan["trials"] else f" now and up to {plan['most']:,} as the search goes on"
    echo(
        f"{plan['study']} at budget {plan['budget']}: {counted(plan['points'], 'point')}, "
        f"{counted(plan['trials'], 'trial')}{more}; {plan['stored']:,} stored."
    )
    if missing and plan["seconds"] is None:
        echo(f"How long the missing {missing:,} take is not known: no trial is stored, and the study does not say.")
    elif missing:
        all_missing = plan["most"] - plan["stored"]
        limit = words.duration(plan["seconds"] * all_missing / missing)
        up_to = "" if all_missing == missing else f", all {all_missing:,} about {limit}"
        source = "" if plan["measured"] else " (the study's own estimate; stored trials make a better one)"
        soon = words.duration(plan["seconds"])
        echo(f"The missing {missing:,} would take about {soon}{up_to}, compilation aside{source}.")


def print_findings(title: str, facts: Facts, *, report: str) -> None:
    """What a run found, and what to do next."""
    heading = f"{title} ({facts['study']}, budget {facts['budget']})"
    if facts["thresholds"]:
        print_table(heading, *_thresholds(facts["thresholds"]))
    else:
        shared, names, columns, rows = _points(facts["points"])
        print_table("\n".join([heading, *shared]), columns, rows, names=names)
    fits = facts.get("fits") or ({"": facts["fit"]} if facts["fit"] else {})
    said: dict[str, list[str]] = {}
    for name, fit in fits.items():
        said.setdefault(fit["verdict"], []).append(name)
    for verdict, names in said.items():
        echo(verdict if names == [""] or (len(said) == 1 and len(names) > 1) else f"{', '.join(names)}: {verdict}")
    new = f"{facts['new_trials']:,} of them new, in {words.duration(facts['seconds'])}"
    echo(f"{counted(facts['trials'], 'trial')}, {new if facts['new_trials'] else 'all of them stored before'}.")
    if facts.get("next"):
        echo(f"Not every threshold is resolved. Continue with {facts['next']['command']}{_how_long(facts['next'])}.")
    echo(f"Next: {report}")


def _how_long(plan: Facts) -> str:
    return "" if plan["seconds"] is None else f" (about {words.duration(plan['seconds'])})"


def _thresholds(found: Sequence[Facts]) -> tuple[list[str], list[list[str]]]:
    *axes, searched = (name for name in found[0] if name not in _MEASURED)
    several = len({row["level"] for row in found}) > 1
    rows = []
    for row in found:
        size, interval = words.measured(row[searched], row["low"], row["high"])
        reason = f" ({_REASONS[row['state']]})" if row["state"] in _REASONS else ""
        level = [words_of(row["level"])] if several else []
        plateau = " ".join(words.measured(*row["plateau"].values())) if row["plateau"] else "none"
        rows.append(
            [*(_cell(row[name]) for name in axes), *level, size, interval + reason, str(row["trials"]), plateau]
        )
    return [*axes, *(["success"] if several else []), searched, "95 % interval", "trials", "plateau"], rows


def _points(found: Sequence[Facts]) -> tuple[list[str], int, list[str], list[list[str]]]:
    """What all points share, how many columns name a point, the columns and the rows."""
    if not found:
        return [], 1, ["point"], []
    axes = [name for name in found[0] if name not in ("trials", "failed", "shares", "medians")]
    shares, medians = list(found[0]["shares"]), list(found[0]["medians"])
    varying = [name for name in axes if any(row[name] != found[0][name] for row in found)] or axes
    fixed = [f"{name}={_cell(found[0][name])}" for name in axes if name not in varying]
    rows = [
        [
            *(_cell(row[name]) for name in varying),
            f"{row['trials']} ({row['failed']} failed)" if row["failed"] else str(row["trials"]),
            *(_cell(row["shares"][name]) for name in shares),
            *(_cell(row["medians"][name]) for name in medians),
        ]
        for row in found
    ]
    columns = [*varying, "trials", *(f"share {name}" for name in shares), *(f"median {name}" for name in medians)]
    return ["all at " + ", ".join(fixed)] if fixed else [], max(len(varying), 1), columns, rows


def _cell(value: Any) -> str:
    return "none" if value is None else words.value(value)
