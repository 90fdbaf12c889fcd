r"""One head that averages q tokens: why few heads fail for nonlinear links only.

A position asks for a set $T$ of q tokens by one query $v_T$ with $\langle v_T,\omega_j\rangle=1$ for $j\in T$ and at
most $1-\gamma$ elsewhere: the shortest such vector is $\Omega_T^+\mathbf 1$, for the pseudo-inverse of the q codes.
With $W_{QK}=\alpha I$ from queries to codes the tokens of $T$ share the attention equally, and all others together get
$\eta\le\frac{N-q}qe^{-\alpha\gamma}$, so that
$\|f-\frac1q\sum_{j\in T}x_j\|=\|\sum_{j\notin T}a_j(x_j-\bar x_T)\|\le2r_x\eta$ for tokens to $r_x$. One head
($H=1<q$) is enough for $y=\langle u,\frac1q\sum_{j\in T}x_j\rangle$, where `bounds.heads_lower` has
$(1-\frac1q)(1-\frac1d)$ for sums of squares.

Source: mousavi2025, the remark after Proposition 4 ("a carefully constructed embedding suffices").
Departures: the embedding is ours; the paper cites others for one.
Guarantee: certified, up to rounding, for all prompts with tokens to `token_norm` and the given sets.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from genscope.models.mousavi2025 import TokenTransformer, TwoLayer
from genscope.precision import float64
from genscope.refusal import Refusal

Matrix = Float[np.ndarray, "N D"]


@dataclass(frozen=True)
class SparseAverage:
    """A Transformer of one head, the codes it compares, and what it errs by at most."""

    model: TokenTransformer
    encoding: Float[np.ndarray, "N coded"]
    token_norm: float
    alpha: float
    gap: float
    error: float

    def embed(self, x: Float[np.ndarray, "N d"], sets: Sequence[Sequence[int]]) -> Matrix:
        """Tokens with their codes, and the queries for the sets that the positions ask for."""
        queries = np.stack([average_query(self.encoding, chosen) for chosen in sets])
        return np.hstack([x, self.encoding, queries])


def average_query(encoding: Float[np.ndarray, "N coded"], chosen: Sequence[int]) -> Float[np.ndarray, " coded"]:
    """The shortest vector whose product with the code of every chosen token is 1."""
    codes = encoding[list(chosen)]
    if len(set(chosen)) < len(codes) or np.linalg.matrix_rank(codes) < len(codes):
        raise Refusal(
            f"average_query got the tokens {list(chosen)}: they must be distinct, with linearly independent codes. "
            "Name each token once, and use codes whose dimension is far above their number."
        )
    return np.linalg.pinv(codes) @ np.ones(len(codes))


def query_gap(encoding: Float[np.ndarray, "N coded"], sets: Sequence[Sequence[int]]) -> float:
    """How far the score of every token outside a set stays below that of the tokens in it, over all sets."""
    gaps = []
    for chosen in sets:
        scores = encoding @ average_query(encoding, chosen)
        others = np.delete(scores, list(chosen))
        gaps.append(1 - others.max(initial=0.0))
    return float(min(gaps))


def sparse_average(
    encoding: Float[np.ndarray, "N coded"],
    direction: Float[np.ndarray, " d"],
    sets: Sequence[Sequence[int]],
    *,
    token_norm: float,
    error: float = 0.01,
) -> SparseAverage:
    r"""The network for $y_i=\langle u,\frac1q\sum_{j\in T_i}x_j\rangle$ and all sets that positions may ask for."""
    encoding, direction = np.asarray(encoding, float), np.asarray(direction, float)
    sizes = {len(chosen) for chosen in sets}
    if len(sizes) != 1 or not (token_norm > 0 and error > 0):
        raise Refusal(
            f"sparse_average got sets of {sorted(sizes)} tokens, token_norm={token_norm:g}, error={error:g}: all "
            "sets must have one size, and the numbers must be positive. Correct them."
        )
    gap = query_gap(encoding, sets)
    if gap < 1e-9:
        raise Refusal(
            f"sparse_average got codes of gap {gap:.3g}: some token outside a set scores as high as those in it. "
            "Draw codes of a larger dimension."
        )
    tokens, coded, d, q = *encoding.shape, len(direction), sizes.pop()
    reach = float(np.linalg.norm(direction)) * 2 * token_norm * (tokens - q) / q
    alpha = max(math.log(reach / error), 0.0) / gap if reach else 0.0
    size = d + 2 * coded
    w_qk = np.zeros((1, size, size))
    place = np.arange(coded)
    w_qk[0, d + coded + place, d + place] = alpha
    weight = np.zeros((2, size))
    weight[0, :d], weight[1, :d] = direction, -direction
    with float64():
        readout = TwoLayer(jnp.asarray(weight), jnp.zeros(2), jnp.asarray([1.0, -1.0]))
        model = TokenTransformer(jnp.asarray(w_qk), readout)
    return SparseAverage(model, encoding, token_norm, alpha, gap, reach * math.exp(-alpha * gap))
