r"""q heads that retrieve the tokens a label depends on, and a read-out that computes it.

Source: mousavi2025, Lemma 11.
Departures: the gap $\gamma$ of the encodings takes the place of 1/2, the Lipschitz constant $\Lambda$ of the link's
form that of $r_ar_w$; the scale of the encodings may be 1.
Guarantee: certified, for all prompts with $\|x_j\|\le r_x$: the error is at most
$\sqrt{\varepsilon_{2NN}}+2\Lambda r_xN\sqrt q\,e^{-\alpha\gamma s}$. $\sqrt{\varepsilon_{2NN}}$ is the error of the
link's two-layer form for tokens up to $r_x$ (0 if exact), $\Lambda$ that form's Lipschitz constant there, and $s$ is
$d/q$, the square of the encodings' factor, or 1 without it.

Weights: $W_{QK}^{(h)}$ is $\alpha I$ from the slot of $\omega_{t_h}$ in the query to that of $\omega_j$ in the key, and
0 elsewhere, so that head $h$ at position $i$ scores token $j$ by $\alpha s\langle\omega_{t_{ih}},\omega_j\rangle$. The
read-out is the link's two-layer form on the q retrieved tokens.

Proof. Scores fall short of the right one's by at least $\alpha\gamma s$, so the other tokens get attention
$1-p\le(N-1)e^{-\alpha\gamma s}$ in all, and head $h$ errs by at most $(1-p)\cdot2r_x$. Over q heads the errors have
norm at most $\sqrt q$ times that. A head's output is a mean of tokens, hence itself no longer than $r_x$, and so is
everything between it and the right token: the read-out is only ever used where its form was made for, and multiplies
by at most $\Lambda$. At the right tokens it differs from the link by at most $\sqrt{\varepsilon_{2NN}}$.
"""

import math

import jax.numpy as jnp
import numpy as np

from genscope.constructions.retrieval import Retrieval, check_range, check_size, exact_task, score_gaps
from genscope.models.mousavi2025 import TokenTransformer, TwoLayer
from genscope.precision import float64
from genscope.refusal import Refusal
from genscope.tasks.token_regression import TokenRegression


def sharpness(
    *, tokens: int, sparsity: int, scale: float, gap: float, lipschitz: float, token_norm: float, error: float
) -> float:
    r"""$\alpha=\frac1{\gamma s}\log\frac{2\Lambda r_xN\sqrt q}{\text{error}}$: what the lemma needs for an error.

    >>> sharpness(tokens=16, sparsity=2, scale=8 / 2, gap=0.5, lipschitz=1, token_norm=10, error=0.1)
    4.208739839533895
    """
    check_range("sharpness", scale=scale, gap=gap, lipschitz=lipschitz, token_norm=token_norm, error=error)
    return max(math.log(2 * lipschitz * token_norm * tokens * math.sqrt(sparsity) / error), 0.0) / (gap * scale)


def token_retrieval(
    task: TokenRegression, *, token_norm: float, error: float = 0.01, alpha: float | None = None
) -> Retrieval:
    """Weights that solve the task up to `error`, of which an approximated link gets half, as in the lemma.

    With a given `alpha` attention errs by what that promises instead, and the link as before.
    """
    check_range("token_retrieval", token_norm=token_norm, error=error, alpha=1.0 if alpha is None else alpha)
    task = exact_task(task)
    gap = float(score_gaps(task).min())
    if gap < 1e-9:
        raise Refusal(
            "token_retrieval got a task in which two tokens have the same encoding: attention cannot tell them apart. "
            "Draw it with a max_correlation below 1, or with a larger encoding_dim."
        )
    form = task.link.two_layer(radius=token_norm, error=error / 2)
    weight, bias, outer = form.weight, form.bias, form.outer
    n, q, d, encoded = task.context_length, task.sparsity, task.dim, task.encoding.shape[1]
    check_size("token_retrieval", q * task.embedding_dim * (task.embedding_dim + len(weight)))
    scale = d / q if task.scale == "sqrt_d_over_q" else 1.0
    if alpha is None:
        needed = {"tokens": n, "sparsity": q, "lipschitz": form.lipschitz, "token_norm": token_norm}
        alpha = sharpness(**needed, scale=scale, gap=gap, error=error - form.error)
    w_qk = np.zeros((q, task.embedding_dim, task.embedding_dim))
    place = np.arange(encoded)
    for head in range(q):
        w_qk[head, d + (head + 1) * encoded + place, d + place] = alpha
    reads = np.zeros((len(weight), q, task.embedding_dim))
    reads[:, :, :d] = weight.reshape(-1, q, d)
    with float64():
        readout = TwoLayer(jnp.asarray(reads.reshape(len(weight), -1)), jnp.asarray(bias), jnp.asarray(outer))
        model = TokenTransformer(jnp.asarray(w_qk), readout)
    frobenius = alpha * math.sqrt(encoded)
    readout_norms = {"W": np.linalg.norm(weight), "b": np.linalg.norm(bias), "a": np.linalg.norm(outer)}
    norms = {"W_QK": frobenius, "W_QK_spectral": alpha, "W_QK_21": alpha * encoded}
    norms |= {name: float(norm) for name, norm in readout_norms.items()}
    return Retrieval(
        model=model,
        task=task,
        link=form,
        token_norm=token_norm,
        order=2.0,
        error=form.error + 2 * form.lipschitz * token_norm * n * math.sqrt(q) * math.exp(-alpha * gap * scale),
        norms=norms | {"all": math.hypot(math.sqrt(q) * frobenius, *readout_norms.values())},
        source="mousavi2025, Lemma 11",
        constants={
            "alpha": alpha,
            "gap": gap,
            "scale": scale,
            "lipschitz": form.lipschitz,
            "epsilon_2nn": form.error**2,
        },
    )
