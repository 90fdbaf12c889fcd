r"""Arithmetic on logarithms: sums, and binomials of numbers that no float can hold.

Source: Stirling's series.
Guarantee: exact to about 14 digits for all arguments; what exceeds the largest float is `inf`, never an error or NaN.
"""

import math
from collections.abc import Iterable


def log(x: float) -> float:
    """Natural logarithm, with log 0 = -inf; integers may exceed every float."""
    return math.log(x) if x > 0 else -math.inf


def exp(x: float) -> float:
    """Exponential that saturates at `inf`."""
    return math.exp(x) if x < 709 else math.inf


def softplus(x: float) -> float:
    r"""$\log(1+e^x)$."""
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def log_sum(logs: Iterable[float]) -> float:
    r"""$\log\sum_ie^{x_i}$.

    >>> round(log_sum([1000.0, 1000.0]) - 1000.0, 6) == round(math.log(2), 6)
    True
    """
    terms = list(logs)
    largest = max(terms, default=-math.inf)
    if math.isinf(largest):
        return largest
    return largest + math.log(sum(math.exp(term - largest) for term in terms))


def log_multisets(log_symbols: float, size: float) -> float:
    r"""$\log\binom{A+K}K$: multisets of at most $K$ = `size` symbols from an alphabet of $A\ge1$ symbols.

    $K\log(1+\frac AK)+A\log(1+\frac KA)-\frac12\log\frac{2\pi AK}{A+K}+\delta(A+K)-\delta(A)-\delta(K)$, where $\delta$
    is the error of Stirling's formula. Unlike a difference of three log-gammas, the large terms do not cancel.

    >>> abs(log_multisets(math.log(3), 2) - math.log(10)) < 1e-14
    True
    """
    size = float(size) if size < 1e308 else math.inf
    if size == 0 or math.isinf(size):
        return size
    x = log_symbols - math.log(size)  # log(A / K)
    inner = math.exp(x) * softplus(-x) if x < 40 else 1.0  # (A / K) log(1 + K / A)
    root = 0.5 * (math.log(2 * math.pi) + log_symbols - softplus(x))
    symbols = exp(log_symbols)
    return size * (softplus(x) + inner) - root + _stirling(symbols + size) - _stirling(symbols) - _stirling(size)


def _stirling(n: float) -> float:
    r"""$\log n!-(n\log n-n+\frac12\log2\pi n)$."""
    if n < 50:
        return math.lgamma(n + 1) - (n * math.log(n) - n + 0.5 * math.log(2 * math.pi * n))
    return (1 - (1 / 30 - 1 / (105 * n * n)) / (n * n)) / (12 * n)
