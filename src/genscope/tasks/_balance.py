r"""Balanced inputs: the probability of a 1 at which a Boolean function is 0 or 1 equally often.

Source: edelman2022, Section 6 (independent bits, 1 with probability p); that p = 2^{-1/3}, so that an AND of three has
balanced labels, is recalled from the paper and not in the texts we have.
Departures: functions that are balanced at several p, or at none, follow the rule stated at `balanced_probability`.
Guarantee: exact up to rounding, for any truth table.
"""

import itertools

import numpy as np
from jaxtyping import Bool, Float
from numpy.polynomial import Chebyshev


def weight_counts(table: Bool[np.ndarray, " entries"]) -> Float[np.ndarray, " weights"]:
    """Number of inputs of each Hamming weight 0, ..., s at which the function is 1."""
    weights = np.bitwise_count(np.flatnonzero(table))
    return np.bincount(weights, minlength=len(table).bit_length()).astype(float)


def one_probability(counts: Float[np.ndarray, " weights"], probability: float) -> float:
    r"""P[f = 1] = \sum_w N_w p^w (1-p)^{s-w}, where N_w inputs of weight w give 1."""
    weights = np.arange(len(counts))
    return float(counts @ (probability**weights * (1 - probability) ** weights[::-1]))


def balanced_probability(counts: Float[np.ndarray, " weights"]) -> float:
    """The p that minimizes |P[f = 1] - 1/2|; among several the one nearest 1/2, and then the smaller.

    Constant functions are equally unbalanced everywhere and get 1/2.
    """
    from scipy.optimize import brentq  # slow to load, and every command that lists studies loads this module

    dim = len(counts) - 1
    if counts.sum() in (0, 2.0**dim / 2, 2.0**dim):
        return 0.5

    def excess(p: float) -> float:
        return one_probability(counts, p) - 0.5

    # Between its critical points the polynomial is monotone, so that bisection finds every crossing.
    slope = Chebyshev.interpolate(np.vectorize(excess), dim, domain=[0, 1]).deriv().trim(1e-13)
    critical = [float(root.real) for root in slope.roots() if abs(root.imag) < 1e-6 and 0 < root.real < 1]
    knots = sorted([0.0, *critical, 1.0])
    crossings = [
        float(brentq(excess, low, high, xtol=1e-15))  # pyright: ignore[reportArgumentType]  # SciPy types it as a pair
        for low, high in itertools.pairwise(knots)
        if excess(low) * excess(high) < 0
    ]
    # Rounded, so that the last digits do not decide between equals.
    return min(critical + crossings, key=lambda p: (round(abs(excess(p)), 12), round(abs(p - 0.5), 9), p))
