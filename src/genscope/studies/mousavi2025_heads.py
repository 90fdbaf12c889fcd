r"""Risk of trained Transformers against their number of heads: fewer than q cannot, q can.

Source: mousavi2025, Propositions 4 and 21 (training is ours; the propositions bound every network).
Departures: the family "positional" has no attention weight between data and positions (Proposition 21, risk at least
$1-H/q$ in every dimension); the family "full" has arbitrary query-key matrices (the sharper form of Proposition 4, risk
at least $(1-H/q)(1-H/d)$). Heads start near those of Lemma 11, each at a slot of its own: from random ones, training
often leads two heads to the same token, and then shows nothing about what q heads can do.
Guarantee: risks are unbiased estimates on 100,000 fresh prompts, with standard errors.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Key

from genscope.bounds import heads_lower
from genscope.lab import Plan, Study, grid
from genscope.lab.figure import Line, Mean, Reference
from genscope.lab.study import within
from genscope.measure.risk import population_risk
from genscope.models.mousavi2025 import Transformer
from genscope.models.token_attention import draw_full
from genscope.random import stream
from genscope.tasks import Batch
from genscope.tasks.silent_half import SilentHalf
from genscope.train.samples_to_threshold import begin, train_steps

CONTEXT_LENGTH, ENCODING_DIM, HIDDEN = 8, 8, 100
BATCH, STEPS, RATE, DECAY = 128, 2_000, 3e-3, 1e-4
START = 3.0  # lead of the token that a head asks for over a token with an orthogonal encoding
FAMILIES = ("positional", "full")


def lower_bound(family: str, *, heads: int, sparsity: int, dim: int) -> float:
    """What no network of the family can go below."""
    form = "block" if family == "positional" else "sharp"
    return heads_lower(heads=heads, sparsity=sparsity, dimension=dim, form=form).value


def trial(key: Key[Array, ""], *, family: str, sparsity: int, heads: int, dim: int) -> dict[str, Any]:
    """Train on fresh batches with a falling rate, then estimate the risk."""
    if family not in FAMILIES:
        raise ValueError(f"got {family=}: families are {', '.join(FAMILIES)}. Choose one of them.")
    task = SilentHalf.draw(
        stream(key, "encoding"),
        context_length=CONTEXT_LENGTH,
        sparsity=sparsity,
        dim=dim,
        encoding_dim=ENCODING_DIM,
        max_correlation=0.5,
    )
    size = dim + (sparsity + 1) * ENCODING_DIM
    inside = jnp.arange(size) >= dim if family == "positional" else jnp.ones(size, bool)
    model = draw_full(stream(key, "init"), dim=size, heads=heads, hidden=HIDDEN, output_bias=True)
    model = eqx.tree_at(lambda m: m.w_qk, model, replace_fn=lambda w: w + _blocks(heads, sparsity, dim))
    model, losses = _train(model, task, inside, stream(key, "data"))
    risk = population_risk(lambda x: _predict(model, task, inside, x), task, key=stream(key, "test"), size=100_000)
    return {
        "risk": risk.mean,
        "risk_sem": risk.sem,
        "bound": lower_bound(family, heads=heads, sparsity=sparsity, dim=dim),
        "loss_curve": losses[:: STEPS // 100],
    }


def _blocks(heads: int, sparsity: int, dim: int) -> Float[Array, "heads D D"]:
    r"""Lemma 11's query-key matrices, head h at slot h: rows of $\omega_{t_h}$, columns of $\omega_i$."""
    size = dim + (sparsity + 1) * ENCODING_DIM
    blocks = np.zeros((heads, size, size), np.float32)
    block = START * sparsity / dim * np.eye(ENCODING_DIM)
    for head in range(heads):
        row = dim + (head % sparsity + 1) * ENCODING_DIM
        blocks[head, row : row + ENCODING_DIM, dim : dim + ENCODING_DIM] = block
    return jnp.asarray(blocks)


@eqx.filter_jit
def _predict(model: Transformer, task: SilentHalf, inside: Array, x: Float[Array, "size N d"]) -> Array:
    """Predictions of a network whose query-key matrices are 0 outside the given rows and columns."""
    masked = eqx.tree_at(lambda m: m.w_qk, model, jnp.where(jnp.outer(inside, inside)[None], model.w_qk, 0))
    return jax.vmap(lambda tokens: masked(task.encode(tokens)))(x)


def _train(model: Transformer, task: SilentHalf, inside: Array, key: Key[Array, ""]) -> tuple[Transformer, np.ndarray]:
    model, state = begin(model)
    parts = []
    for part, rate in enumerate((RATE, RATE / 3, RATE / 10, RATE / 30)):
        fixed = (task, inside, key, jnp.int32(part * (STEPS // 4)), jnp.float32(rate))
        model, state, values = _advance(fixed, model, state)
        parts.append(np.asarray(values))
    return model, np.concatenate(parts)


@eqx.filter_jit(donate="all-except-first")
def _advance(fixed, model, state) -> Any:
    task, inside, key, first, rate = fixed

    def losses(model: Any, task: Any, batch: Batch) -> Array:
        return jnp.mean((_predict(model, task, inside, batch.x) - batch.y) ** 2, axis=1)

    def draw(number: Array) -> Batch:
        return task.sample(jr.fold_in(key, number), BATCH)

    return train_steps(model, state, first + jnp.arange(STEPS // 4), draw, losses, task, rate, jnp.float32(DECAY))


def _grid(family: str, sparsities: list[int], dim: int):
    return tuple(
        point for q in sparsities for point in grid(family=[family], sparsity=[q], heads=[*range(1, q + 1)], dim=[dim])
    )


def _figure(sparsity: int) -> Line:
    heads = list(range(1, sparsity + 1))
    return Line(
        title=f"Risk against the number of heads, q = {sparsity}",
        caption=(
            "Risk of trained Transformers without attention between data and positions, with its 95 % interval; the "
            "line is the bound of Proposition 21 for every such network. Predicting 0 has risk 1."
        ),
        source="mousavi2025, Propositions 4 and 21",
        labels={"heads": "heads H", "risk": "risk"},
        where={"family": "positional", "sparsity": sparsity},
        x="heads",
        y=Mean("risk"),
        references=(
            Reference("1 - H/q", heads, [lower_bound("positional", heads=h, sparsity=sparsity, dim=1) for h in heads]),
        ),
    )


STUDY = Study(
    name="mousavi2025-heads",
    title="Fewer than q heads cannot",
    source="mousavi2025, Propositions 4 and 21",
    trial=trial,
    trial_cost=10.0,
    points=(*_grid("positional", [2, 3, 4], 1), *_grid("full", [2], 8)),
    seeds=3,
    budgets={
        "quick": Plan(_grid("positional", [2], 1), seeds=2),
        "paper": Plan((*_grid("positional", [2, 3, 4], 1), *_grid("full", [2, 3], 8)), seeds=5),
    },
    figures=tuple(_figure(q) for q in (2, 3, 4)),
    batch=1,
    check=within(sparsity=(1, CONTEXT_LENGTH // 2), heads=(1, 16), dim=(1, 64)),
)
