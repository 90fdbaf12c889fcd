r"""The trained query-key matrix shows the block of the construction: $\omega_t$ of the query, $\omega_i$ of the key.

Source: mousavi2025, Figure 2 (N = 100) and Appendix E (50,000 fixed samples, weight decay 0.2); its public code (at
most 20 epochs, ended when an epoch's mean training loss is below 0.05). The text says 1STR, the code has simple-1STR.
Departures: the picture becomes three shares with their chance levels (`measure.query_key`), followed over training; the
last, incomplete batch of an epoch is left out. An example is drawn again from its own key whenever it is needed, so
that the sample takes no memory.
Guarantee: exact; an epoch visits each of its examples once.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Key

from genscope.lab import Blocks, Curves, Heatmap, Level, Panel, Plan, Study, grid, within
from genscope.measure.query_key import attention_mass, block_share
from genscope.random import derived, stream
from genscope.studies._token_protocols import Protocol, settings
from genscope.studies._token_training import BATCH, DIM, PromptLoss, Shape, draw_model, draw_task, task_keys
from genscope.tasks.token_encoding import default_encoding_dim
from genscope.tasks.token_regression import TokenRegression
from genscope.train import AbstractSource, TrainingState, adamw, fit
from genscope.train.sources import shuffled

SAMPLES, RATE, DECAY = 50_000, 1e-3, 0.2
EPOCHS, SETTLED = 20, 0.05
EVERY = 71  # steps between looks; eleven looks make an epoch
PER_EPOCH = SAMPLES // BATCH
MOST = EPOCHS * PER_EPOCH


def trial(key: Key[Array, ""], *, context_length: int, protocol: str, steps: int) -> dict[str, Any]:
    """Train on a fixed sample for at most `steps` steps, looking at the query-key matrix now and then."""
    chosen = settings(protocol, "transformer")
    encoding_dim = default_encoding_dim(context_length)
    task, model = _draw(key, context_length, encoding_dim, chosen)
    seen: dict[str, list[float]] = {name: [] for name in ("curve_steps", "block_curve", "identity_curve", "loss_curve")}
    epoch: list[np.ndarray] = []

    def look(progress: TrainingState) -> bool:
        share = block_share(_query_key(progress.model), dim=DIM, encoding_dim=encoding_dim)
        values = progress.steps, share.block, share.identity, progress.loss
        for name, value in zip(seen, values, strict=True):
            seen[name].append(float(value))
        epoch.append(progress.losses)
        if progress.steps % PER_EPOCH:
            return False
        mean = np.mean(np.concatenate(epoch))
        epoch.clear()
        return bool(mean < SETTLED)

    run = fit(
        model,
        Redrawn(task, stream(key, "data"), stream(key, "order")),
        PromptLoss(task),
        until=(steps, look),
        optimizer=adamw(RATE, weight_decay=DECAY),
        every=EVERY,
    )
    model = run.model
    share = block_share(_query_key(model), dim=DIM, encoding_dim=encoding_dim)
    return {
        "steps_taken": run.steps,
        "settled": run.stopped,
        "block_share": float(share.block),
        "diagonal_share": float(share.diagonal),
        "identity_share": float(share.identity),
        "mean_diagonal": float(share.mean_diagonal),
        "block_chance": share.block_chance,
        "diagonal_chance": share.diagonal_chance,
        "attention_mass": float(_mass(model, task, stream(key, "look"))),
        "query_key": np.asarray(_query_key(model)),
        **{name: np.asarray(values) for name, values in seen.items()},
    }


def _draw(key: Key[Array, ""], context_length: int, encoding_dim: int, protocol: Protocol) -> Any:
    shape = Shape(context_length, encoding_dim, 1, padded=False)
    sizes = jnp.int32(context_length), jnp.int32(encoding_dim)
    fields = {"shared_positions": protocol.block_simple, "scale": protocol.scale_for("transformer")}
    task = draw_task(task_keys(stream(key, "task"), context_length), *sizes, shape=shape, link="linear", **fields)
    return task, draw_model(stream(key, "init"), task, sizes[1], architecture="transformer", protocol=protocol)


class Redrawn(AbstractSource):
    """Epochs of a sample that takes no memory: an example is drawn again from its own key whenever it is needed."""

    task: TokenRegression
    data: Key[Array, ""]
    key: Key[Array, ""]

    def window(self, first, most):
        """The examples of an epoch in random order."""
        epoch, done = divmod(first, PER_EPOCH)
        rows = shuffled(derived(self.key, epoch), SAMPLES, BATCH)[done : done + most]
        return len(rows), rows

    def steps(self, window, count):
        """Numbers of examples."""
        return None, window

    def batch(self, step):
        """The examples of these numbers."""
        one = jax.vmap(lambda row: self.task.sample(jr.fold_in(self.data, row), 1))(step)
        return jax.tree.map(lambda part: part[:, 0], one)

    def samples(self, steps):
        """Those of the sample."""
        return SAMPLES


def _query_key(model: Any) -> Array:
    return model.query_key()[0]


@eqx.filter_jit
def _mass(model: Any, task: Any, key: Key[Array, ""]) -> Array:
    """Mean attention on the token that is asked for, over 200 fresh prompts."""
    x, t = task.raw(key, 200)
    z = jax.vmap(task.encode)(x, t)
    return attention_mass(jax.vmap(lambda tokens: model.activations(tokens).attention)(z), t)[0, 0]


def _figures(protocol: str, words: str) -> tuple[Heatmap, Curves]:
    return (
        Heatmap(
            title=f"Query-key matrix after training, {words}",
            caption=(
                "W_Q^T W_K of one trained Transformer, query rows against key columns. The construction has one block, "
                "framed here, a multiple of the identity: the position that a token points to, as query, against a "
                "token's own position, as key."
            ),
            claims=("B7",),
            where={"protocol": protocol},
            panels=(Panel("query_key", "query-key matrix"),),
            rows="query",
            columns="key",
            blocks=Blocks(
                ("token", "own position", "pointer"),
                (DIM, None, None),
                outlined=(2, 1),
                label="the construction's block",
            ),
        ),
        Curves(
            title=f"When the block appears, {words}",
            caption=(
                "Share of the squared matrix inside the block, share of the block that the nearest multiple of the "
                "identity holds, and the training loss, against the training step."
            ),
            labels={
                "curve_steps": "training step",
                "block_curve": "in the block",
                "identity_curve": "of the block by αI",
                "loss_curve": "training loss",
            },
            where={"protocol": protocol},
            x="curve_steps",
            y=("block_curve", "identity_curve", "loss_curve"),
            quantity="share, or loss",
            facet="context_length",
            levels=(Level(0.9, "rule, in the block"), Level(0.75, "rule, by αI")),
        ),
    )


STUDY = Study(
    name="mousavi2025-block",
    title="The query-key matrix of a trained Transformer",
    source="mousavi2025, Figure 2",
    trial=trial,
    trial_cost=150.0,
    revision=2,
    points=grid(context_length=[100], protocol=["text", "code"], steps=[8 * PER_EPOCH]),
    seeds=2,
    budgets={
        "quick": Plan(grid(context_length=[25], protocol=["code"], steps=[1_500]), seeds=1, trial_cost=12.0),
        "paper": Plan(grid(context_length=[100], protocol=["code", "text"], steps=[MOST]), seeds=2),
    },
    figures=(
        *_figures("code", "public code, on simple-1STR"),
        *_figures("text", "as the text says, on 1STR"),
    ),
    paired=frozenset({"protocol", "steps"}),
    batch=1,
    check=within(context_length=(2, 400), steps=(1, MOST)),
)
