r"""What the training runs of LS26 depend on: layer normalization, batch size, width, and the learner of Definition 1.

Source: lintilhac2026, Appendix A (ablations in words: the normalisation changes nothing qualitatively, degree 5 fails
with batches above 256, the minimal width converges for small degrees and sparsities) and Definition 1.
Departures: those of `_walsh_training`, but that every arm takes the same number of *epochs*; shorter contexts and
smaller samples than the paper's T = 20 and 8,192 strings, except at `paper`. The paper gives no numbers for its
ablations. "minimal" has the width of the construction: one dimension beside the positions and 4(⌊k/2⌋ + 1) units.
Guarantee: shown beside claims C3 and C4, and no part of them: nothing is decided here. Errors are exact on the sample
and exact or means over 8,192 fresh strings beyond; traces are Hutchinson's estimates with 32 probes.
"""

import functools
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from genscope.fourier import points, random_function
from genscope.lab import Line, Mean, Plan, Study
from genscope.lab.plans.study import Point, within
from genscope.measure.sharpness import hessian_trace
from genscope.models.bit_transformer import BitTransformer
from genscope.models.bit_transformer_normalised import NormalisedBitTransformer
from genscope.random import stream
from genscope.refusal import Refusal
from genscope.studies._walsh_training import BATCH, DECAY, TEST, descend, draw
from genscope.tasks import Batch, WalshSum
from genscope.train import AbstractObjective, LowSharpness, Risk, each_loss, squared

STRINGS, PROBES = 512, 32  # of the trace


class Ablation(NamedTuple):
    """How a run departs from the plain one."""

    batch: int = BATCH
    normalised: bool = False
    minimal: bool = False
    mu: float = 0.0  # Definition 1, in place of weight decay
    nu: float = 0.0

    @property
    def idealised(self) -> bool:
        """Whether the learner is that of Definition 1."""
        return bool(self.mu or self.nu)


ARMS = {
    "plain": Ablation(),
    "layer norm": Ablation(normalised=True),
    "batch 16": Ablation(batch=16),
    "batch 256": Ablation(batch=256),
    "batch 1024": Ablation(batch=1024),
    "minimal": Ablation(minimal=True),
    "definition 1": Ablation(mu=1e-5, nu=1e-5),
}


