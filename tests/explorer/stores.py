"""Small stores for the room Studies, filled by hand: no study runs."""

import itertools

from genscope.lab import Record, Selection, Store, Trial, grid
from genscope.lab.plans.figure import Crossing, Curves, Heatmap, Line, Panel, Success
from genscope.lab.plans.selection import Request

HOSTILE = "<img src=x onerror=\"document.body.innerHTML='broken in'\">"
CROSSING = Crossing("sample_size", "success")


def manifest(name, **changes):
    figures = [
        Line(title="Thresholds", caption="c", x="length", y=CROSSING, laws=["log", "linear"], by="kind"),
        Success(title="Successes", caption="c", crossing=CROSSING, panel="length"),
        Curves(title="Losses", caption="c", x="steps", y=["loss"], quantity="loss"),
        Heatmap(title="Attention", caption="c", panels=[Panel("attention", "head 0")], rows="row", columns="column"),
    ]
    search = {"axis": "sample_size", "outcome": "success", "lowest": 4, "highest": 256, "trials": 64}
    points = [{"length": length, "kind": name} for length in (10, 20, 40)]
    budgets = {
        "quick": {"points": points, "seeds": 1, "search": search},
        "standard": {"points": [{**point, "sample_size": 16} for point in points], "seeds": 3, "search": None},
    }
    facts = {"name": name, "title": f"Title of {name}", "source": "edelman2022, Figure 2", "revision": 1}
    axes = ["length", "kind", "sample_size"]
    shown = [figure.manifest() for figure in figures]
    return {
        **facts,
        "axes": axes,
        "budgets": budgets,
        "figures": shown,
        "trial": "What it does.",
        "paired": [],
        **changes,
    }


def records(name, sizes=(4, 16, 64), lengths=(10, 20, 40), seeds=range(4)):
    """Trials that succeed from a sample size of about twice the length on; one of them raised an exception."""
    for length, size, seed in itertools.product(lengths, sizes, seeds):
        trial = Trial(name, 1, {"length": length, "kind": name, "sample_size": size}, seed)
        values = {
            "success": size * (1 + seed % 2) >= 2 * length,
            "word": name,
            "loss": [0.7, float("nan") if seed == 3 else 0.2],
            "steps": [0, 50],
            "attention": [[0.9, 0.1], [0.4, 0.6]],
        }
        broken = (length, size, seed) == (10, 4, 3)
        yield Record(trial, {} if broken else values, error=f"ValueError: {name}" if broken else None, seconds=0.5)


def two_selections():
    """Two seeds of the study "plain", and four."""
    points = grid(length=[10, 20, 40], kind=["plain"], sample_size=[4, 16, 64])
    return [
        Selection("plain", 1, points, range(number), request=Request("my_file.py:plain", seeds=number))
        for number in (2, 4)
    ]


def verdict(claim, word):
    part = {"statement": f"part of {claim}", "decision": word, "numbers": {"slope": [1.0, 2.0]}}
    return {
        **{"id": claim, "statement": f"Statement of {claim}", "source": "edelman2022, Figure 2", "verdict": word},
        "studies": ["plain"] if claim == "A2" else ["elsewhere"],
        "remark": {"text": f"Remark on {claim}.", "paper": "edelman2022", "row": 6} if claim == "A2" else None,
        **{
            "rule": "Fixed before.",
            "parts": [part],
            "departures": ["One departure."],
            "budget": "quick",
            "planted": "a fault",
        },
    }


def fill(url, *names, seeds=range(4)):
    """A store with these studies and two verdicts; what it has already stays."""
    with Store(url) as store:
        for name in names:
            store.put_manifest(name, 1, manifest(name))
            store.add(records(name, seeds=seeds))
        store.put_verdict("A10", "quick", verdict("A10", "fails"))
        store.put_verdict("A2", "quick", verdict("A2", "holds"))
