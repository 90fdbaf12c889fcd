r"""A bidirectional RNN that solves simple-qSTR, with weights that do not depend on the number of tokens.

Source: mousavi2025, Lemmas 22 to 25, Propositions 26 and 28, where products are approximated.
Departures: for encodings by signs $\pm c$, $c=1/\sqrt{d_e}$, products are exact; the construction is ours.
Guarantee: certified, up to rounding, for all prompts with $|x_{jk}|\le M$ and one t for all positions: the error is at
most $\sqrt{\varepsilon_{2NN}}$, that of the link's two-layer form for such tokens, and 0 where the form is exact. (The
paper has twice that, for products which are not exact.) Not for general qSTR, in which position j reads its own $t_j$
instead of $t_i$.

Two identities. For $a,b\in\{\pm c\}$, $ab=c|a+b|-c^2$, so that
$v_l=\langle\omega_i,\omega_{t_l}\rangle=c\sum_k[\sigma(\omega_{ik}+\omega_{t_lk})+\sigma(-\omega_{ik}-\omega_{t_lk})]-1$.
And if $v=1$ or $v\le1-\gamma$, $|x|\le M$ and $\kappa=M/\gamma$:
$x\,1[v=1]=\sigma(x-\kappa(1-v))-\sigma(-x-\kappa(1-v))$.

State $h\in\mathbb R^{qd}$: slot l keeps the token $x_{t_l}$ once it was seen. Transition, three layers, the same in
both directions: (1) $\sigma(\pm x_k)$ and $\sigma(\pm(\omega_{ik}+\omega_{t_lk}))$; (2) the gates $\sigma(\pm
x_k-\kappa(1-v_l))$; (3) their differences $x_k1[t_l=i]$. It does not read the state, which only adds up: $h^\to_i$
holds the tokens before i, $h^\leftarrow_i$ those after. Output, four layers: (1) $\sigma(\pm(h^\to+h^\leftarrow))$
beside the transition's first; (2) these passed on, beside the gates; (3) the link's hidden units on
$h^\to+h^\leftarrow+(x_i1[t_l=i])_l=(x_{t_1},\dots,x_{t_q})$; (4) its outer weights. So the
link's form is read at the tokens themselves, and errs by no more than it does on $|x_{jk}|\le M$.
"""

import math

import jax.numpy as jnp
import numpy as np

from genscope.constructions._base import Matrix, Vector
from genscope.constructions.retrieval import Retrieval, check_range, check_size, exact_task, score_gaps, signs
from genscope.models.mousavi2025 import Affine, BidirectionalRNN
from genscope.precision import float64
from genscope.refusal import Refusal
from genscope.tasks.token_regression import TokenRegression

_PAIR = np.array([[1.0], [-1.0]])  # v -> (v, -v)


