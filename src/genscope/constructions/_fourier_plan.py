r"""The numbers behind the Fourier construction: who attends to whom, how sharply, and with which weight in the output.

Source: lintilhac2026, Appendix B (Equations for A, K, the perceptron and W_2); formulas are re-derived here.
Departures: the second attention gives positions without a component a logit $-M$, where the paper has 0: with zeros
they would hold most of the attention. Mixed degrees and negative coefficients are ours: the paper promises "additional
heads".
Guarantee: exact; attention leaks at most $\rho/4\kappa$, the output errs by at most $\frac\tau{1+\tau}\sum|\alpha|$.

Letters: T bits, N positions, s components, $k_i$ their degrees and $\kappa$ the largest, $\rho$ `leakage`, $\tau$
`inactive`, c `sharpness`.
"""

import dataclasses
import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float

from genscope.fourier.walsh import WalshFunction
from genscope.refusal import Refusal

Signed = Literal["two_heads", "one_token"]
Units = Literal["even", "all"]
RISE, FALL = (-0.75, -0.25), (0.25, 0.75)  # of a plateau, in units of 1 / kappa


@dataclass(frozen=True, eq=False)
class FourierPlan:
    r"""Logits of the first attention are `sharpness` times `shares` in the rows of components, 0 in all others.

    The second attention of head h has `logits[h]`, and its output counts `values[h]` times.
    """

    context_length: int
    degree: int
    sharpness: float
    shares: Float[np.ndarray, "s N"]
    logits: Float[np.ndarray, "H N"]
    values: Float[np.ndarray, " H"]
    bias: float | None
    error: float
    units: Units = "even"
    used: tuple[int, ...] | None = None  # numbers of ones that a sample shows; None: all that there are

    @property
    def wave(self) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"]]:
        """Thresholds and slopes of the perceptron."""
        return wave(self.degree, self.units) if self.used is None else thinned_wave(self.degree, self.used)

    @property
    def sparsity(self) -> int:
        """Number s of components."""
        return len(self.shares)

    @property
    def positions(self) -> int:
        """Number N of positions."""
        return self.shares.shape[1]

    @property
    def one_token(self) -> bool:
        """Whether there is a token with bit 1 besides the inputs and the output position."""
        return self.positions == self.context_length + 2

    @property
    def attention(self) -> Float[np.ndarray, "rows N"]:
        """The first attention in the rows of components, and in any other row, which comes last and is uniform."""
        weights = np.exp(self.sharpness * np.concatenate([self.shares, np.zeros((1, self.positions))]))
        return weights / weights.sum(axis=1, keepdims=True)

    @property
    def selection(self) -> Float[np.ndarray, "H N"]:
        """The second attention at the output position."""
        weights = np.exp(self.logits - self.logits.max(axis=1, keepdims=True))
        return weights / weights.sum(axis=1, keepdims=True)

    def centred(self) -> "FourierPlan":
        """The same function with logits of mean 0, which have the least norm."""
        logits = self.logits - self.logits.mean(axis=1, keepdims=True)
        return dataclasses.replace(self, logits=logits)


def wave(degree: int, units: Units = "even") -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"]]:
    r"""Thresholds $\vartheta_u$ and slopes $\pm2k$ of $g(a)=\sum_uF_u\mathrm{relu}(a-\vartheta_u)$.

    Four units per even j: g is 1 within $\frac1{4k}$ of $\frac jk$ for even j, 0 for odd j, and linear between. "each
    unique value in our grid" may mean the odd j too ("all"): their indicators are there, with slopes 0.
    """
    values = np.arange(0, degree + 1, 2 if units == "even" else 1)
    thresholds = (values[:, None] + [*RISE, *FALL]) / degree
    slopes = 2.0 * degree * np.outer(values % 2 == 0, [1.0, -1.0, -1.0, 1.0])
    return thresholds.reshape(-1), slopes.reshape(-1)


def thinned_wave(degree: int, used: tuple[int, ...]) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"]]:
    r"""Thresholds and slopes of a wave that is right within $\frac1{4k}$ of $\frac jk$ for the j in `used` alone.

    Two units where the parity turns between neighbours j < j' in `used`: a ramp from $j+\frac14$ to $j'-\frac14$ (over
    k), of slope $\pm k/(j'-j-\frac12)$, which is $\pm2k$ for j' = j + 1; nothing where it does not turn. The first
    rise, if the least j is even, is that of `wave`. Values stay in [0, 1]. The thresholds are among those of `wave`,
    and no slope is steeper.

    >>> [numbers.tolist() for numbers in thinned_wave(4, (1, 4))]
    [[0.3125, 0.9375], [1.6, -1.6]]
    """
    thresholds, slopes, level = [], [], 0
    for before, j in zip((None, *used), used, strict=False):
        if (j + 1) % 2 != level:
            start, end = (j - 0.75 if before is None else before + 0.25), j - 0.25
            slope = (1 - 2 * level) * degree / (end - start)
            thresholds += [start / degree, end / degree]
            slopes += [slope, -slope]
            level = 1 - level
    return np.array(thresholds, float), np.array(slopes, float)


