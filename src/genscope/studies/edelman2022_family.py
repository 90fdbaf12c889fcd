"""How many samples do sparse functions need? AND of two to four bits, OR of three, majority of three and of five.

Source: edelman2022, Section 6 (its figures show the AND of three bits).
Departures: as in `edelman2022_and`, but samples that fit other placements of the function are kept: to look for one
takes minutes for a majority of five bits among 800. Such a sample is mostly a failure, for the ideal learner as well.
Guarantee: estimate; intervals at 95 % for each threshold.
"""

from typing import Any

from jaxtyping import Array, Key

from genscope.lab import Crossing, Line, Plan, Reference, Search, Study, Success, grid, within
from genscope.random import stream
from genscope.studies._bit_training import summary, train
from genscope.studies.edelman2022_and import LABELS, LENGTHS, SETTLED, references
from genscope.tasks import SparseAnd, SparseMajority, SparseOr

FUNCTIONS = {
    "AND of 2": (SparseAnd, 2),
    "AND of 3": (SparseAnd, 3),
    "AND of 4": (SparseAnd, 4),
    "OR of 3": (SparseOr, 3),
    "majority of 3": (SparseMajority, 3),
    "majority of 5": (SparseMajority, 5),
}

_BALANCED = {  # how an expression calls them, and the share of ones at which their labels are balanced
    SparseAnd: ("and", lambda size: 0.5 ** (1 / size)),
    SparseOr: ("or", lambda size: 1 - 0.5 ** (1 / size)),
    SparseMajority: ("maj", lambda size: 0.5),
}


def trial(key: Key[Array, ""], *, function: str, context_length: int, sample_size: int, preset: str) -> dict[str, Any]:
    """One run on one sample of a function at random places; `success` is 100 % on 10,000 held-out examples."""
    kind, size = FUNCTIONS[function]
    run = train(
        kind.draw(stream(key, "support"), context_length=context_length, support_size=size),
        sample_size=sample_size,
        preset=preset,
        init_key=stream(key, "init"),
        data_key=stream(key, "data"),
        floor=SETTLED,
        unique=False,
        stop=lambda progress, drawn, validation: validation.perfect(progress.model),
    )
    found = summary(run, success=run.fit.stopped, perfect=run.fit.stopped)
    return {name: value for name, value in found.items() if name not in ("rejected_draws", "identified")}


def _references(function: str) -> tuple[Reference, ...]:
    kind, size = FUNCTIONS[function]
    word, ones = _BALANCED[kind]
    text = f"{word}({', '.join(f'x{number}' for number in range(size))})"  # a task would start JAX
    return references(text, LENGTHS, ones(size), information="information bound")


CROSSING = Crossing("sample_size", "success", 0.8)
_SOURCE = "edelman2022, Section 6"
_LABELS = LABELS | {"function": "function"}
_SEARCH: dict[str, Any] = {"lowest": 8, "highest": 1000, "start": 70, "batch": 4, "round": 16}

STUDY = Study(
    name="edelman2022-family",
    title="How many samples do sparse functions need?",
    source=_SOURCE,
    labels=_LABELS,
    trial=trial,
    trial_cost=0.3,
    points=grid(context_length=LENGTHS, function=[*FUNCTIONS], preset=["tuned"]),
    search=Search(width=0.2, trials=240, **_SEARCH),
    budgets={
        "quick": Plan(
            grid(context_length=[50, 200], function=[*FUNCTIONS], preset=["tuned"]), search=Search(trials=32, **_SEARCH)
        ),
        "paper": Plan(
            grid(context_length=LENGTHS, function=[*FUNCTIONS], preset=["tuned"]),
            search=Search(width=0.1, trials=400, **_SEARCH),
        ),
    },
    figures=(
        Line(
            title="Samples to learn sparse functions",
            caption=(
                "The sample size at which 80 % of training runs reach 100 % validation accuracy, with 95 % intervals, "
                "for functions of two to five bits. A logarithm is a straight line here."
            ),
            x="context_length",
            y=CROSSING,
            by="function",
            log_x=True,
        ),
        *(
            Line(
                title=f"Samples to learn: {function}",
                caption="The same for one function, with what an ideal learner needs.",
                where={"function": function},
                x="context_length",
                y=CROSSING,
                log_x=True,
                laws=("log", "power", "linear"),
                references=_references(function),
            )
            for function in FUNCTIONS
        ),
        Success(
            title="Success of sparse functions at T = 50",
            caption="Share of trials that reach 100 % validation accuracy, with Wilson intervals and the fitted curve.",
            where={"context_length": 50},
            crossing=CROSSING,
            panel="function",
            log_x=True,
        ),
    ),
    check=within(context_length=(5, 1_000_000), sample_size=(1, 100_000)),
)
