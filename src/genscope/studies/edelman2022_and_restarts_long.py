"""How many samples suffice for a sparse AND at long contexts? As `edelman2022_and_restarts`, with fewer trials.

Source: edelman2022, Figure 2 (T from 100 to 1,100); restarts and longer contexts are ours.
Departures: as in `edelman2022_and_restarts`. All trials look for 80 %, since each takes many times as long.
Guarantee: estimate; intervals at 95 % for each threshold. Those of single runs allow for runs that share their sample.
"""

import dataclasses

from genscope.lab import Plan, Search, grid
from genscope.studies import edelman2022_and_restarts

LENGTHS = {"quick": (3200,), "standard": (10_000,), "paper": (3200, 10_000, 30_000, 100_000)}

STUDY = edelman2022_and_restarts.STUDY.replace(
    name="edelman2022-and-restarts-long",
    title="How many samples suffice for a sparse AND at long contexts?",
    trial_cost=19.0,
    points=grid(context_length=LENGTHS["standard"], preset=["tuned"]),
    search=Search(lowest=20, highest=600, start=100, width=0.05, trials=240, batch=4, round=40),
    budgets={
        "quick": Plan(
            grid(context_length=LENGTHS["quick"], preset=["tuned"]),
            search=Search(lowest=20, highest=600, start=100, width=0.10, trials=8, batch=4, round=8),
            trial_cost=5.0,
        ),
        "paper": Plan(
            grid(context_length=LENGTHS["paper"], preset=["tuned"]),
            search=Search(lowest=20, highest=2000, start=100, width=0.05, trials=150, batch=2, round=30),
            trial_cost=65.0,
        ),
    },
    figures=tuple(
        dataclasses.replace(figure, title=f"{figure.title}, at long contexts")
        for figure in edelman2022_and_restarts.FIGURES
    ),
)
