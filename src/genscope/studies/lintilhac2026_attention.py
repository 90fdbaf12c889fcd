r"""What the rows of a trained attention show: one attention layer, a curve and a sum, on sparse Fourier-Walsh targets.

Source: lintilhac2026, Section 2.4 and Figure 5.
Departures: many runs instead of one, rows read automatically (`measure.attention_rows`). Optimizer, rate and batch are
ours: AdamW on fresh batches, until one of them has a squared error below 0.005. Rows are compared with the
components that the trained network really has (at least 1 % of its variance, from its spectrum over all inputs), so
that a target coefficient too small to be learned is not held against them. The network is the paper's in its number of
parameters ("factored", 1,021); beside it one score matrix ("full", 580), and the same without the bits ("positions").
The initial scale of the scores is an axis, since what attention shows depends on it.
Guarantee: the spectrum is exact up to float32; errors and attention are means over 8,192 fresh inputs, influences
over 512.

Three readings of a row: by the score matrix over positions, which is A of the construction up to a factor; by the mean
attention; and by the influences of the bits on what the row adds to the output, which also sees the row's own bit: that
bit changes the scores, so a row may compute a component of two bits while it looks at one of them. Of the score matrix
the two largest components are asked for, as in the paper's figure, and the same of the untrained network.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from genscope.fourier import walsh_coefficients
from genscope.lab import Plan, Study, grid
from genscope.lab.plans.figure import Curves, Heatmap, Line, Mean, Panel
from genscope.lab.plans.study import Point
from genscope.measure.attention_rows import Matching, match_rows
from genscope.models.scalar_attention import ScalarAttention
from genscope.models.scalar_attention_fast import mixtures, truth_table
from genscope.random import stream
from genscope.refusal import Refusal
from genscope.tasks import Batch, WalshSum
from genscope.train import Floor, Fresh, Risk, adamw, fit, squared

SCORES = ("factored", "full", "positions")
COUNTED = 2  # of the learned components, the largest: those that the score matrix is asked for
LARGEST = 20  # bits of which all inputs are run through the network
CONVERGED = 0.02  # squared error on fresh inputs; the target has variance 1
RIGHT = 0.9  # precision and recall of rows that show their components
SHARE = 0.01  # of the learned variance: what counts as a component
USED = 0.1  # of the largest standard deviation: what counts as a row in use
STEPS, BATCH, SETTLED = 6000, 256, 0.005
RATE, DECAY, CLIP = 0.01, 1e-4, 1.0
FRESH, FLIPPED = 8192, 512  # inputs of the readings, and those of which each bit is turned


def trial(
    key: Key[Array, ""], *, context_length: int, degree: int, sparsity: int, scores: str, scale: float
) -> dict[str, Any]:
    """Train one network, and read its rows."""
    task, start = _begin(key, context_length, degree, sparsity, scores, scale)
    run = fit(
        start,
        Fresh(task, stream(key, "data"), BATCH),
        Risk(squared, ScalarAttention.outputs),
        until=(STEPS, Floor(SETTLED)),
        optimizer=adamw(RATE, weight_decay=DECAY, clip=CLIP),
        every=250,
    )
    model = run.model
    target, components = task.function(), _components(model)
    fresh = _fresh(task, stream(key, "test"))
    seen = _seen(model, fresh)
    error = float(seen["error"])
    deviation = np.asarray(seen["deviation"])
    used = np.flatnonzero(deviation >= USED * deviation.max()).tolist()
    by_attention = match_rows(np.asarray(seen["attention"]), components, candidates=used)
    by_influence = match_rows(np.asarray(seen["influence"]), components, candidates=used)
    untrained = match_rows(np.asarray(_attention(start, fresh.x)), components)
    by_weights = match_rows(_positions(model), components[:COUNTED], candidates=used)
    untrained_weights = match_rows(_positions(start), components[:COUNTED])  # of any row: the easier task
    owners = [row in component for row, component in zip(by_influence.rows, components, strict=True)]
    place, height = _curve(model, seen, used)
    order = np.argsort(-deviation, kind="stable")
    return {
        "converged": bool(error < CONVERGED),
        "test_error": error,
        "steps": run.steps,
        "diverged": run.diverged,
        "components": len(components),
        "components_wrong": len({*components} - {*target.supports}),
        "rows_used": len(used),
        "weights_shown": _shown(by_weights),
        "untrained_weights_shown": _shown(untrained_weights),
        "precision": by_attention.precision,
        "recall": by_attention.recall,
        "shown": _shown(by_attention),
        "influence_precision": by_influence.precision,
        "influence_recall": by_influence.recall,
        "computed": _shown(by_influence),
        "own_bit": float(np.mean(owners)) if owners else 0.0,
        "untrained_recall": untrained.recall,
        "turns": _turns(height),
        "score": _positions(model)[order],
        "attention": np.asarray(seen["attention"])[order],
        "influence": _shares(np.asarray(seen["influence"]))[order],
        "relevant": np.array(target.relevant),
        "curve_at": place,
        "curve": _oriented(height),
    }


@eqx.filter_jit
def _begin(
    key: Key[Array, ""], context_length: int, degree: int, sparsity: int, scores: str, scale: float
) -> tuple[WalshSum, ScalarAttention]:
    """The task and the untrained network: one program instead of one for every draw."""
    task = WalshSum.draw(stream(key, "task"), context_length=context_length, degree=degree, sparsity=sparsity)
    kind = {"positional": scores == "positions", "factored": scores == "factored"}
    return task, ScalarAttention(context_length, **kind, scale=scale, key=stream(key, "init"))


_truth_table = eqx.filter_jit(truth_table)


def _components(model: ScalarAttention) -> list[tuple[int, ...]]:
    """Sets that hold at least their share of the variance of the network's output, the largest first."""
    length = model.w_read.size
    energy = walsh_coefficients(np.asarray(_truth_table(model))) ** 2
    energy[0] = 0.0
    masks = np.flatnonzero(energy >= SHARE * energy.sum()) if energy.sum() > 0 else []
    ordered = sorted(map(int, masks), key=lambda mask: (-energy[mask], mask))
    return [tuple(i for i in range(length) if mask >> i & 1) for mask in ordered]


