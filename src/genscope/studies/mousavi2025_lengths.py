r"""Length generalization: trained on prompts of N tokens, tested on shorter and longer ones.

Source: mousavi2025, Section 1 (their bounds "lay the foundation for future rigorous investigations of length
generalization"); the question is open there, and no claim rests on this study.
Departures: ours throughout. All lengths share one draw of `LONGEST` encodings of dimension $\lfloor5\ln64\rfloor$, of
which training sees the first N; longer prompts point to positions, and bear encodings, that no training prompt had.
Networks and optimizer are the public code's, training has a fixed number of fresh batches, and the RNN is a GRU of 128
units.
Guarantee: risks are unbiased estimates on 4,000 fresh prompts, over the risk $1-1/N'$ of a predictor that ignores the
index: 1 says that nothing of retrieval is left, more that what was learned misleads.
"""

import dataclasses
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from genscope.lab import Curves, Level, Plan, Study, grid, within
from genscope.measure.risk import population_risk
from genscope.random import stream
from genscope.refusal import Refusal
from genscope.studies._token_protocols import CODE
from genscope.studies._token_training import BATCH, PromptLoss, blind_risk, draw_model, predict
from genscope.tasks.token_encoding import default_encoding_dim
from genscope.tasks.token_regression import TokenRegression
from genscope.train import Fresh, adamw, fit

LONGEST = 64
TEST_LENGTHS = (4, 8, 12, 16, 24, 32, 48, LONGEST)
ARCHITECTURES = ("transformer", "gru-128")  # the FFN has a fixed number of inputs
RATE = 1e-3


def trial(key: Key[Array, ""], *, architecture: str, context_length: int, task: str, steps: int) -> dict[str, Any]:
    """Train at one length and test at all."""
    if architecture not in ARCHITECTURES or task not in ("1STR", "simple-1STR"):
        raise Refusal(
            f"got {architecture=}, {task=}: architectures are {', '.join(ARCHITECTURES)}, tasks 1STR and simple-1STR. "
            "Choose among these."
        )
    dimension = default_encoding_dim(LONGEST)
    whole = TokenRegression.draw(
        stream(key, "task"),
        context_length=LONGEST,
        encoding_dim=dimension,
        shared_positions=task == "simple-1STR",
    )
    trained = of_length(whole, context_length)
    model = draw_model(stream(key, "init"), trained, jnp.int32(dimension), architecture=architecture, protocol=CODE)
    run = fit(
        model,
        Fresh(trained, stream(key, "data"), BATCH),
        PromptLoss(trained),
        steps,
        optimizer=adamw(RATE, weight_decay=CODE.weight_decay),
        every=100,
    )
    ratios = [
        _risk(run.model, of_length(whole, length), stream(key, f"test {length}")) / blind_risk(length)
        for length in (*TEST_LENGTHS, context_length)
    ]
    return {
        "test_lengths": np.asarray(TEST_LENGTHS),
        "relative_risk": np.asarray(ratios[:-1]),
        "relative_risk_trained": ratios[-1],
        "relative_risk_longest": ratios[-2],
        "samples": run.samples,
    }


def of_length(task: TokenRegression, length: int) -> TokenRegression:
    """The task on the first positions."""
    return dataclasses.replace(task, encoding=task.encoding[:length])


def _risk(model: Any, task: TokenRegression, key: Key[Array, ""]) -> float:
    ask = eqx.filter_jit(lambda x: predict(model, task, x))
    return population_risk(ask, task, key=key, size=4_000).mean


def _points(lengths: list[int], steps: int):
    return grid(architecture=ARCHITECTURES, context_length=lengths, task=["1STR", "simple-1STR"], steps=[steps])


STUDY = Study(
    name="mousavi2025-lengths",
    title="Trained at one length, tested at others",
    source="mousavi2025, Section 1 (an open question)",
    trial=trial,
    trial_cost=40.0,
    points=_points([8, 16], 2_000),
    seeds=3,
    budgets={
        "quick": Plan(grid(architecture=["transformer"], context_length=[8], task=["1STR"], steps=[1_000]), seeds=1),
        "paper": Plan(_points([8, 16, 32], 4_000), seeds=5),
    },
    figures=tuple(
        Curves(
            title=f"Risk at other lengths than the trained one, {task}",
            caption=(
                "Risk over that of a predictor that ignores the index, against the number of tokens of the test "
                "prompts; one panel per architecture and, thin, one line per run. Positions beyond the trained length "
                "have encodings that training never showed."
            ),
            labels={"test_lengths": "tokens of a test prompt", "relative_risk": "risk over 1 − 1/N"},
            where={"task": task},
            x="test_lengths",
            y=("relative_risk",),
            quantity="risk over 1 − 1/N",
            facet="architecture",
            levels=(Level(1.0, "without the index"),),
            log_x=True,
        )
        for task in ("1STR", "simple-1STR")
    ),
    batch=1,
    check=within(context_length=(2, LONGEST), steps=(1, 100_000)),
)
