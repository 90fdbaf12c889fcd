"""A better single run of the sparse AND: a decay of the position embeddings, and what it does to lapses and thresholds.

With enough samples a run fails because the embeddings of irrelevant positions, of which there are many, memorize the
sample before attention has found the relevant ones. A decay of all position embeddings holds them near 0, while those
of the relevant positions, whose gradients agree on all examples, grow against it.

Source: edelman2022, Figure 2; the decay is ours, the best of some forty changes on exploratory seeds (docs/claims.md).
Departures: those of `edelman2022_and`; the loss below which a run is given up includes the decay.
Guarantee: estimate; intervals at 95 %.
"""

import dataclasses

from genscope.lab import Line, Mean, Plan, Search, Study, grid
from genscope.studies.edelman2022_and import CHECK, FIGURES, LABELS, LEVELS, trial

SIZES = {200: 70, 800: 90, 3200: 105}  # samples at which half to two thirds of the runs with the preset "tuned" learn


def _pairs(*lengths: int) -> list[dict[str, int | str]]:
    return [
        {"context_length": length, "sample_size": SIZES[length], "preset": preset}
        for preset in ("tuned", "decayed")
        for length in lengths
    ]


PAIRED = Study(
    name="edelman2022-and-lapses",
    title="Sparse AND: do decayed positions make single runs succeed?",
    source="edelman2022, Figure 2 (runs that fail with enough samples)",
    labels=LABELS,
    trial=trial,
    trial_cost=1.2,
    points=_pairs(*SIZES),
    seeds=100,
    budgets={"quick": Plan(_pairs(800), seeds=10), "paper": Plan(_pairs(*SIZES), seeds=400)},
    figures=(
        Line(
            title="Success of single runs with and without decay of the positions",
            caption=(
                "Share of runs that reach 100 % validation accuracy, with 95 % intervals. Both networks see the same "
                "samples and start from the same weights; there are 70, 90 and 105 samples at T = 200, 800 and 3,200."
            ),
            x="context_length",
            y=Mean("success"),
            by="preset",
            log_x=True,
        ),
    ),
    paired=frozenset({"preset"}),
    batch=4,
    check=CHECK,
)

_ANSWER = {"answer": FIGURES[0].answer.replace("tuned", "decayed")}
STUDY = Study(
    name="edelman2022-and-decayed",
    title="How many samples does a sparse AND need with decayed positions?",
    source="edelman2022, Figure 2, with decay of the position embeddings",
    labels=LABELS,
    trial=trial,
    trial_cost=15.0,
    points=grid(context_length=[50, 200, 800, 10_000], preset=["decayed"]),
    search=Search(level=LEVELS[:2], lowest=16, highest=600, start=70, width=0.10, trials=128, batch=4, round=16),
    budgets={
        "quick": Plan(
            grid(context_length=[50, 200, 800], preset=["decayed"]),
            search=Search(level=LEVELS[:2], lowest=16, highest=400, start=70, width=0.2, trials=32, batch=4, round=16),
            trial_cost=0.6,
        ),
        "paper": Plan(
            grid(context_length=[50, 200, 800, 3200, 10_000, 30_000, 100_000], preset=["decayed"]),
            search=Search(
                level=LEVELS[:2], lowest=16, highest=2000, start=70, width=0.05, trials=400, batch=4, round=32
            ),
            trial_cost=40.0,
        ),
    },
    figures=tuple(
        dataclasses.replace(figure, title=f"{figure.title}, positions decayed", opening="", claims=(), **changes)
        for figure, changes in zip(FIGURES[:2], (_ANSWER, {"where": {"preset": "decayed"}}), strict=True)
    ),
    check=CHECK,
)