def _positions(model: ScalarAttention) -> Float[np.ndarray, "T T"]:
    """The score matrix between positions, without the bit."""
    return np.asarray(model.effective_score())[:-1, :-1]


def _shown(found: Matching) -> bool:
    return bool(min(found.precision, found.recall) >= RIGHT)


@eqx.filter_jit
def _fresh(task: WalshSum, key: Key[Array, ""]) -> Batch:
    return task.sample(key, FRESH)


@eqx.filter_jit
def _attention(model: ScalarAttention, x: Bool[Array, "B T"]) -> Float[Array, "T T"]:
    """Mean attention of each row."""
    return jnp.mean(jax.vmap(lambda one: model.activations(one).attention)(x), axis=0)


@eqx.filter_jit
def _seen(model: ScalarAttention, fresh: Batch) -> dict[str, Array]:
    """On fresh inputs: the error; mean attention of each row, spread of what it adds, influence of each bit on that."""
    mixed = mixtures(model, fresh.x)
    added = model.curve(mixed) * model.w_read[None]

    def change(flip: Bool[Array, " T"]) -> Float[Array, " T"]:
        flipped = model.curve(mixtures(model, fresh.x[:FLIPPED] ^ flip[None])) * model.w_read[None]
        return jnp.mean((flipped - added[:FLIPPED]) ** 2, axis=0) / 4

    return {
        "error": jnp.mean((jnp.sum(added, axis=1) + model.b_read - fresh.y) ** 2),
        "attention": _attention(model, fresh.x),
        "deviation": jnp.std(added, axis=0),
        "influence": jax.lax.map(change, jnp.eye(fresh.x.shape[1], dtype=bool)).T,
        "low": jnp.min(mixed, axis=0),
        "high": jnp.max(mixed, axis=0),
    }


def _curve(model: ScalarAttention, seen: dict[str, Array], used: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """The curve g over the scalars that the rows in use reach, rescaled to [0, 1]."""
    low, high = float(np.asarray(seen["low"])[used].min()), float(np.asarray(seen["high"])[used].max())
    place = np.linspace(0, 1, 201)
    return place, np.asarray(_heights(model, jnp.asarray(low + (high - low) * place, jnp.float32)))


_heights = eqx.filter_jit(ScalarAttention.curve)


def _oriented(height: Float[np.ndarray, " places"]) -> Float[np.ndarray, " places"]:
    """A curve for comparison with others: centered, at most 1 in size, beginning above 0; the read-out undoes it."""
    centred = height - height.mean()
    return centred / max(np.abs(centred).max(), 1e-30) * (1 if centred[0] >= 0 else -1)


def _shares(matrix: Float[np.ndarray, "rows columns"]) -> Float[np.ndarray, "rows columns"]:
    """Each row as shares of its sum; a row of zeros stays."""
    return matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1e-30)


