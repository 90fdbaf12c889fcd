r"""What too few heads and too few samples cost: risks of the best predictors that the lower bounds speak of.

Source: mousavi2025, Propositions 4 and 21; Theorem 9.
Departures: four families of heads stand for all. In the setting of the propositions (see `bounds.heads_lower`) a query
is fixed, so that a head is a set of scores, and of weights of the tokens in them.
Guarantee: risks of least squares are estimates with standard errors on fresh prompts; the others are exact.

Families: `retrieval`, H heads each on one of the q tokens (Lemma 11 as its sharpness grows); `block`, random attention
that does not read the tokens; `full`, random attention that does; each with least squares on all quadratic features of
what the heads return. `best`: the conditional expectation of the label given all that heads of the family `full` tell,
whose risk is the mean conditional variance, half of $\frac2{qd}$ per dimension of the tokens that is left open.
"""

import math
from collections.abc import Callable
from typing import Any

import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Key

from genscope.bounds.token_limits import ffn_lower, heads_lower
from genscope.estimate import Estimate
from genscope.lab import Plan, Point, Scatter, Study, within
from genscope.random import stream
from genscope.refusal import Refusal

FORMS = {"retrieval": "block", "block": "block", "full": "sharp", "best": "sharp"}
TOKENS = 16  # the first half are normal, the others 0
PROMPTS = 20_000  # to fit, and in each batch of fresh ones
FRESH = {"retrieval": 25, "block": 25, "full": 2}  # batches: risks of the first two come close to their bounds
RANKED = 500  # prompts at which ranks are found
SHARPNESS = 2.0  # standard deviation of a random score
RIDGES = (0.01, 0.1, 1.0, 10.0)

Prompts = Float[np.ndarray, "prompts tokens d"]
Attention = Float[np.ndarray, "prompts H tokens"]


