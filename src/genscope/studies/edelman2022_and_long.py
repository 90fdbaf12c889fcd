"""Sparse AND at long contexts: whether the logarithm goes on, and what decides a trial there.

Source: edelman2022, Figure 2 (T from 100 to 1,100); longer contexts and the crossed design are ours.
Departures: those of `edelman2022_and`.
Guarantee: estimate; a few thresholds with wide intervals.
"""

import dataclasses
from typing import Any

from jaxtyping import Array, Key

from genscope.lab import Line, Mean, Plan, Search, Study, grid
from genscope.random import derived, stream
from genscope.studies.edelman2022_and import CHECK, FIGURES, LABELS, learn_and, trial

STUDY = Study(
    name="edelman2022-and-long",
    title="Sparse AND at long contexts",
    source="edelman2022, Figure 2, continued",
    labels=LABELS,
    trial=trial,
    trial_cost=9.0,
    points=grid(context_length=[1600, 3200, 10_000], preset=["tuned"]),
    search=Search(lowest=32, highest=1000, start=130, width=0.25, trials=48, batch=4, round=16),
    budgets={
        "quick": Plan(
            grid(context_length=[3200], preset=["tuned"]),
            search=Search(lowest=32, highest=1000, start=130, width=0.25, trials=48, batch=4, round=16),
        ),
        "paper": Plan(
            grid(context_length=[1600, 3200, 10_000, 30_000, 100_000], preset=["tuned"]),
            search=Search(lowest=32, highest=1000, start=130, width=0.15, trials=240, batch=4, round=16),
        ),
    },
    figures=(
        dataclasses.replace(
            FIGURES[0],
            title="Samples to learn a 3-sparse AND at long contexts",
            opening="",
            claims=(),
            caption=(
                "The threshold as in Figure 2 of the paper, for contexts beyond its range, with 95 % intervals. "
                "A context at which the success rate levels off below 80 % has no threshold and is marked by a cross. "
                "Stars: the paper's points, digitized to within a sample or two."
            ),
        ),
        dataclasses.replace(FIGURES[1], title="Success against sample size at long contexts", source=""),
    ),
    revision=5,
    check=CHECK,
)


def crossed_trial(key: Key[Array, ""], *, initialisation: int, sample: int, **point: Any) -> dict[str, Any]:
    """One cell of a crossed design: initialization number `initialisation` meets support and data number `sample`."""
    data_key = derived(stream(key, "sample"), sample)
    return learn_and(
        support_key=stream(data_key, "support"),
        init_key=derived(stream(key, "init"), initialisation),
        data_key=data_key,
        **point,
    )


SOURCES = Study(
    name="edelman2022-and-sources",
    title="Sparse AND: is it the initialization or the data?",
    source="edelman2022, Figure 2 (variance between trials)",
    trial=crossed_trial,
    trial_cost=2.0,
    points=grid(
        context_length=[400, 800],
        sample_size=[100],
        preset=["tuned", "minGPT"],
        initialisation=range(8),
        sample=range(8),
    ),
    budgets={
        "quick": Plan(
            grid(context_length=[800], sample_size=[100], preset=["tuned"], initialisation=range(4), sample=range(4))
        ),
        "paper": Plan(
            grid(
                context_length=[800, 3200],
                sample_size=[100, 150],
                preset=["tuned", "minGPT"],
                initialisation=range(16),
                sample=range(16),
            )
        ),
    },
    figures=tuple(
        Line(
            title=f"Success by {word}",
            caption=(
                f"Share of successful trials for each {word}, over all numbers of the other; 95 % Wilson intervals. "
                "If only the sample mattered, all initializations would agree."
            ),
            labels=LABELS
            | {"initialisation": "initialization number", "sample": "number of the sample (with support)"},
            where={"context_length": 800},
            x=axis,
            y=Mean("success"),
            by="preset",
        )
        for axis, word in (("initialisation", "initialisation"), ("sample", "sample"))
    ),
    paired=frozenset({"preset", "initialisation", "sample"}),
    batch=1,
    revision=5,
    check=CHECK,
)
