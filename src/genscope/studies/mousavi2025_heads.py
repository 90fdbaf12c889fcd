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
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from genscope.bounds import heads_lower
from genscope.lab import Line, Mean, Plan, Reference, Study, grid, within
from genscope.measure.risk import population_risk
from genscope.models.mousavi2025 import TokenTransformer
from genscope.models.token_attention import draw_full
from genscope.random import stream
from genscope.refusal import Refusal
from genscope.tasks.silent_half import SilentHalf
from genscope.train import Fresh, Risk, adamw, fit, squared

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
        raise Refusal(f"got {family=}: families are {', '.join(FAMILIES)}. Choose one of them.")
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
    predict = Masked(task, inside)
    run = fit(
        model,
        Fresh(task, stream(key, "data"), BATCH, ahead=False),
        Risk(squared, predict),
        until=STEPS,
        optimizer=adamw(1.0, weight_decay=DECAY, schedule=_falling),
        every=STEPS // 4,
    )
    risk = population_risk(lambda x: predict(run.model, x), task, key=stream(key, "test"), size=100_000)
    return {
        "risk": risk.mean,
        "risk_sem": risk.sem,
        "bound": lower_bound(family, heads=heads, sparsity=sparsity, dim=dim),
        "loss_curve": run.losses[:: STEPS // 100],
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


class Masked(eqx.Module):
    """Predictions of a network whose query-key matrices are 0 outside the given rows and columns."""

    task: SilentHalf
    inside: Bool[Array, " D"]

    @eqx.filter_jit
    def __call__(self, model: TokenTransformer, x: Float[Array, "size N d"]) -> Float[Array, "size N"]:
        """For a batch of tokens."""
        mask = jnp.outer(self.inside, self.inside)[None]
        masked = eqx.tree_at(lambda m: m.w_qk, model, jnp.where(mask, model.w_qk, 0))
        return jax.vmap(lambda tokens: masked(self.task.encode(tokens)))(x)


def _falling(steps: np.ndarray) -> np.ndarray:
    """The rate, and in the later quarters a third, a tenth and a thirtieth of it."""
    return RATE / np.array([1, 3, 10, 30])[steps // (STEPS // 4)]


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
