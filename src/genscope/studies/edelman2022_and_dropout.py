"""The sparse AND with the settings of a public replication: dropout and decay, runs that are never given up.

Source: edelman2022, Figure 2, by the preset "paper" (`_bit_training`, which says what of it is known).
Departures: T = 100, 300 and 800 alone, since dropout needs the plain form, many times as slow as the shortcut.
Guarantee: estimate; intervals at 95 % for each threshold.
"""

import dataclasses
from typing import Any

from genscope.lab import Plan, Search, Study, grid, within
from genscope.studies._bit_training import PLAIN
from genscope.studies.edelman2022_and import FIGURES, LABELS, trial

_SEARCH: dict[str, Any] = {"level": (0.8, 0.5), "lowest": 16, "highest": 1000, "start": 80, "batch": 4}

STUDY = Study(
    name="edelman2022-and-dropout",
    title="How many samples does a sparse AND need with dropout?",
    source="edelman2022, Figure 2, with dropout",
    labels=LABELS,
    trial=trial,
    trial_cost=60.0,
    points=grid(context_length=[100, 300], preset=["paper"]),
    search=Search(width=0.2, trials=32, round=16, **_SEARCH),
    budgets={
        "quick": Plan(
            grid(context_length=[100], preset=["paper"]), search=Search(trials=8, round=8, **_SEARCH), trial_cost=20.0
        ),
        "paper": Plan(
            grid(context_length=[100, 300, 800], preset=["paper"]), search=Search(trials=160, round=32, **_SEARCH)
        ),
    },
    figures=tuple(
        dataclasses.replace(figure, title=f"{figure.title}, with dropout", source="", **changes)
        for figure, changes in zip(FIGURES[:2], ({}, {"where": {"preset": "paper"}}), strict=True)
    ),
    check=within(context_length=(3, PLAIN), sample_size=(1, 100_000)),
)