def trial(
    key: Key[Array, ""], *, context_length: int, sample_size: int, degree: int, sparsity: int, arm: str, epochs: int
) -> dict[str, Any]:
    """Train one network in one way, and measure gap, norm and trace."""
    how = ARMS[arm]
    task = WalshSum.of(random_function(stream(key, "task"), dim=context_length, degree=degree, sparsity=sparsity))
    sample = draw(task, stream(key, "sample"), sample_size)
    width = (1, 4 * (degree // 2 + 1)) if how.minimal else (30, 128)
    start = _initial(stream(key, "init"), context_length, width, how.normalised)
    predict = type(start).outputs
    run = descend(
        start,
        sample,
        key=stream(key, "order"),
        epochs=epochs,
        weight_decay=0.0 if how.idealised else DECAY,
        batch=how.batch,
        predict=predict,
        objective=functools.partial(_idealised, how) if how.idealised else None,
    )
    everything = 2**context_length <= TEST
    fresh = _cube(task, context_length) if everything else draw(task, stream(key, "test"), TEST)
    test_error = float(each_loss(run.model, fresh, squared, predict=predict).mean())
    part = Batch(sample.x[:STRINGS], sample.y[:STRINGS])
    options: dict[str, Any] = {"probes": PROBES, "key": stream(key, "probes"), "predict": predict}
    trace = None if run.diverged else hessian_trace(run.model, part, method="hutchinson", **options)
    leaves = [np.asarray(leaf, float) for leaf in jax.tree.leaves(eqx.filter(run.model, eqx.is_inexact_array))]
    return {
        "converged": run.converged,
        "diverged": run.diverged,
        "epochs_taken": run.epochs,
        "training_error": run.error,
        "test_error": test_error,
        "gap": test_error - run.error,
        "parameters": sum(leaf.size for leaf in leaves),
        "norm_squared": float(sum(np.sum(leaf**2) for leaf in leaves)),
        "trace": None if trace is None else trace.mean,
        "trace_sem": None if trace is None else trace.sem,
    }


@functools.partial(jax.jit, static_argnums=(1, 2, 3))
def _initial(key: Key[Array, ""], context_length: int, width: tuple[int, int], normalised: bool) -> Any:
    network = NormalisedBitTransformer if normalised else BitTransformer
    return network(context_length, embedding=width[0], hidden=width[1], key=key)


def _idealised(how: Ablation, risk: Risk) -> AbstractObjective:
    return LowSharpness(risk, mu=how.mu, nu=how.nu)


@functools.partial(eqx.filter_jit)
def _cube(task: WalshSum, context_length: int) -> Batch:
    x = jnp.asarray(points(context_length))
    return Batch(x, jax.vmap(task.target)(x))


def _check(point: Point) -> None:
    within(context_length=(2, 64), sample_size=(BATCH, 2**20), degree=(1, 16), sparsity=(1, 64), epochs=(1, 10**5))(
        point
    )
    if "arm" in point and point["arm"] not in ARMS:
        raise Refusal(f"arm must be one of {', '.join(ARMS)}. Choose one of them.")
    if {"arm", "sample_size"} <= {*point} and int(point["sample_size"]) < max(STRINGS, ARMS[str(point["arm"])].batch):
        raise Refusal(
            f"the sample holds {STRINGS} strings for the trace, and a batch of the arm at least. Take a larger sample."
        )


def _points(classes: list[tuple[int, int]], context_length: int, sample_size: int, epochs: int) -> tuple[Point, ...]:
    return tuple(
        {
            "context_length": context_length,
            "sample_size": sample_size,
            "degree": degree,
            "sparsity": sparsity,
            "arm": arm,
            "epochs": epochs,
        }
        for degree, sparsity in classes
        for arm in ARMS
    )


_LABELS = {
    "degree": "degree k",
    "gap": "test error − training error",
    "epochs_taken": "epochs",
    "converged": "share of runs that converge",
    "arm": "training",
}

STUDY = Study(
    name="lintilhac2026-ablations",
    title="Ablations: layer normalization, batch size, minimal width, and Definition 1's learner",
    source="lintilhac2026, Appendix A",
    labels=_LABELS,
    trial=trial,
    trial_cost=40.0,
    points=_points([(1, 2), (2, 2), (3, 2)], 12, 1024, 200),
    seeds=3,
    budgets={
        "quick": Plan(_points([(1, 2)], 8, 1024, 20), seeds=1, trial_cost=20.0),
        "paper": Plan(_points([(k, s) for k in (1, 2, 3, 4, 5) for s in (2, 5)], 20, 8192, 400), seeds=5),
    },
    figures=(
        Line(
            title="Runs that converge, by the way of training",
            caption=(
                "Share of runs whose training error falls below 0.02 within the same number of epochs, with 95 % "
                "intervals. Not part of any claim."
            ),
            x="degree",
            y=Mean("converged"),
            by="arm",
        ),
        Line(
            title="Generalization gap, by the way of training",
            caption="Test error less training error (mean squared) of the runs that converge, with 95 % intervals.",
            where={"converged": True},
            x="degree",
            y=Mean("gap"),
            by="arm",
        ),
        Line(
            title="Trace of the Hessian, by the way of training",
            caption=(
                "Trace at the training sample of the runs that converge, geometric means with 95 % intervals. The "
                "learner of Definition 1 descends it."
            ),
            where={"converged": True},
            labels={"trace": "trace of the Hessian"},
            x="degree",
            y=Mean("trace"),
            by="arm",
            log_y=True,
        ),
    ),
    paired=frozenset({"arm", "epochs"}),
    batch=1,
    check=_check,
)
