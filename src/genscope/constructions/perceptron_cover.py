r"""The element of a cover that stands for a given matrix, found by perceptrons and written as a short codeword.

Rows of $W$, $\sum_j\|W_{j,:}\|\le B_W$, are approximated one by one on given points of norm at most $B_X$: row $j$ of
norm $b_j$ has the scale $l_j=\lfloor\log_r(B_W/b_j)\rfloor$ and the accuracy $\tau_j$, $\tau_j^2=\epsilon^2r^{-l_j-1}$.
While some point has $|(w-\hat w)\cdot x|>\tau_j$, the first of them is added to $\hat w$ with that sign and the step
$\tau_j/B_X^2$. The codeword is the multiset of (row, point, sign, scale); it has fewer than $r\kappa$ symbols,
$\kappa=(B_WB_X/\epsilon)^2$, and $\max_i\|(W-\hat W)x_i\|\le\epsilon$. The proof is in `genscope.bounds.matrix_cover`,
which counts codewords. A single row needs no scales: $r=1$ gives the codewords of `genscope.bounds.linear_cover`.

Source: edelman2022, Lemma 4.6, in a constructive form of our own.
Departures: the paper quotes a covering number of Zhang (2002) and gives no encoder.
Guarantee: certified; the accuracy that was reached is measured, not assumed.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from genscope.refusal import Refusal

LONGEST = 10_000_000  # symbols


class Symbol(NamedTuple):
    """One update: `sign` times point number `point`, times the step of scale number `scale`, is added to row `row`."""

    row: int
    point: int
    sign: int
    scale: int


@dataclass(frozen=True)
class PerceptronCode:
    """A codeword, the matrix it stands for, and what the theorem promises about both."""

    codeword: tuple[Symbol, ...]
    decoded: Float[np.ndarray, "d1 d2"]
    accuracy: float
    """Measured: the largest distance from the given matrix at a point."""
    epsilon: float
    longest: float
    """r κ: a codeword has fewer symbols, or none."""

    @property
    def holds(self) -> bool:
        """Whether the promises are kept, rounding of the accuracy aside."""
        return bool(self.accuracy <= self.epsilon * (1 + 1e-9) and len(self.codeword) <= self.longest)


def perceptron_encode(
    weights: Float[np.ndarray, "d1 d2"],
    points: Float[np.ndarray, "N d2"],
    *,
    epsilon: float,
    ratio: float = 2.0,
    weight_norm: float | None = None,
    input_norm: float | None = None,
) -> PerceptronCode:
    """The codeword of a matrix; `weight_norm` and `input_norm` are those of the class (default: as small as can be)."""
    sizes, lengths = np.linalg.norm(weights, axis=-1), np.linalg.norm(points, axis=-1)
    _check(weights, points, epsilon, ratio)
    weight_norm = _bound("weight_norm", weight_norm, float(sizes.sum()))
    input_norm = _bound("input_norm", input_norm, float(lengths.max(initial=0.0)))
    longest = ratio * (weight_norm * input_norm / epsilon) ** 2
    if longest > LONGEST:
        raise Refusal(
            f"perceptron_encode got epsilon={epsilon!r} for norms {weight_norm} and {input_norm}: a codeword might "
            f"take {longest:.3g} symbols, and at most {LONGEST} are allowed. Increase epsilon."
        )
    codeword: list[Symbol] = []
    for row in np.flatnonzero(sizes * input_norm) if longest > ratio else ():  # κ ≤ 1: zero is near enough
        # A norm equal to its bound must not round to a scale of -1.
        scale = 0 if ratio == 1 else max(0, math.floor(math.log(weight_norm / sizes[row]) / math.log(ratio)))
        threshold = _threshold(scale, epsilon, ratio)
        residual = points @ weights[row]
        while (wrong := np.abs(residual) > threshold).any():
            point = int(np.argmax(wrong))
            sign = 1 if residual[point] > 0 else -1
            residual = residual - sign * threshold / input_norm**2 * (points @ points[point])
            codeword.append(Symbol(int(row), point, sign, scale))
    decoded = perceptron_decode(
        codeword, points, outputs=len(weights), epsilon=epsilon, ratio=ratio, input_norm=input_norm
    )
    accuracy = float(np.linalg.norm(points @ (weights - decoded).T, axis=1).max())
    return PerceptronCode(tuple(sorted(codeword)), decoded, accuracy, epsilon, longest)


def perceptron_decode(
    codeword: Iterable[Symbol],
    points: Float[np.ndarray, "N d2"],
    *,
    outputs: int,
    epsilon: float,
    ratio: float = 2.0,
    input_norm: float,
) -> Float[np.ndarray, "outputs d2"]:
    """The matrix of a codeword, whatever the order of its symbols (rounding aside)."""
    decoded = np.zeros((outputs, points.shape[1]))
    for row, point, sign, scale in codeword:
        decoded[row] += sign * _threshold(scale, epsilon, ratio) / input_norm**2 * points[point]
    return decoded


def _threshold(scale: int, epsilon: float, ratio: float) -> float:
    return epsilon * ratio ** (-(scale + 1) / 2) if ratio > 1 else epsilon


def _bound(name: str, given: float | None, actual: float) -> float:
    if given is None:
        return actual
    if not actual <= given * (1 + 1e-12) < math.inf:
        raise Refusal(
            f"perceptron_encode got {name}={given} but the norm is {actual}: the bound must not be smaller. "
            "Increase it, or leave it out."
        )
    return given


def _check(weights: np.ndarray, points: np.ndarray, epsilon: float, ratio: float) -> None:
    shaped = weights.ndim == points.ndim == 2 and weights.shape[1] == points.shape[1] and weights.size and points.size
    if not shaped or not (np.isfinite(weights).all() and np.isfinite(points).all()):
        raise Refusal(
            f"perceptron_encode got weights {weights.shape} and points {points.shape}: weights must be [d1, d2] and "
            "points [N, d2], finite and not empty. Make the second dimensions equal."
        )
    least = "at least 1" if len(weights) == 1 else "above 1"
    if not (0 < epsilon < math.inf and 1 <= ratio < math.inf) or (ratio == 1 and len(weights) > 1):
        raise Refusal(
            f"perceptron_encode got epsilon={epsilon!r}, ratio={ratio!r} for {len(weights)} rows: epsilon must be "
            f"above 0 and the ratio of scales {least}. Correct them."
        )
