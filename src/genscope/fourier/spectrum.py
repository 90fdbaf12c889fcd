r"""What the spectrum of a function on the cube says: degree, sparsity, level weights, influences, noise stability.

Source: lintilhac2026, Equation (1); influences and noise as in R. O'Donnell, Analysis of Boolean Functions, Chapter 2.
Departures: the sparsity does not count the constant; noise sensitivity is that of real functions,
$\frac14\mathbb E[(f(x)-f(y))^2]$, which for values 1 and -1 is the probability that f(x) and f(y) differ.
Guarantee: exact up to rounding. Degree and sparsity need to know which coefficients are zero: in tables those of
magnitude at most `tolerance` times the root mean square of the function (default 1e-9; rounding leaves about 1e-15),
in a `WalshFunction` those that are written as zero.

Every function takes a truth table over 2^n points (bit 0 varying fastest; booleans are 0 and 1) or a `WalshFunction`.
"""

import math

import numpy as np
from jaxtyping import Bool, Float, Int, Num

from genscope.fourier.expression import Expression, parse
from genscope.fourier.transform import walsh_coefficients
from genscope.fourier.walsh import WalshFunction
from genscope.refusal import Refusal

Table = Num[np.ndarray, "..."] | Bool[np.ndarray, "..."]  # over the 2^n points; more axes are refused
Function = Table | WalshFunction

TOLERANCE = 1e-9  # relative to the root mean square of the function


def from_table(table: Table, *, tolerance: float = TOLERANCE) -> WalshFunction:
    """The expansion of a truth table in characters, without the coefficients that count as zero."""
    spectrum = _spectrum(table)
    masks = np.flatnonzero(_present(spectrum, tolerance))
    dim = len(spectrum).bit_length() - 1
    supports = tuple(tuple(i for i in range(dim) if mask >> i & 1) for mask in masks.tolist() if mask)
    coefficients = tuple(spectrum[masks[masks > 0]].tolist())
    return WalshFunction(dim, supports, coefficients, "chi", float(spectrum[0]) if 0 in masks[:1] else 0.0)


def from_expression(expression: Expression | str, dim: int | None = None) -> WalshFunction:
    """The expansion of a Boolean expression (values 0 and 1) as a function of bits x0, ..., x{dim-1}.

    Coefficients are multiples of 2^-n for n relevant variables and exact. Without `dim`, the last relevant variable is
    the last bit.

    >>> from_expression("x0 ^ x2")
    WalshFunction(dim=3, supports=((0, 2),), coefficients=(-0.5,), basis='chi', constant=0.5)
    """
    expression = parse(expression) if isinstance(expression, str) else expression
    support, table = expression.reduced
    least = support[-1] + 1 if support else 0
    if dim is not None and dim < least:
        raise Refusal(
            f"from_expression got dim={dim!r} for an expression that depends on x{least - 1}: dim is the number of "
            f"bits, counted from x0. Give at least {least}, or leave it out."
        )
    short = from_table(table)
    supports = tuple(tuple(support[i] for i in each) for each in short.supports)
    return WalshFunction(least if dim is None else dim, supports, short.coefficients, "chi", short.constant)


def degree(function: Function, *, tolerance: float = TOLERANCE) -> int:
    """The size of the largest support with a non-zero coefficient; 0 for a constant."""
    if isinstance(function, WalshFunction):
        return function.degree
    present = _present(_spectrum(function), tolerance)
    return int(_sizes(len(present))[present].max(initial=0))


def sparsity(function: Function, *, tolerance: float = TOLERANCE) -> int:
    """The number of non-empty supports with a non-zero coefficient."""
    if isinstance(function, WalshFunction):
        return function.sparsity
    return int(_present(_spectrum(function), tolerance)[1:].sum())


def level_weights(function: Function) -> Float[np.ndarray, " levels"]:
    r"""$W^{=k}=\sum_{|S|=k}\hat f(S)^2$ for k = 0, ..., n; their sum is $\mathbb E[f^2]$ (Parseval)."""
    dim, sizes, squares = _components(function)
    return np.bincount(sizes, squares, minlength=dim + 1)


