r"""q heads that retrieve the tokens a label depends on, and a read-out that computes it.

Source: mousavi2025, Lemma 11.
Departures: the gap $\gamma$ of the encodings takes the place of the paper's 1/2, and the scale of the encodings may be
1.
Guarantee: certified, for all prompts with $\|x_j\|\le r_x$: the error is at most
$2\Lambda r_xN\sqrt q\,e^{-\alpha\gamma s}$, where $\Lambda=\|a_g\|\|W_g\|$ bounds the read-out's Lipschitz constant and
$s$ is $d/q$, the square of the encodings' factor, or 1 without it.

Weights: $W_{QK}^{(h)}$ is $\alpha I$ from the slot of $\omega_{t_h}$ in the query to that of $\omega_j$ in the key, and
0 elsewhere, so that head $h$ at position $i$ scores token $j$ by $\alpha s\langle\omega_{t_{ih}},\omega_j\rangle$. The
read-out is the link's two-layer form on the q retrieved tokens.

Proof. Scores fall short of the right one's by at least $\alpha\gamma s$, so the other tokens get attention
$1-p\le(N-1)e^{-\alpha\gamma s}$ in all, and head $h$ errs by at most $(1-p)\cdot2r_x$. Over q heads the errors have
norm at most $\sqrt q$ times that, and the read-out multiplies by at most $\Lambda$.
"""

import math

import jax.numpy as jnp
import numpy as np

from genscope.constructions.retrieval import Retrieval, check_range, exact_task, link_and_gap
from genscope.models.mousavi2025 import Transformer, TwoLayer
from genscope.precision import float64
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
    """Weights that solve the task up to `error`, or with a given `alpha` up to what that promises."""
    check_range("token_retrieval", token_norm=token_norm, error=error, alpha=1.0 if alpha is None else alpha)
    task = exact_task(task)
    with float64():
        form, gap = link_and_gap(task)
    gap, (weight, bias, outer) = float(gap), map(np.asarray, form)
    if gap < 1e-9:
        raise ValueError(
            "token_retrieval got a task in which two tokens have the same encoding: no attention tells them apart. "
            "Draw it with a max_correlation below 1, or with a larger encoding_dim."
        )
    n, q, d, encoded = task.context_length, task.sparsity, task.dim, task.encoding.shape[1]
    scale = d / q if task.scale == "sqrt_d_over_q" else 1.0
    lipschitz = float(np.linalg.norm(outer) * np.linalg.norm(weight, 2))
    if alpha is None:
        needed = {"tokens": n, "sparsity": q, "lipschitz": lipschitz, "token_norm": token_norm}
        alpha = sharpness(**needed, scale=scale, gap=gap, error=error)
    w_qk = np.zeros((q, task.embedding_dim, task.embedding_dim))
    place = np.arange(encoded)
    for head in range(q):
        w_qk[head, d + (head + 1) * encoded + place, d + place] = alpha
    reads = np.zeros((len(weight), q, task.embedding_dim))
    reads[:, :, :d] = weight.reshape(-1, q, d)
    with float64():
        readout = TwoLayer(jnp.asarray(reads.reshape(len(weight), -1)), jnp.asarray(bias), jnp.asarray(outer))
        model = Transformer(jnp.asarray(w_qk), readout)
    frobenius = alpha * math.sqrt(encoded)
    readout_norms = {"W": np.linalg.norm(weight), "b": np.linalg.norm(bias), "a": np.linalg.norm(outer)}
    norms = {"W_QK": frobenius, "W_QK_spectral": alpha, "W_QK_21": alpha * encoded}
    norms |= {name: float(norm) for name, norm in readout_norms.items()}
    return Retrieval(
        model=model,
        task=task,
        token_norm=token_norm,
        error=2 * lipschitz * token_norm * n * math.sqrt(q) * math.exp(-alpha * gap * scale),
        norms=norms | {"all": math.hypot(math.sqrt(q) * frobenius, *readout_norms.values())},
        source="mousavi2025, Lemma 11",
        constants={"alpha": alpha, "gap": gap, "scale": scale, "lipschitz": lipschitz},
    )