def recurrent_retrieval(
    task: TokenRegression, *, token_range: float, error: float = 0.01, gap: float | None = None
) -> Retrieval:
    r"""Weights that solve simple-qSTR up to `error` while every coordinate of a token is at most `token_range` = M.

    They depend on M, on `gap` = $\gamma$ (default: that of the encodings; a smaller one serves all encodings with at
    least that gap), on d, q, $d_e$ and the link, on `error` where the link is approximated, and on nothing else.
    """
    check_range("recurrent_retrieval", token_range=token_range, error=error, gap=1.0 if gap is None else gap)
    if not signs(task) or task.scale != "none" or not task.shared_positions:
        raise Refusal(
            "recurrent_retrieval got a task with encodings other than signs ±1/sqrt(d_e), with a scale factor "
            f"(scale={task.scale!r}), or with several t in a prompt (shared_positions={task.shared_positions}): it "
            "needs random signs, no scale factor and one t. Draw the task with scale='none' and shared_positions=True."
        )
    task = exact_task(task)
    found = float(score_gaps(task).min())
    gap = found if gap is None else gap
    if not 1e-9 < gap <= found + 1e-9:
        raise Refusal(
            f"recurrent_retrieval got encodings of gap {found:.3g} and was asked to use {gap:.3g}: the gap must be "
            "positive, and no larger than that of the encodings. Draw them with a smaller max_correlation or a larger "
            "encoding_dim."
        )
    q, d, encoded = task.sparsity, task.dim, task.encoding.shape[1]
    form = task.link.two_layer(radius=token_range, error=error, order=math.inf)
    weight, bias, outer = form.weight, form.bias, form.outer
    check_size("recurrent_retrieval", _size(q, d, encoded, len(weight)))
    kappa = token_range / gap
    first, gates, joined = _transition(q, d, encoded, kappa)
    ignored = np.zeros((len(first), q * d))
    summed = np.kron(np.tile(np.eye(q * d), 2), _PAIR)
    passed = 2 * q * d
    output_1 = np.block([[summed, np.zeros((passed, first.shape[1]))], [ignored, ignored, first]])
    output_2 = np.block([[np.eye(passed), np.zeros((passed, len(first)))], [np.zeros((passed, passed)), gates]])
    closed = np.full(passed, -2 * kappa)
    with float64():
        transition = _net((np.hstack([ignored, first]), None), (gates, closed), (joined, None))
        output = _net(
            (output_1, None),
            (output_2, np.append(np.zeros(passed), closed)),
            (weight @ np.hstack([joined, joined]), bias),
            (outer[None], None),
        )
        model = BidirectionalRNN(transition, transition, output, math.sqrt(q * d) * token_range)
    return Retrieval(
        model=model,
        task=task,
        link=form,
        token_norm=token_range,
        order=math.inf,
        error=form.error,
        norms=_norms(q, d, encoded, kappa, *(float(np.linalg.norm(part)) for part in (weight, bias, outer))),
        source="mousavi2025, Propositions 26 and 28, with exact products for signs",
        constants={"kappa": kappa, "gap": gap, "epsilon_2nn": form.error**2},
    )


def _size(q: int, d: int, encoded: int, units: int) -> int:
    """The number of weights of the largest matrices: the first two layers of each net, and the link's."""
    state, token, first = q * d, d + (q + 1) * encoded, 2 * d + 2 * q * encoded
    transition = first * (state + token) + 2 * state * first
    output = (2 * state + first) * (2 * state + token) + 4 * state * (2 * state + first)
    return 2 * transition + output + 4 * state * units


def _transition(q: int, d: int, encoded: int, kappa: float) -> tuple[Matrix, Matrix, Matrix]:
    """The three layers on the token; units come in pairs (v, -v), gates by slot and coordinate."""
    tokens = np.kron(np.eye(d), _PAIR)
    sums = np.hstack([np.tile(np.eye(encoded), (q, 1)), np.eye(q * encoded)])  # ω_i + ω_{t_l}, slot by slot
    first = np.block(
        [
            [tokens, np.zeros((2 * d, sums.shape[1]))],
            [np.zeros((2 * len(sums), d)), np.kron(sums, _PAIR)],
        ]
    )
    signed = np.tile(np.kron(np.eye(d), _PAIR @ _PAIR.T), (q, 1))  # ±x_k from σ(x_k), σ(-x_k)
    matched = np.kron(np.eye(q), np.full((2 * d, 2 * encoded), kappa / math.sqrt(encoded)))  # κ(1 + v_l)
    return first, np.hstack([signed, matched]), np.kron(np.eye(q * d), _PAIR.T)


def _net(*layers: tuple[Matrix, Vector | None]) -> tuple[Affine, ...]:
    return tuple(Affine(jnp.asarray(weight), None if bias is None else jnp.asarray(bias)) for weight, bias in layers)


def _norms(q: int, d: int, encoded: int, kappa: float, weight: float, bias: float, outer: float) -> dict[str, float]:
    """Frobenius norms, by formula: everything is polynomial in q, d, M and free of N."""
    units = 2 * q * d
    squares = {
        "W_1": 2 * d + 4 * q * encoded,
        "W_2": units * (2 + 2 * kappa**2),
        "W_3": units,
        "U_1": 2 * d + 4 * q * encoded + 2 * units,
        "U_2": units * (3 + 2 * kappa**2),
        "U_3": 4 * weight**2,
        "U_4": outer**2,
        "b_2": units * 4 * kappa**2,
    }
    transitions = sum(squares[name] for name in ("W_1", "W_2", "W_3", "b_2"))
    output = sum(squares[name] for name in ("U_1", "U_2", "U_3", "U_4", "b_2")) + bias**2
    return {name: math.sqrt(square) for name, square in squares.items()} | {"all": math.sqrt(2 * transitions + output)}
