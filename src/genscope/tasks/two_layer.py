r"""Two-layer ReLU networks that compute a link, or a sum of squares up to a stated error.

Source: mousavi2025, Assumption 2.
Departures: the paper takes the network as given; for squares it is written down here, with its error.
Guarantee: proved beside the code, for all tokens of the size asked for; exact forms up to rounding, which the error of
squares has room for.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from genscope.refusal import Refusal

_MOST = 2**24  # weights of a first layer
_ROUNDING = 2.0**-40  # of float64 (2**-53), relative to the largest sum of squares: room for thousands of additions


@dataclass(frozen=True)
class TwoLayerForm:
    r"""$x\mapsto a^\top\sigma(Wx+b)$ on the q tokens written one after the other, in float64.

    For tokens of the size it was made for, `error` $=\sqrt{\varepsilon_{2NN}}$ bounds its distance from the link, and
    `lipschitz` its own Lipschitz constant.
    """

    weight: Float[np.ndarray, "m qd"]
    bias: Float[np.ndarray, " m"]
    outer: Float[np.ndarray, " m"]
    lipschitz: float
    error: float = 0.0


def plus_minus(u: Float[np.ndarray, " qd"]) -> TwoLayerForm:
    r"""$\langle u,x\rangle=\sigma(\langle u,x\rangle)-\sigma(-\langle u,x\rangle)$."""
    return TwoLayerForm(np.stack([u, -u]), np.zeros(2), np.array([1.0, -1.0]), lipschitz=float(np.linalg.norm(u)))


def squares(
    rows: Float[np.ndarray, "n qd"], scale: float, *, sparsity: int, radius: float, error: float, order: float
) -> TwoLayerForm:
    r"""$c\sum_i(\langle w_i,x\rangle^2-1)$ for orthogonal rows $w_i$, each of which reads one of the q tokens.

    Each square is replaced by chords between knots $h_i=R_i/k$ apart, lowered by $h_i^2/8$: with
    $v=\langle w_i,x\rangle$, $v^2\approx h_i|v|+2h_i\sum_{0<l<k}[\sigma(v-lh_i)+\sigma(-v-lh_i)]-h_i^2/8$, 2k units.

    Error. While tokens have norms up to r, $|v|\le R_i=r\|w_i\|_*$, where the dual norm is the Euclidean one again, or
    the sum of absolute values if the norm is the largest coordinate. Between knots the chord exceeds $v^2$ by 0 to
    $h_i^2/4$; lowered, they differ by at most $h_i^2/8$, and do so at all knots and midpoints. Hence
    $\frac c8\|h\|^2=\frac c8\|R\|^2/k^2$ in all, and k is the least for which this and an allowance for rounding are
    within the error asked for.

    Lipschitz constant. A chord's slope $s_i$ is at most $2R_i-h_i$, and at most $2|v|+h_i$. Rows are orthogonal, so the
    gradient is $c(\sum_is_i^2\|w_i\|^2)^{1/2}$ long: at most $c(\sum_i(2R_i-h_i)^2\|w_i\|^2)^{1/2}$, and at most
    $c\ell(2\ell\|x\|+\|h\|)$ with $\ell=\max_i\|w_i\|$.

    Norms. $\|W\|_F^2=2k\|w\|_F^2$, $\|b\|^2=1+\frac13k(k-1)(2k-1)\|h\|^2$ and
    $\|a\|^2=c^2(2(4k-3)\|h\|^2+(n+\frac18\|h\|^2)^2)$.
    """
    if not (1e-100 <= radius <= 1e100 and 1e-100 <= error <= 1e100 and order in (2.0, math.inf)):
        raise Refusal(
            f"two_layer got {radius=}, {error=}, {order=}: radius and error must lie between 1e-100 and 1e100, and the "
            "order of the norm must be 2 or infinity. Correct the one that is not."
        )
    count, width = rows.shape
    lengths = np.linalg.norm(rows, axis=1)
    reach = radius * (lengths if order == 2 else np.abs(rows).sum(axis=1))
    rounding = _ROUNDING * scale * (float(reach @ reach) + count)
    chords = max(error - rounding, error / 2)
    pieces = max(1, math.ceil(float(np.linalg.norm(reach)) * math.sqrt(scale / (8 * chords))))
    units = 2 * pieces * count + 1
    if units * width > _MOST or rounding > error / 2:
        raise Refusal(
            f"two_layer got {radius=}, {error=}: squares of numbers up to {reach.max():.3g} would need {units:.3g} "
            f"hidden units with {width} weights each, with a rounding error of {rounding:.2g}; at most {_MOST} weights "
            "are allowed, and at most half of the error may be rounding. Allow a larger error, or use shorter tokens."
        )
    steps = reach / pieces
    lowered = float(steps @ steps) / 8
    knots = np.outer(steps, np.arange(pieces))
    bends = np.outer(steps, np.append(1.0, np.full(pieces - 1, 2.0)))
    input_norm = radius * math.sqrt(sparsity if order == 2 else width)
    slopes = float(np.linalg.norm((2 * reach - steps) * lengths))
    growth = float(lengths.max() * (2 * lengths.max() * input_norm + np.linalg.norm(steps)))
    return TwoLayerForm(
        weight=np.vstack([np.repeat(rows, pieces, axis=0), np.repeat(-rows, pieces, axis=0), np.zeros((1, width))]),
        bias=np.concatenate([-knots.reshape(-1), -knots.reshape(-1), [1.0]]),
        outer=scale * np.concatenate([bends.reshape(-1), bends.reshape(-1), [-count - lowered]]),
        lipschitz=scale * min(slopes, growth),
        error=scale * lowered + rounding,
    )
