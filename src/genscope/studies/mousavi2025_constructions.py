"""Networks built to retrieve tokens: heads by sharpness, and a recurrent network by the number of tokens.

Source: mousavi2025, Lemma 11; Propositions 26 and 28.
Departures: encodings, links and prompts are drawn; besides random prompts there are hostile ones.
Guarantee: that of `constructions.verify_retrieval`, in float64.
"""

import dataclasses
import hashlib
import math
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Key

from genscope.constructions.recurrent_retrieval import recurrent_retrieval
from genscope.constructions.retrieval import Retrieval, draw_prompts, retrieval_errors, verify_retrieval
from genscope.constructions.token_retrieval import token_retrieval
from genscope.estimate import Estimate
from genscope.lab import Line, Mean, Plan, Scatter, Study, grid, within
from genscope.precision import float64
from genscope.random import stream
from genscope.tasks.token_regression import TokenRegression

ERROR = 0.01  # that the sharpness 1 of Lemma 11 is for
RANGE = 6.0  # of a coordinate of a token
GAP = 0.5  # of the encodings (Assumption 3)
PROMPTS = 16  # random ones, besides the hostile


def token_trial(
    key: Key[Array, ""], *, context_length: int, dim: int, sparsity: int, encoding_dim: int, sharpness: float
) -> dict[str, Any]:
    """Build q heads with a multiple `sharpness` of the lemma's α, and compare their error with what it promises."""
    task = TokenRegression.draw(
        stream(key, "task"),
        context_length=context_length,
        dim=dim,
        sparsity=sparsity,
        encoding_dim=encoding_dim,
        max_correlation=1 - GAP,
        scale="sqrt_d_over_q",
    )
    radius = math.sqrt(3 * math.e * dim * math.log(1000 * context_length))  # Lemma 12 for 1,000 prompts
    needed = token_retrieval(task, token_norm=radius, error=ERROR).constants["alpha"]
    built = token_retrieval(task, token_norm=radius, alpha=sharpness * needed)
    return _verified(built, key) | {
        "alpha": built.constants["alpha"],
        "rate": built.constants["gap"] * built.constants["scale"],
    }


def recurrent_trial(
    key: Key[Array, ""], *, context_length: int, dim: int, sparsity: int, encoding_dim: int
) -> dict[str, Any]:
    """Build the recurrent network; measure it on simple prompts, which it solves, and on general ones."""
    task = TokenRegression.draw(
        stream(key, "task"),
        context_length=context_length,
        dim=dim,
        sparsity=sparsity,
        encoding_dim=encoding_dim,
        max_correlation=1 - GAP,
        shared_positions=True,
    )
    built = recurrent_retrieval(task, token_range=RANGE, gap=GAP)
    facts = _verified(built, key)
    general = dataclasses.replace(built.task, shared_positions=False)
    x, t = draw_prompts(general, stream(key, "general"), facts["inputs_checked"])
    with float64():
        errors, _ = retrieval_errors(built.model, built.task, np.clip(x, -RANGE, RANGE), t)
    risk = Estimate.of(np.mean(errors**2, axis=1))
    weights = b"".join(np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(built.model))
    return facts | {
        "weights": hashlib.sha256(weights).hexdigest()[:16],
        "general_risk": risk.mean,
        "general_risk_sem": risk.sem,
    }


def _verified(built: Retrieval, key: Key[Array, ""]) -> dict[str, Any]:
    verdict = verify_retrieval(built, prompts=PROMPTS, key=stream(key, "prompts"))
    measured = built.measured_norms()
    return {
        "max_error": verdict.max_error,
        "promised_error": built.error,
        "exact": verdict.exact,
        "kept": verdict.kept,
        "inputs_checked": verdict.inputs_checked,
        "norm_excess": max(measured[name] / norm for name, norm in built.norms.items() if norm),
    }


_SHAPES = (  # N, d, q, d_e
    (8, 4, 1, 64),
    (16, 8, 2, 64),
    (32, 4, 3, 128),
    (64, 10, 1, 128),
)
_AXES = ("context_length", "dim", "sparsity", "encoding_dim")
_TOKEN_POINTS = tuple(
    dict(zip(_AXES, shape, strict=True)) | {"sharpness": sharpness}
    for shape in _SHAPES
    for sharpness in (0.5, 0.75, 1.0, 1.25, 1.5)
)
_SIZES = {"context_length": (1, 4096), "dim": (1, 256), "sparsity": (1, 64), "encoding_dim": (1, 1024)}

TOKENS = Study(
    name="mousavi2025-token-retrieval",
    title="Heads built to retrieve tokens",
    source="mousavi2025, Lemma 11",
    trial=token_trial,
    revision=2,
    trial_cost=0.2,
    points=_TOKEN_POINTS,
    seeds=3,
    budgets={"quick": Plan(_TOKEN_POINTS)},
    figures=(
        Line(
            title="Error of the built heads by their sharpness",
            answer=(
                "With 8 tokens the built heads err by {first 8} at {from 8} times the lemma's sharpness, and by "
                "{last 8} at {to 8} times"
            ),
            caption=(
                "Largest error over random and adversarial prompts of q heads with the weights of Lemma 11, at "
                "multiples of the sharpness for which the lemma guarantees an error of at most 0.01. The lemma "
                "promises exponential decay."
            ),
            labels={"sharpness": "sharpness (1: lemma)", "max_error": "largest error", "context_length": "tokens N"},
            x="sharpness",
            y=Mean("max_error"),
            by="context_length",
            log_y=True,
        ),
    ),
    paired=frozenset({"sharpness"}),
    check=within(**_SIZES, sharpness=(1e-6, 10)),
)

RECURRENT = Study(
    name="mousavi2025-recurrent-retrieval",
    title="A recurrent network built to retrieve tokens",
    source="mousavi2025, Propositions 26 and 28",
    trial=recurrent_trial,
    revision=2,
    trial_cost=1.5,
    points=(
        *grid(context_length=[8, 16, 32, 64, 128, 256, 512], dim=[4], sparsity=[1, 2], encoding_dim=[64]),
        *grid(context_length=[8], dim=[4], sparsity=[1], encoding_dim=[40]),
    ),
    budgets={
        "quick": Plan(
            (
                *grid(context_length=[8, 64, 512], dim=[4], sparsity=[2], encoding_dim=[64]),
                *grid(context_length=[8], dim=[4], sparsity=[1], encoding_dim=[64]),
            )
        )
    },
    figures=(
        Scatter(
            title="One network for all lengths",
            answer=(
                "On general prompts the built network has a mean squared error of {least} to {most}; labels have "
                "variance 1"
            ),
            caption=(
                "Mean squared error of the recurrent construction on general prompts, in which every position has its "
                "own t, against the number of tokens; labels have variance 1. On prompts with one t the same weights "
                "are exact."
            ),
            labels={
                "context_length": "tokens N",
                "general_risk": "mean squared error on general prompts",
                "sparsity": "tokens per label q",
            },
            x="context_length",
            y="general_risk",
            by="sparsity",
            sem="general_risk_sem",
            log_x=True,
        ),
    ),
    paired=frozenset({"context_length"}),
    check=within(**_SIZES),
)