def plan(
    function: WalshFunction, *, leakage: float, inactive: float, signed: Signed, units: Units = "even"
) -> FourierPlan:
    r"""The plan of a function in its own basis: $f=a_\emptyset+\sum_i\alpha_i\varphi_{S_i}$, or with $\chi=2\varphi-1$.

    Component i is computed at position i. Every member of $S_i$ scores c; the output position, whose bit is 0, takes
    the place of the $\kappa-k_i$ members that are missing. With $R_i$ positions left, a member has weight
    $(1-\lambda_i)/\kappa$ with $\lambda_i=R_i/(\kappa e^c+R_i)$, so that the attended bit is within $\lambda_i$ of
    $j/\kappa$, and $\lambda_i\le\rho/4\kappa$ by $c=\log\frac{\max R_i(4\kappa/\rho-1)}\kappa$.

    A head with the coefficients $\alpha$ has logits $\log|\alpha_i|$ and $-M=-\log\frac{N-s}{\tau\sum|\alpha|}$: the
    mass of positions without a component is $\frac\tau{1+\tau}$, and with the value $\sum|\alpha|$ the output is
    $\sum|\alpha_i|\varphi_i$ up to that. Negative coefficients: a head of their own with a negative value, or
    $1-\varphi_S=\varphi_{S\cup\{1\}}$ with a token whose bit is 1.
    """
    _check(function, leakage, inactive, signed, units)
    terms = [(set_, a) for set_, a in zip(function.supports, function.coefficients, strict=True) if a != 0]
    supports, coefficients = [set_ for set_, _ in terms], np.array([a for _, a in terms], float)
    length, negative = function.dim, coefficients < 0
    flipped = negative & (signed == "one_token")
    positions = length + 1 + bool(flipped.any())
    degrees = np.array([len(set_) for set_ in supports], int) + flipped
    largest = int(degrees.max(initial=1))

    rest = positions - degrees - (degrees < largest)
    most = rest.max() if terms else positions
    sharpness = math.log(most * (4 * largest / leakage - 1) / largest)
    shares = np.zeros((len(supports), positions))
    for row, (set_, missing, flip) in enumerate(zip(supports, largest - degrees, flipped, strict=True)):
        shares[row, list(set_)] = 1
        if flip:
            shares[row, length + 1] = 1
        if missing:
            shares[row, length] = 1 + math.log(missing) / sharpness

    heads = [flipped | ~negative, negative & ~flipped]  # by the sign of the value
    heads = [(side, own) for side, own in zip((1, -1), heads, strict=True) if own.any()] or [(1, ~negative)]
    logits = np.stack([_logits(coefficients, own, positions, inactive) for _, own in heads])
    scale = 2.0 if function.basis == "chi" else 1.0
    values = scale * np.array([side * np.abs(coefficients[own]).sum() for side, own in heads])
    bias = function.constant - scale * np.abs(coefficients[flipped]).sum()
    if function.basis == "chi":
        bias -= coefficients.sum()
    return FourierPlan(
        context_length=length,
        degree=largest,
        sharpness=sharpness,
        shares=shares,
        logits=logits,
        values=values,
        bias=float(bias) if negative.any() or function.constant or function.basis == "chi" or not terms else None,
        error=float(scale * np.abs(coefficients).sum()) * inactive / (1 + inactive),
        units=units,
    )


def _logits(
    coefficients: Float[np.ndarray, " s"], own: np.ndarray, positions: int, inactive: float
) -> Float[np.ndarray, " N"]:
    if not own.any():
        return np.zeros(positions)
    magnitudes = np.abs(coefficients[own])
    logits = np.full(positions, -math.log((positions - len(magnitudes)) / (inactive * magnitudes.sum())))
    logits[np.flatnonzero(own)] = np.log(magnitudes)
    return logits


def _check(function: WalshFunction, leakage: float, inactive: float, signed: str, units: str) -> None:
    if function.dim < 1:
        raise Refusal(
            "fourier_components got a function of no bits: the model reads at least one. Add a bit that does not "
            "matter."
        )
    if function.sparsity > function.dim:
        raise Refusal(
            f"fourier_components got {function.sparsity} components on {function.dim} bits: each component takes a "
            "position of its own, so there can be at most as many as bits. Lengthen the context with bits that do not "
            "matter, or drop the smallest components."
        )
    if not 0 < leakage < 1 or not 0 < inactive < 1:
        raise Refusal(
            f"fourier_components got {leakage=} and {inactive=}: both must be fractions between 0 and 1, leakage of "
            "the plateau and inactive of the attention on positions without a component. Correct the one that is out "
            "of range."
        )
    if signed not in ("two_heads", "one_token"):
        raise Refusal(
            f"fourier_components got {signed=}: negative coefficients need two_heads or one_token. Choose one of them."
        )
    if units not in ("even", "all"):
        raise Refusal(
            f"fourier_components got {units=}: the perceptron can have units for even numbers of ones, or for all "
            "numbers. Choose even or all."
        )