def heads_trial(key: Key[Array, ""], *, family: str, sparsity: int, dim: int, heads: int) -> dict[str, Any]:
    """Risk of one family of heads, and the lower bound for as many of them, and for one less than q."""
    generator = _generator(key)
    directions = generator.normal(size=(heads, dim)) * SHARPNESS / math.sqrt(2 * dim)
    scores = generator.normal(size=(heads, TOKENS)) * SHARPNESS / math.sqrt(2)

    def draw(size: int) -> Prompts:
        return generator.normal(size=(size, TOKENS // 2, dim))

    def attention(x: Prompts) -> Attention:
        """On the first half of the tokens; scores of the other half do not depend on x."""
        if family == "retrieval":
            weights = np.eye(heads, TOKENS // 2)  # head h on token h, beyond q on tokens that do not matter
        elif family == "block":
            weights = _softmax(scores)[:, : TOKENS // 2]
        else:
            read = np.einsum("hd,pjd->phj", directions, x)
            return _softmax(scores + np.concatenate([read, np.zeros_like(read)], axis=2))[:, :, : TOKENS // 2]
        return np.broadcast_to(weights, (len(x), *weights.shape))

    if family == "best":
        risk = Estimate.of(_open_dimensions(attention(draw(RANKED))[:, :, :sparsity], directions) / (sparsity * dim))
    else:

        def outputs(x: Prompts) -> Float[np.ndarray, "prompts outputs"]:
            weights = attention(x)
            mixed = (weights @ x).reshape(len(x), -1)
            if family != "full":
                return mixed
            # What the means of the encodings tell of the attention, in the form that is most useful.
            return np.hstack([mixed, np.log(weights[:, :, :sparsity]).reshape(len(x), -1)])

        def label(x: Prompts) -> Float[np.ndarray, " prompts"]:
            return (np.sum(x[:, :sparsity] ** 2, axis=(1, 2)) - sparsity * dim) / math.sqrt(sparsity * dim)

        losses = _fresh_losses(draw, outputs, label, FRESH[family])
        risk = Estimate.of(losses / 2)  # the label is 0 at the other half of the positions
    sizes = {"sparsity": sparsity, "dimension": dim, "form": FORMS[family]}
    return {
        "risk": risk.mean,
        "risk_sem": risk.sem,
        "bound": heads_lower(heads=heads, **sizes).value,
        "bound_one_less": heads_lower(heads=sparsity - 1, **sizes).value if sparsity > 1 else 1.0,
    }


def _open_dimensions(attention: Attention, directions: Float[np.ndarray, "H d"]) -> Float[np.ndarray, " prompts"]:
    """Dimensions of the q tokens that the heads' mixtures and scores leave open, by the rank of all they tell."""
    dim, sparsity = directions.shape[1], attention.shape[2]
    mixtures = np.einsum("phj,de->phdje", attention, np.eye(dim)).reshape(len(attention), -1, sparsity * dim)
    read = np.broadcast_to(
        np.kron(np.eye(sparsity), directions), (len(attention), len(directions) * sparsity, sparsity * dim)
    )
    return sparsity * dim - np.linalg.matrix_rank(np.concatenate([mixtures, read], axis=1)).astype(float)


def _fresh_losses(
    draw: Callable[[int], Prompts],
    outputs: Callable[[Prompts], np.ndarray],
    label: Callable[[Prompts], np.ndarray],
    batches: int,
) -> Float[np.ndarray, " losses"]:
    """Squared errors on fresh prompts of least squares on all quadratic features."""

    def features(x: Prompts) -> Float[np.ndarray, "prompts features"]:
        found = outputs(x)
        rows, columns = np.triu_indices(found.shape[1])
        return np.hstack([np.ones((len(found), 1)), found, found[:, rows] * found[:, columns]])

    x = draw(PROMPTS)
    weights = np.linalg.lstsq(features(x), label(x))[0]
    fresh = (draw(PROMPTS) for _ in range(batches))
    return np.concatenate([(features(x) @ weights - label(x)) ** 2 for x in fresh])


def _softmax(scores: Float[np.ndarray, "... N"]) -> Float[np.ndarray, "... N"]:
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def ffn_trial(key: Key[Array, ""], *, context_length: int, dim: int, sample_size: int) -> dict[str, Any]:
    r"""Exact risks on simple-1STR of the best predictor in the span of a sample, and of ridge regression.

    A predictor $\langle w_t,x\rangle$ of $\langle u,x_t\rangle$ has risk $\frac1N\sum_t\|w_t-P_tu\|^2$. For the mean
    over u a basis serves, because the risk is a quadratic form of u.
    """
    generator = _generator(key)
    n, size = context_length, sample_size
    x = generator.normal(size=(size, n, dim))
    t = generator.integers(n, size=size)
    u = generator.normal(size=dim)
    u /= np.linalg.norm(u)
    flat = x.reshape(size, -1)

    def span_risk(direction: Float[np.ndarray, " d"]) -> float:
        wanted = np.kron(np.eye(n), direction).T  # columns P_t u
        left = wanted - flat.T @ np.linalg.lstsq(flat.T, wanted)[0]
        return float(np.sum(left**2) / n)

    def ridge_risk(penalty: float) -> float:
        risk = 0.0
        for position in range(n):
            seen = flat[t == position]
            y = x[t == position, position] @ u
            w = seen.T @ np.linalg.solve(seen @ seen.T + penalty * np.eye(len(seen)), y)
            w[position * dim : (position + 1) * dim] -= u
            risk += float(w @ w)
        return risk / n

    mean = float(np.mean([span_risk(direction) for direction in np.eye(dim)]))
    bound = ffn_lower(samples=size, tokens=n, dimension=dim).value
    return {
        "span_risk": span_risk(u),
        "span_risk_mean": mean,
        "bound": bound,
        "identity_error": abs(mean - bound),
        "ridge_risk": min(ridge_risk(penalty) for penalty in RIDGES),
    }


def _generator(key: Key[Array, ""]) -> np.random.Generator:
    """The trial's own generator: NumPy needs no compilation for these sizes."""
    return np.random.default_rng(np.asarray(jr.key_data(stream(key, "numpy"))))


def _points(family: str, *cases: tuple[int, int, int]) -> list[dict[str, Any]]:
    """Points from (q, d, H)."""
    return [{"family": family, "sparsity": q, "dim": d, "heads": h} for q, d, h in cases]


def _check_heads(point: Point) -> None:
    within(sparsity=(1, TOKENS // 2), dim=(1, 16), heads=(1, 8))(point)
    if "family" in point and point["family"] not in FORMS:
        raise Refusal(f"family must be one of {', '.join(FORMS)}. Choose one of them.")


_HEADS = (
    *_points("retrieval", (4, 1, 1), (4, 1, 2), (4, 1, 3), (4, 1, 4), (3, 2, 1), (3, 2, 2), (3, 2, 3)),
    *_points("block", (4, 1, 1), (4, 1, 2), (4, 1, 3), (3, 1, 1), (3, 1, 2), (2, 3, 1)),
    *_points("full", (4, 4, 1), (4, 4, 2), (4, 4, 3), (2, 3, 1)),
    *_points("best", (6, 12, 1), (6, 12, 2), (4, 4, 1), (4, 4, 3)),
)

HEADS = Study(
    name="mousavi2025-heads-lower",
    title="Risk of too few heads",
    source="mousavi2025, Propositions 4 and 21",
    trial=heads_trial,
    trial_cost=0.3,
    points=_HEADS,
    seeds=5,
    budgets={"quick": Plan(_HEADS)},
    figures=(
        Scatter(
            title="Risk of heads against the lower bound",
            claims=("B2",),
            caption=(
                "Risk on fresh prompts of least squares on all quadratic features of H heads, and of the best "
                "predictor given what they see, against the lower bound for as many heads; points of retrieval and "
                "best lie on it, and with H = q the risk vanishes."
            ),
            labels={"bound": "lower bound of the risk", "risk": "risk", "family": "heads"},
            x="bound",
            y="risk",
            by="family",
            sem="risk_sem",
            diagonal=True,
        ),
    ),
    check=_check_heads,
)

_FFN = tuple(
    {"context_length": n, "dim": d, "sample_size": size} for n, d, size in ((6, 4, 10), (10, 3, 25), (8, 5, 39))
)

FEEDFORWARD = Study(
    name="mousavi2025-ffn-lower",
    title="Risk in the span of too few samples",
    source="mousavi2025, Theorem 9",
    trial=ffn_trial,
    trial_cost=0.2,
    points=_FFN,
    seeds=20,
    budgets={"quick": Plan(_FFN, seeds=5)},
    figures=(
        Scatter(
            title="Ridge regression against the best predictor in the span",
            answer="The exact risk of ridge regression lies between {least} and {most}",
            folded=True,
            caption=(
                "Exact risk on simple-1STR of ridge regression with one weight vector per t and the best of four "
                "penalties, against that of the best predictor in the span of the sample for the same u."
            ),
            labels={"span_risk": "best in the span", "ridge_risk": "ridge regression", "context_length": "tokens N"},
            x="span_risk",
            y="ridge_risk",
            by="context_length",
            diagonal=True,
        ),
    ),
    check=within(context_length=(1, 64), dim=(1, 64), sample_size=(1, 4096)),
)
