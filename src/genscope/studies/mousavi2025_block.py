r"""The trained query-key matrix shows the block of the construction: $\omega_t$ of the query, $\omega_i$ of the key.

Source: mousavi2025, Figure 2: N = 100, 50,000 fixed samples, weight decay 0.2, at most 20 epochs, ended when an epoch's
mean training loss is below 0.05. The text says 1STR, the public code trains on simple-1STR.
Departures: the picture becomes two shares with their chance levels (`measure.query_key`), followed over training; the
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

from genscope.lab import Plan, Study, grid
from genscope.lab.figure import Curves, Heatmap, Level, Panel
from genscope.lab.study import within
from genscope.measure.query_key import attention_mass, block_share
from genscope.models.mousavi2025 import Transformer
from genscope.random import stream
from genscope.studies._token_training import (
    BATCH,
    DIM,
    Protocol,
    Shape,
    draw_model,
    draw_task,
    settings,
    squared_losses,
    task_keys,
)
from genscope.tasks.token_encoding import default_encoding_dim
from genscope.train.samples_to_threshold import begin, train_steps

SAMPLES, RATE, DECAY = 50_000, 1e-3, 0.2
EPOCHS, SETTLED = 20, 0.05
EVERY = 71  # steps between looks; eleven looks make an epoch
PER_EPOCH = SAMPLES // BATCH


def trial(key: Key[Array, ""], *, context_length: int, protocol: str, steps: int) -> dict[str, Any]:
    """Train on a fixed sample for at most `steps` steps, looking at the query-key matrix now and then."""
    chosen = settings(protocol, "transformer")
    encoding_dim = default_encoding_dim(context_length)
    task, model = _draw(key, context_length, encoding_dim, chosen)
    model, state = begin(model)
    seen: dict[str, list[float]] = {name: [] for name in ("curve_steps", "block_curve", "diagonal_curve", "loss_curve")}
    taken, epoch_losses, settled = 0, [], False
    data = stream(key, "data")
    while taken < steps and not settled:
        epoch, done = divmod(taken, PER_EPOCH)
        rows = _order(stream(key, "order"), epoch)[done : done + min(EVERY, steps - taken)]
        model, state, losses = _advance((task, data, jnp.asarray(rows)), model, state)
        taken += len(rows)
        epoch_losses.append(np.asarray(losses))
        share = block_share(_query_key(model), dim=DIM, encoding_dim=encoding_dim)
        for name, value in zip(seen, (taken, share.block, share.diagonal, losses[-1]), strict=True):
            seen[name].append(float(value))
        if taken % PER_EPOCH == 0:
            settled = bool(np.mean(np.concatenate(epoch_losses)) < SETTLED)
            epoch_losses = []
    share = block_share(_query_key(model), dim=DIM, encoding_dim=encoding_dim)
    return {
        "steps_taken": taken,
        "settled": settled,
        "block_share": float(share.block),
        "diagonal_share": float(share.diagonal),
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
    fields = {"shared_positions": protocol.block_simple, "scale": protocol.scale}
    task = draw_task(task_keys(stream(key, "task"), context_length), *sizes, shape=shape, link="linear", **fields)
    return task, draw_model(stream(key, "init"), task, sizes[1], architecture="transformer", protocol=protocol)


def _order(key: Key[Array, ""], epoch: int) -> np.ndarray:
    """The batches of an epoch: all examples in random order."""
    marks = np.asarray(jr.bits(jr.fold_in(key, epoch), (SAMPLES,), "uint32"))
    return np.argsort(marks, kind="stable")[: PER_EPOCH * BATCH].reshape(PER_EPOCH, BATCH).astype(np.int32)


@eqx.filter_jit(donate="all-except-first")
def _advance(fixed, model, state) -> Any:
    task, key, rows = fixed

    def draw(rows):
        one = jax.vmap(lambda row: task.sample(jr.fold_in(key, row), 1))(rows)
        return jax.tree.map(lambda part: part[:, 0], one)

    return train_steps(model, state, rows, draw, squared_losses, task, jnp.float32(RATE), jnp.float32(DECAY))


def _query_key(model: Any) -> Array:
    return model.w_qk[0] if isinstance(model, Transformer) else model.query_key()[0]


@eqx.filter_jit
def _mass(model: Any, task: Any, key: Key[Array, ""]) -> Array:
    """Mean attention on the token that is asked for, over 200 fresh prompts."""
    x, t = task.raw(key, 200)
    z = jax.vmap(task.encode)(x, t)
    if isinstance(model, Transformer):
        return attention_mass(jax.vmap(lambda tokens: model.activations(tokens).attention)(z), t)[0, 0]
    return attention_mass(model.activations(z).attention, t)[0, 0]


STUDY = Study(
    name="mousavi2025-block",
    title="The query-key matrix of a trained Transformer",
    source="mousavi2025, Figure 2",
    trial=trial,
    trial_cost=12.0,
    points=grid(context_length=[100], protocol=["code"], steps=[2 * PER_EPOCH]),
    seeds=2,
    budgets={
        "quick": Plan(grid(context_length=[25], protocol=["code"], steps=[1_500]), seeds=1),
        "paper": Plan(grid(context_length=[100], protocol=["code", "text"], steps=[EPOCHS * PER_EPOCH]), seeds=2),
    },
    figures=(
        Heatmap(
            title="Query-key matrix after training",
            caption=(
                "W_Q^T W_K of one trained Transformer: query rows, key columns, in the order token, own encoding, "
                "asked-for encoding. The construction has one block, the asked-for rows against the own columns, a "
                "multiple of the identity."
            ),
            source="mousavi2025, Figure 2",
            where={"protocol": "code"},
            panels=(Panel("query_key", "query-key matrix"),),
            rows="query",
            columns="key",
        ),
        Curves(
            title="The block appears before the loss falls",
            caption=(
                "Share of the squared matrix inside the block, share of the block on its diagonal, and the training "
                "loss, against the training step."
            ),
            source="mousavi2025, Figure 2",
            labels={
                "curve_steps": "training step",
                "block_curve": "in the block",
                "diagonal_curve": "on its diagonal",
                "loss_curve": "training loss",
            },
            where={"protocol": "code"},
            x="curve_steps",
            y=("block_curve", "diagonal_curve", "loss_curve"),
            quantity="share, or loss",
            facet="context_length",
            levels=(Level(0.9, "rule of the claim"),),
        ),
    ),
    paired=frozenset({"protocol", "steps"}),
    batch=1,
    check=within(context_length=(2, 400), steps=(1, EPOCHS * PER_EPOCH)),
)
