"""A question as a study: stored, resumed, shared between processes, reported and exported like any other.

Worker processes find the study by a name of this module, which spells the question.

Guarantee: exact; the same question asked twice is the same study, and its trials are computed once.
"""

import contextlib
import functools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from jaxtyping import Array, Key

from genscope.lab import Crossing, Line, Plan, Point, Reference, Search, Study, Success, grid
from genscope.questions.networks import DEEP, IDEAL, NAMED, named, shown
from genscope.questions.question import Question
from genscope.questions.trial import Observer, check_ideal, ideal_cost, network_of, run_trial
from genscope.refusal import Refusal

REVISION = 2
"""Raised when a change of code or of a recipe changes numbers."""
NOISY_REVISION = 3
"""The same of questions with noise: the ideal learner takes the placement with the fewest wrong labels since then."""

BUDGETS = {  # the largest sample, the trials of a threshold at most, the width that is looked for
    "quick": (2_000, 160, 0.25),
    "standard": (20_000, 400, 0.10),
    "paper": (200_000, 2_000, 0.05),
}
ROUND, BATCH = 16, 4
LABELS = {
    "context_length": "context length T",
    "sample_size": "samples m",
    "network": "network",
    "success": "share of trials that succeed",
}


@dataclass(frozen=True)
class Learning:
    """One run: a function at a random placement, a sample, a network trained on it; success on held-out examples."""

    question: Question
    observe: Observer | None = field(default=None, compare=False)

    def __call__(self, key: Key[Array, ""], **point: Any) -> dict[str, Any]:
        """The trial of a point."""
        return run_trial(self.question, key, observe=self.observe, **point)


def search(question: Question, budget: str) -> Search:
    """What is searched at a budget; where it begins grows with the number of bits that matter, as far as it is known.

    Neither depends on the context length, so that a length that is asked for later adds to the same search.
    """
    highest, trials, width = BUDGETS[budget]
    size = question.support_size or 1
    return Search(
        level=question.success,
        lowest=2 * size + 2,
        highest=highest,
        start=24 * size,
        width=question.width or width,
        trials=trials,
        round=ROUND,
        batch=BATCH,
    )


def study(
    question: Question,
    networks: Sequence[str] = (),
    context_lengths: Sequence[int] = (),
    references: Sequence[Reference] = (),
) -> Study:
    """The study of a question, with the points that are asked for; without, all networks at one context length."""
    lengths = list(context_lengths) or [50]
    points = grid(context_length=lengths, network=list(networks) or _all_networks(question, lengths))
    made = Study(
        name=question.name,
        title=f"How many samples does {question.asked} need?",
        source="a question of your own (genscope learn)",
        trial=Learning(question),
        points=points,
        search=search(question, "standard"),
        budgets={name: Plan(points, search=search(question, name)) for name in ("quick", "paper")},
        figures=_figures(question, references),
        paired=frozenset({"network"}),
        revision=NOISY_REVISION if question.noise else REVISION,
        check=functools.partial(_check, question),
        trial_cost=statistics.fmean(_trial_seconds(question, point) for point in points),
    )
    globals()[question.encoded()] = made
    return made


def _all_networks(question: Question, context_lengths: Sequence[int]) -> list[str]:
    """The networks that can be asked; to learn whether the ideal one can, no task of the user's is run."""
    known = list(NAMED)
    if question.task is None:
        with contextlib.suppress(Refusal):
            for length in context_lengths:
                check_ideal(question, length)
            known.append(IDEAL)
    return [*known, *(file.label for file in question.builders)]


def __getattr__(name: str) -> Study:
    if name.startswith("q_"):
        return study(Question.decoded(name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _check(question: Question, point: Point) -> None:
    context_length, network = int(point["context_length"]), str(point["network"])
    question.check(context_length)
    if network == IDEAL:
        check_ideal(question, context_length)
    else:
        network_of(question, network)


def _trial_seconds(question: Question, point: Point) -> float:
    context_length, network = int(point["context_length"]), str(point["network"])
    if network == IDEAL:
        return 0.05 + ideal_cost(question, context_length).seconds
    known = network in NAMED or DEEP.fullmatch(network)
    return named(network).trial_seconds(context_length) if known else 1.0  # of a user's network nothing is known


def _figures(question: Question, references: Sequence[Reference]) -> tuple[Line, Success]:
    crossing = Crossing("sample_size", "success", question.success)
    labels = LABELS | {file.label: shown(file.label) for file in question.builders}
    return (
        Line(
            title=f"Samples to learn {question.asked}",
            caption=(
                f"The sample size at which {100 * question.success:g} % of trials succeed, with 95 % intervals. "
                f"{question.criterion} Arrows mark thresholds that the search only bounded from one side."
            ),
            labels=labels,
            x="context_length",
            y=crossing,
            by="network",
            log_x=True,
            log_y=True,
            laws=("log", "power", "linear"),
            references=tuple(references),
        ),
        Success(
            title="Success against sample size",
            caption=(
                "Share of trials that succeed, with Wilson intervals, and the fitted monotone curve. "
                f"{question.criterion}"
            ),
            labels=labels,
            crossing=crossing,
            panel="context_length",
            by="network",
            log_x=True,
        ),
    )