def _turns(height: Float[np.ndarray, " places"]) -> int:
    """How often the slope changes its sign, slopes below 1 % of the steepest left out."""
    slope = np.diff(height)
    kept = np.sign(slope[np.abs(slope) > 0.01 * np.abs(slope).max()])
    return int((kept[1:] != kept[:-1]).sum())


def _check(point: Point) -> None:
    if point["scores"] not in SCORES:
        raise Refusal(f"scores must be {' or '.join(SCORES)}. Choose one of them.")
    length, degree = int(point["context_length"]), int(point["degree"])
    if not 1 <= degree <= length <= LARGEST:
        raise Refusal(f"the values must satisfy 1 <= degree <= context_length <= {LARGEST}. Change them.")
    if not 1 <= int(point["sparsity"]) <= 20:
        raise Refusal("sparsity must be between 1 and 20. Change it.")
    if not 0 < float(point["scale"]) <= 10:
        raise Refusal("scale, of the initial scores, must be between 0 and 10. Change it.")


_PAPER = {"context_length": [20], "sparsity": [3]}
_ARMS = grid(**_PAPER, degree=[2, 3], scores=["factored"], scale=[1.0, 0.1])
_ONE_MATRIX = grid(**_PAPER, degree=[2, 3], scores=["full"], scale=[1.0])

STUDY = Study(
    name="lintilhac2026-attention",
    title="What the rows of a trained attention show",
    source="lintilhac2026, Section 2.4, Figure 5",
    trial=trial,
    trial_cost=1.0,
    points=(*_ARMS, *_ONE_MATRIX),
    seeds=220,  # for 150 that converge: of 40 at degree 3 on other seeds 34 did
    budgets={
        "quick": Plan(grid(**_PAPER, degree=[2], scores=["factored"], scale=[1.0]), seeds=12),
        "paper": Plan((*_ARMS, *_ONE_MATRIX, *grid(**_PAPER, degree=[2, 3], scores=["positions"], scale=[1.0])), 1000),
    },
    figures=(
        Heatmap(
            title="Scores, attention and influence of one trained network",
            claims=("C6",),
            caption=(
                "One trained network (1,021 parameters, T = 20, three components of two bits): scores between "
                "positions, mean attention of each row, and the share of each bit in the influences on what the row "
                "adds to the output. Rows are sorted by the spread of what they add, the most used first; the bits of "
                "the target are marked."
            ),
            source="lintilhac2026, Figure 5",
            where={"degree": 2, "scores": "factored", "scale": 1.0, "converged": True},
            panels=(
                Panel("score", "score between positions"),
                Panel("attention", "attention"),
                Panel("influence", "influence on the row's output, share"),
            ),
            rows="row, most used first",
            columns="position",
            marked="relevant",
        ),
        Curves(
            title="The curve that every row applies",
            folded=True,
            caption=(
                "The learned curve g over the scalars that the rows in use reach, rescaled to [0, 1], centered and "
                "turned so that it begins above 0; one thin line per run, the median bold. A row that only counts the "
                "ones among k bits needs k - 1 turns for their parity; one that also uses its own bit needs fewer."
            ),
            source="lintilhac2026, Figure 5",
            labels={"curve_at": "scalar a, rescaled"},
            where={"scores": "factored", "scale": 1.0, "converged": True},
            x="curve_at",
            y=("curve",),
            quantity="g(a), centered and scaled",
            facet="degree",
        ),
        Line(
            title="Runs whose score matrix shows the two largest components",
            caption=(
                "Share of converged runs in which rows of the score matrix matched with the two largest learned "
                "components have precision and recall of at least 0.9, by the initial scale of the scores; 95 % "
                "intervals."
            ),
            source="lintilhac2026, Figure 5",
            labels={"scale": "initial scale of the scores", "weights_shown": "share of runs"},
            where={"scores": "factored", "converged": True},
            x="scale",
            y=Mean("weights_shown"),
            by="degree",
            log_x=True,
        ),
        Line(
            title="Runs whose attention shows all components",
            folded=True,
            caption=(
                "Share of converged runs in which the rows matched with all learned components have precision and "
                "recall of at least 0.9 by their mean attention, scores started at scale 1; 95 % intervals. It moves "
                "with the initial scale, and decides nothing."
            ),
            source="lintilhac2026, Figure 5",
            labels={"degree": "degree k", "shown": "share of runs"},
            where={"scale": 1.0, "converged": True},
            x="degree",
            y=Mean("shown"),
            by="scores",
        ),
    ),
    paired=frozenset({"scores"}),
    revision=2,
    check=_check,
)
