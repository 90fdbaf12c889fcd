"""Stores with made-up results: everything a report may meet, in a few hundred rows."""

import math
from pathlib import Path
from typing import Any

import numpy as np

from genscope.lab.plans.figure import (
    Crossing,
    Curves,
    Heatmap,
    Level,
    Line,
    Mean,
    Panel,
    Published,
    Reference,
    Scatter,
    Success,
)
from genscope.lab.plans.manifest import manifest
from genscope.lab.plans.selection import select
from genscope.lab.plans.study import Plan, Study, Trial, grid
from genscope.lab.statistics.threshold import Search
from genscope.lab.storage.store import Record, Store

HOSTILE = '<script>alert("1")</script>'
PROVENANCE = {
    "genscope": {"commit": "0123456789abcdef", "dirty": True},
    "libraries": {"jax": "0.10.0"},
    "device": "cpu: cpu",
    "python": "3.11.7",
}
LABELS = {"context_length": "context length T", "sample_size": "samples m", "solved": "share that succeeds"}
CROSSING = Crossing("sample_size", "solved", 0.8)


def _trial(key: Any) -> dict[str, Any]:
    """Toss a coin with `sample_size` and `context_length` in mind."""
    raise NotImplementedError


def _finished(study: Study, point: dict[str, Any], seed: int, values: dict[str, Any], error: str | None = None):
    trial = Trial(study.name, study.revision, point, seed)
    return Record(trial, values, error, seconds=0.5, compile_seconds=0.25, provenance=PROVENANCE, finished=1.8e9 + seed)


AND = Study(
    name="edelman2022-and",
    title=f"Samples to learn an AND {HOSTILE}",
    source="edelman2022, Figure 2",
    trial=_trial,
    points=grid(context_length=[50, 100, 200, 400, 800]),
    search=Search(),
    budgets={"quick": Plan(grid(context_length=[50]), search=Search())},
    figures=(
        Line(
            "context_length",
            CROSSING,
            log_x=True,
            laws=("log", "power", "linear"),
            references=[Reference("ideal learner", [50, 800], [28, 40])],
            published=[Published(300, 70, "about 70 at T = 300")],
            title="Samples against context length",
            caption=f"A caption {HOSTILE}",
            labels=LABELS,
        ),
        Success(CROSSING, panel="context_length", title="Success", caption="Shares.", labels=LABELS),
    ),
)
CURVES = Study(
    name="edelman2022-curves",
    title="Curves and maps",
    source="edelman2022, Figure 3",
    trial=_trial,
    points=grid(sample_size=[50, 200]),
    seeds=3,
    figures=(
        Curves(
            "step",
            ["training", "validation"],
            "accuracy",
            facet="sample_size",
            levels=[Level(0.5, "chance")],
            title="Accuracy",
            caption="Thin and bold.",
        ),
        Heatmap([Panel("best", "best head")], "example", "position", marked="support", title="Map", caption="A map."),
        Scatter("steps", "gap", sem="gap_sem", title="Gap", caption="One point per trial."),
        Line(
            "sample_size", Mean("gap", reached="reached"), title="Mean gap", caption="Means.", where={"sample_size": 50}
        ),
    ),
)


def probability(context_length: int, sample_size: int) -> float:
    """Crosses 80 % between 40 and 110 samples up to T = 200; above every size at 400; levels off at half at 800."""
    half = 14 * math.log(context_length) - 20
    if context_length == 400:
        return 0.05
    top = 0.5 if context_length == 800 else 0.97
    return top / (1 + (half / sample_size) ** 8)


def full(path: Path) -> Store:
    """Thresholds of every kind, failures, NaN, curves, a map, and verdicts of every kind."""
    store = Store(f"sqlite:///{path}")
    random = np.random.default_rng(0)
    records = []
    for length in (50, 100, 200, 400, 800):
        for size in (20, 30, 40, 50, 60, 80, 110, 150):
            point = {"context_length": length, "sample_size": size}
            for seed in range(16):
                solved = bool(random.random() < probability(length, size))
                loss = math.nan if (length, seed) == (800, 3) else 0.1
                records.append(_finished(AND, point, seed, {"solved": solved, "loss": loss}))
    bad = {"context_length": 50, "sample_size": 150}
    records += [_finished(AND, bad, seed, {}, f"Traceback\nMemoryError: {HOSTILE}") for seed in (90, 91)]
    for size in (50, 200):
        for seed in range(3):
            values: dict[str, Any] = {
                "step": [0, 10, 20],
                "training": [0.5, 0.9, 1.0],
                "validation": [0.5, math.nan, math.nan] if seed == 2 else [0.5, 0.6, 0.7],
                "best": [[0.1, 0.9, 0.0], [math.nan, 0.5, 0.5]],
                "support": [1],
                "steps": 20 + seed,
                "gap": math.nan if seed == 1 else 0.1 * seed,
                "gap_sem": 0.01,
                "reached": seed != 2,
            }
            records.append(_finished(CURVES, {"sample_size": size}, seed, values))
    store.add(records)
    for study in (AND, CURVES):
        store.put_manifest(study.name, study.revision, manifest(study))
    store.put_selection(select(CURVES))
    for number, (name, verdict) in enumerate([("A10", "undecided"), ("A2", "holds"), ("A1", "fails")]):
        store.put_verdict(name, "quick", claim(name, verdict, seconds=83.0 + number))
    return store


def claim(name: str, verdict: str, **more: Any) -> dict[str, Any]:
    """A verdict as `genscope reproduce` stores it."""
    return {
        "id": name,
        "statement": f"Statement of {name} {HOSTILE}",
        "source": "edelman2022, Figure 2",
        "verdict": verdict,
        "numbers": {"lead": 3.14159, "interval": [1.0, None]},
        "rule": f"rule of {name}",
        "parts": [
            {"statement": f"first part of {name}", "decision": verdict, "numbers": {"lead": 3.14159}},
            {"statement": f"second part of {name}", "decision": "holds", "numbers": {"interval": [1.0, None]}},
        ],
        "departures": [f"departure of {name}"],
        "remark": {"text": f"remark on {name}", "paper": "edelman2022", "row": 6} if name == "A2" else None,
        "studies": ["edelman2022-and", "not-stored"],
        "budget": "quick",
        **more,
    }
