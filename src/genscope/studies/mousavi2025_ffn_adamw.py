r"""Risk of trained feedforward networks on fewer than Nd samples, beside the best predictor in the span of the sample.

Source: mousavi2025, Theorem 9 (learners whose first layer lies in the span of the sample: stationary points with weight
decay, and least norms) and Appendix E (the network, AdamW).
Departures: the networks are outside of the theorem. They start at random weights, most of which lie outside the span,
and AdamW divides gradients entry by entry, which leads out of it; so nothing but nature keeps their risk above that of
the best predictor in the span. The second layer has 100 units. Of each run the moment of least risk counts, which a
learner would have to know.
Guarantee: risks are estimates on 10,000 fresh prompts, the least of them biased downwards; the span's is exact.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from genscope.bounds.token_limits import ffn_lower
from genscope.estimate import Estimate
from genscope.lab import Line, Mean, Plan, Reference, Study, grid, within
from genscope.models.token_feedforward import TokenFeedForward
from genscope.random import stream
from genscope.studies._token_training import PromptLoss
from genscope.tasks import Batch
from genscope.tasks.token_regression import TokenRegression
from genscope.train import Floor, TrainingState, Whole, adamw, fit

CONTEXT_LENGTH, DIM, SECOND = 8, 5, 100
RATE, DECAY, STEPS, EVERY = 1e-3, 0.01, 4_000, 10
SETTLED = 1e-4  # training loss


def trial(key: Key[Array, ""], *, sample_size: int) -> dict[str, Any]:
    """Train on a fixed sample of simple-1STR until it is fitted."""
    n, dim = CONTEXT_LENGTH, DIM
    task = TokenRegression.draw(stream(key, "task"), context_length=n, dim=dim, shared_positions=True)
    model = TokenFeedForward.draw(
        stream(key, "init"), context_length=n, dim=task.embedding_dim, first=n * dim, second=SECOND
    )
    sample = task.sample(stream(key, "data"), sample_size)
    test = task.sample(stream(key, "test"), 10_000)
    risks: list[Estimate] = []

    def look(progress: TrainingState) -> bool:
        risks.append(Estimate.of(np.asarray(_losses(progress.model, task, test), float)))
        return False

    run = fit(
        model,
        Whole(sample),
        PromptLoss(task),
        (STEPS, look, Floor(SETTLED)),
        optimizer=adamw(RATE, weight_decay=DECAY),
        every=EVERY,
    )
    least = min(risks, key=lambda risk: risk.mean)
    x = np.asarray(sample.x, float)[:, :, :dim].reshape(sample_size, -1)
    label = np.asarray(jax.vmap(task.link)(jnp.eye(dim)[:, None]), float)  # a linear link is its values on a basis
    first = np.asarray(run.model.layers[0].weight, float).reshape(n * dim, n, -1)[:, :, :dim].reshape(n * dim, -1)
    return {
        "risk": risks[-1].mean,
        "least_risk": least.mean,
        "least_risk_sem": least.sem,
        "span_risk": span_risk(x, label, n),
        "bound": ffn_lower(samples=sample_size, tokens=n, dimension=dim).value,
        "outside_share": float(np.sum(_outside(x, first) ** 2) / np.sum(first**2)),
        "train_loss": run.loss,
        "steps_taken": run.steps,
    }


@eqx.filter_jit
def _losses(model: TokenFeedForward, task: TokenRegression, test: Batch) -> Float[Array, " size"]:
    return PromptLoss(task).losses(model, test)


def span_risk(x: Float[np.ndarray, "n Nd"], direction: Float[np.ndarray, " d"], tokens: int) -> float:
    r"""The risk of the best predictor in the span of the rows of x: $\frac1N\sum_t\|P_tu-\Pi P_tu\|^2$."""
    wanted = np.kron(np.eye(tokens), direction)  # rows P_t u
    return float(np.sum(_outside(x, wanted) ** 2) / tokens)


def _outside(x: Float[np.ndarray, "n Nd"], rows: Float[np.ndarray, "k Nd"]) -> Float[np.ndarray, "k Nd"]:
    """What the span of the rows of x leaves of other rows."""
    return rows - (x.T @ np.linalg.lstsq(x.T, rows.T)[0]).T


_SIZES = grid(sample_size=[10, 20, 39])

STUDY = Study(
    name="mousavi2025-ffn-adamw",
    title="Risk of trained FFNs on too few samples",
    source="mousavi2025, Theorem 9",
    trial=trial,
    trial_cost=4.0,
    points=_SIZES,
    seeds=12,
    budgets={"quick": Plan(_SIZES, seeds=1), "paper": Plan(_SIZES, seeds=40)},
    figures=(
        Line(
            title="Risk of FFNs trained by AdamW on n < Nd samples",
            caption=(
                "Least risk of each run, mean over draws with its 95 % interval, N = 8 and d = 5; the line is the "
                "theorem's mean over links, 1 - n/(Nd), for learners in the span of the sample, which these leave."
            ),
            labels={"sample_size": "samples n", "least_risk": "least risk of a run"},
            x="sample_size",
            y=Mean("least_risk"),
            references=(
                Reference(
                    "1 - n/(Nd)",
                    [10, 20, 39],
                    [ffn_lower(samples=n, tokens=CONTEXT_LENGTH, dimension=DIM).value for n in (10, 20, 39)],
                ),
            ),
        ),
    ),
    check=within(sample_size=(1, CONTEXT_LENGTH * DIM - 1)),
)
