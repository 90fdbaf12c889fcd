"""Where a trained head looks: attention on the relevant bits.

Source: edelman2022, Figure 3 (right): T = 50, m = 300, support {5, 20, 30}.
Departures: ten and more runs instead of one, each trained until it has nothing left to learn; the best head is shown
beside the mean over heads, because heads that are not needed stay diffuse.
Guarantee: exact on 1,000 fresh examples.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from genscope.lab import Heatmap, Panel, Plan, Scatter, Study, grid, within
from genscope.measure import cls_attention, support_mass
from genscope.random import stream
from genscope.studies._bit_training import summary, train
from genscope.tasks import SparseAnd

SUPPORT = (5, 20, 30)
SHOWN = 40  # examples kept in the record, and drawn


def trial(key: Key[Array, ""], *, context_length: int, sample_size: int, preset: str) -> dict[str, Any]:
    """Train on the AND of the paper's three positions until nothing is left to learn; look at the attention of CLS."""
    task = SparseAnd.at(SUPPORT, context_length=context_length)
    perfect_at: list[int] = []

    def record(progress, drawn, validation) -> bool:
        if not perfect_at and validation.perfect(progress.model):
            perfect_at.append(progress.steps)
        return False

    run = train(
        task,
        sample_size=sample_size,
        preset=preset,
        init_key=stream(key, "init"),
        data_key=stream(key, "data"),
        stop=record,
    )
    x = task.inputs(stream(key, "attention"), 1000)
    attention = cls_attention(run.model, x)
    mass = support_mass(attention, task.support)
    best = int(mass.best)
    return summary(run, success=bool(perfect_at)) | {
        "best_head": best,
        "best_mass": float(mass.by_head[best]),
        "mean_mass": float(jnp.mean(mass.by_head)),
        "mass_by_head": np.asarray(mass.by_head),
        "top_positions": np.asarray(mass.top),
        "on_support": bool(jnp.array_equal(mass.top, task.support)),
        "support": np.asarray(task.support),
        "attention_best": np.asarray(attention[:SHOWN, best]),
        "attention_mean": np.asarray(jnp.mean(attention[:SHOWN], axis=1)),
        "examples": np.asarray(x[:SHOWN], np.int8),
        "mass_on_relevant_zeros": _mean_weight(attention[:, best], x, task.support, bit=False),
        "mass_on_relevant_ones": _mean_weight(attention[:, best], x, task.support, bit=True),
    }


def _mean_weight(attention: Array, x: Array, support: Array, *, bit: bool) -> float:
    """Mean attention on a support position that holds the given bit."""
    chosen = np.asarray(x[:, support]) == bit
    return float(np.asarray(attention[:, support])[chosen].mean())


STUDY = Study(
    name="edelman2022-attention",
    title="Where a trained head looks",
    source="edelman2022, Figure 3 (right)",
    trial=trial,
    points=grid(context_length=[50], sample_size=[300], preset=["tuned"]),
    seeds=40,
    budgets={
        "quick": Plan(grid(context_length=[50], sample_size=[300], preset=["tuned"]), seeds=12),
        "paper": Plan(grid(context_length=[50], sample_size=[300], preset=["tuned", "minGPT"]), seeds=100),
    },
    figures=(
        Heatmap(
            title="Attention of CLS, example by example",
            answer="The best head puts {most} of its attention on the three relevant bits",
            claims=("A6",),
            caption=(
                "Attention weights from CLS to the 50 positions for 40 fresh examples of one trained classifier, in "
                "the head with most mass on the support and averaged over all 16 heads; the relevant positions are "
                "marked. The weights depend on the input: most go to relevant bits that are 0."
            ),
            where={"preset": "tuned"},
            panels=(Panel("attention_best", "best head"), Panel("attention_mean", "mean over heads")),
            rows="example",
            columns="position",
            marked="support",
        ),
        Scatter(
            title="Attention on the relevant bits, run by run",
            folded=True,
            caption=(
                "Mean attention mass on the three relevant positions (chance: 0.06) in the best head, against the mean "
                "over all heads; one point per training run."
            ),
            labels={"mean_mass": "mass on the support, mean over heads", "best_mass": "mass on the support, best head"},
            x="mean_mass",
            y="best_mass",
            by="preset",
        ),
    ),
    paired=frozenset({"preset"}),
    revision=4,
    check=within(context_length=(max(SUPPORT) + 1, 100_000), sample_size=(1, 100_000)),
)
