"""`genscope list`: what can be run, built and bounded, and how much of it is in the store.

Guarantee: exact without a search; the trials of a search are those that are known by now.
"""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Annotated, Any, Literal

import typer

import genscope
from genscope.cli._options import DEFAULT_STORE, AsJson, StoreUrl

What = Literal["studies", "claims", "constructions", "bounds"]

CONSTRUCTIONS = (
    ("EXPR", "a Transformer for any sparse Boolean expression", "edelman2022, Section 5"),
    ("fourier", "a flat Transformer for a sum of parities", "lintilhac2026, Appendix B"),
    ("token-retrieval", "attention heads that retrieve tokens", "mousavi2025, Lemma 11"),
    ("recurrent-retrieval", "an RNN for simple token regression", "mousavi2025, Propositions 26 and 28"),
)


def list_(
    what: Annotated[
        What | None,
        typer.Argument(metavar="WHAT", help="Only studies, claims, constructions or bounds.", show_default=False),
    ] = None,
    store: StoreUrl = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Show studies and claims with their state in the store, constructions and bounds.

    Example: genscope list claims --store sqlite:///results.db
    """
    from genscope.cli._lookup import find_store
    from genscope.cli._output import print_json
    from genscope.lab.storage import database
    from genscope.listing import listing

    known = listing()
    with find_store(store) or nullcontext() as opened:
        made: dict[What, Callable[[], list[dict[str, Any]]]] = {
            "studies": lambda: _studies(known["studies"], opened),
            "claims": lambda: _claims(known["claims"], opened),
            "constructions": lambda: [
                dict(zip(("name", "builds", "source"), row, strict=True)) for row in CONSTRUCTIONS
            ],
            "bounds": lambda: known["bounds"],
        }
        place = database.shown(database.parse(store)) if opened is None else opened.url
        facts = {"store": place} | {name: make() for name, make in made.items() if what in (None, name)}
    if as_json:
        print_json(facts)
    else:
        _print_listing(facts)


def _print_listing(facts: dict[str, Any]) -> None:
    from genscope.cli._output import print_table

    if "studies" in facts:
        studies = ([study["name"], _about(study)] for study in facts["studies"])
        print_table(f"Studies, and their state in {facts['store']}", ["name", "measures; and what is stored"], studies)
    if "claims" in facts:
        claims = ([c["id"], c["statement"], c["source"], _decision(c)] for c in facts["claims"])
        print_table(f"Claims, decided in {facts['store']}", ["id", "statement", "source", "newest verdict"], claims)
    if "constructions" in facts:
        built = ([*construction.values()] for construction in facts["constructions"])
        print_table("Constructions: genscope construct NAME", ["name", "builds", "source"], built)
    if "bounds" in facts:
        named = ([bound["name"], bound["bounds"]] for bound in facts["bounds"])
        print_table("Bounds: genscope bound NAME", ["name", "bounds"], named)


def _studies(shipped: list[dict[str, Any]], store: "genscope.Store | None") -> list[dict[str, Any]]:
    """Shipped studies with the state of each budget, then those of the user that the store holds."""
    from genscope.lab import Selection
    from genscope.lab.execution.preview import tally

    counts = {} if store is None else store.counts()
    listed = []
    for study in shipped:
        name = study["name"]
        holder = store if name in counts else None  # nothing of the others is there
        plans = {
            budget: tally(holder, Selection.from_facts(name, study["revision"], facts))
            for budget, facts in study["budgets"].items()
        }
        budgets = {
            name: {"points": plan.points, "trials": plan.trials, "most": plan.most, "stored": plan.stored}
            for name, plan in plans.items()
        }
        listed.append({"name": name, "title": study["title"], "source": study["source"], "budgets": budgets})
    known = {study["name"] for study in listed}
    for name, manifest in ({} if store is None else store.manifests()).items():
        if name not in known:
            plans = manifest["budgets"]
            budgets = {
                budget: {"points": len(plan["points"]), "trials": None, "most": None, "stored": None}
                for budget, plan in plans.items()
            }
            listed.append({"name": name, "title": manifest["title"], "source": manifest["source"], "budgets": budgets})
    nothing = {"ok": 0, "failed": 0}
    return [study | {"stored": counts.get(study["name"], nothing)} for study in listed]


def _claims(listed: list[dict[str, Any]], store: "genscope.Store | None") -> list[dict[str, Any]]:
    from genscope.lab.results.verdict import same_rule

    newest = {} if store is None else {row["claim"]: row for row in store.verdicts()}
    return [
        {
            "id": claim["id"],
            "statement": claim["statement"],
            "source": claim["source"],
            "verdict": newest[claim["id"]]["verdict"]["verdict"] if claim["id"] in newest else None,
            "budget": newest[claim["id"]]["budget"] if claim["id"] in newest else None,
            "older_rule": claim["id"] in newest and not same_rule(newest[claim["id"]]["verdict"], claim),
        }
        for claim in listed
    ]


def _about(study: dict[str, Any]) -> str:
    """What a study is, and beneath it how much of each budget is stored: side by side they would need 140 columns."""
    from genscope.cli._output import counted

    stored = sum(study["stored"].values())
    if not stored:
        points = ", ".join(f"{budget} {plan['points']}" for budget, plan in study["budgets"].items())
        return f"{study['title']} ({study['source']})\nnothing stored yet; points: {points}"
    state = "; ".join(f"{budget} {_state(plan)}" for budget, plan in study["budgets"].items())
    return f"{study['title']} ({study['source']})\n{state}; {counted(stored, 'trial')}"


def _state(plan: dict[str, Any]) -> str:
    """Points, and the share of their trials that is stored; a search may need fewer than it may ask for."""
    from genscope.cli._output import counted

    points = counted(plan["points"], "point")
    if plan["stored"] is None:
        return points
    if not plan["stored"]:
        return f"none of {points}"
    return (
        f"{100 * plan['stored'] / plan['most']:.0f} % {'' if plan['trials'] == plan['most'] else 'or more '}of {points}"
    )


def _decision(claim: dict[str, Any]) -> str:
    if claim["verdict"] is None:
        return "not decided yet"
    older = ", by a rule that has changed since" if claim["older_rule"] else ""
    return f"{claim['verdict']} ({claim['budget']}{older})"