def influences(function: Function) -> Float[np.ndarray, " n"]:
    r"""$\mathrm{Inf}_i=\sum_{S\ni i}\hat f(S)^2=\frac14\mathbb E[(f(x)-f(x^{\oplus i}))^2]$ for each bit."""
    if isinstance(function, WalshFunction):
        chi, found = function.to_chi(), np.zeros(function.dim)
        for support, coefficient in zip(chi.supports, chi.coefficients, strict=True):
            found[list(support)] += coefficient**2
        return found
    # Differences of the table itself: cheaper than its spectrum, and exactly 0 where nothing depends on the bit.
    table = _values(function)
    halves = (table.reshape(-1, 2, 2**i) for i in range(len(table).bit_length() - 1))
    return np.array([np.mean((half[:, 0] - half[:, 1]) ** 2) / 4 for half in halves], float)


def total_influence(function: Function) -> float:
    r"""$\sum_i\mathrm{Inf}_i=\sum_kkW^{=k}$: the mean size of a component, weighted by its square."""
    return math.fsum(influences(function))


def noise_stability(function: Function, correlation: float) -> float:
    r"""$\mathbb E[f(x)f(y)]=\sum_k\rho^kW^{=k}$, where each bit of y equals that of x with probability $(1+\rho)/2$."""
    if not -1 <= correlation <= 1:
        raise Refusal(
            f"noise_stability got correlation={correlation!r}: a correlation must lie between -1 and 1. For bits "
            "that are flipped with probability p, give 1 - 2 p."
        )
    weights = level_weights(function)
    return math.fsum(correlation ** np.arange(len(weights)) * weights)


def noise_sensitivity(function: Function, flip: float) -> float:
    r"""$\frac14\mathbb E[(f(x)-f(y))^2]=\frac12\sum_k(1-(1-2p)^k)W^{=k}$: each bit flips with probability p."""
    if not 0 <= flip <= 1:
        raise Refusal(
            f"noise_sensitivity got flip={flip!r}: it must be the probability of flipping a bit. Give a number from 0 "
            "to 1."
        )
    weights = level_weights(function)
    return math.fsum((1 - (1 - 2 * flip) ** np.arange(len(weights))) * weights) / 2


def _values(table: Table) -> Float[np.ndarray, " points"]:
    if table.ndim != 1 or table.size & (table.size - 1) or not table.size:
        raise Refusal(
            f"got a table of shape {table.shape}: a truth table must list the values at all 2^n points, in one "
            "dimension. Give a value for each point, and one table at a time."
        )
    values = table.astype(np.float64)
    if not np.isfinite(values).all():
        raise Refusal("got a table with values that are NaN or infinite. Give finite values.")
    return values


def _spectrum(table: Table) -> Float[np.ndarray, " points"]:
    return walsh_coefficients(_values(table))


def _present(spectrum: Float[np.ndarray, " points"], tolerance: float) -> Bool[np.ndarray, " points"]:
    if not 0 <= tolerance < 1:
        raise Refusal(
            f"got tolerance={tolerance!r}: coefficients up to this share of the root mean square count as zero. Give a "
            "number that is at least 0 and below 1."
        )
    return np.abs(spectrum) > tolerance * math.sqrt(float(spectrum @ spectrum))


def _sizes(points: int) -> Int[np.ndarray, " points"]:
    return np.bitwise_count(np.arange(points)).astype(np.intp)


def _components(
    function: Function,
) -> tuple[int, Int[np.ndarray, " components"], Float[np.ndarray, " components"]]:
    """The number of bits; size and squared coefficient of each component, the constant among them."""
    if not isinstance(function, WalshFunction):
        spectrum = _spectrum(function)
        return len(spectrum).bit_length() - 1, _sizes(len(spectrum)), spectrum**2
    chi = function.to_chi()
    sizes = np.array([0, *(len(support) for support in chi.supports)])
    return chi.dim, sizes, np.square([chi.constant, *chi.coefficients])
