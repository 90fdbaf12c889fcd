r"""Sparse functions of a bag of vectors: thresholds nearly, symmetric and all functions exactly, without biases.

Source: edelman2022, Section 5 (i) to (iii), bag-of-vectors encoding.
Departures: one hidden layer where the proposition allows two; weights, constants and proofs are ours.
Guarantee: exact up to rounding at every sharpness, and thresholds to within epsilon at the chosen one.

Tokens are $x_t=b_tv_t$ and CLS is a key. With $\kappa=\sum_{i\in\mathcal I}v_i+v_{CLS}$ the n relevant ones and CLS
score $\gamma$ and everything else, zeros and irrelevant ones alike, scores 0: irrelevant bits do not matter at all.
With $Z=(n+1)e^\gamma+T-n$, CLS gets $p=e^\gamma/Z$ and a relevant one the same: the code is homogeneous, and since p
is known given n, so is the multiplier $\frac1p=(n+1)+(T-n)e^{-\gamma}$. Coefficients are on $v_{CLS}$ and the $v_i$.
"""

import math

import numpy as np

from genscope.constructions._base import Construction, Vector, build, chosen_gamma, log_or_zero
from genscope.constructions.sparse_function import SparseFunction
from genscope.constructions.sparse_variable import GENERAL, SCALAR, SYMMETRIC
from genscope.fourier import points
from genscope.models.encoding import Bag
from genscope.refusal import Refusal


def bag_threshold(function: SparseFunction, *, epsilon: float = 0.01, gamma: float | None = None) -> Construction:
    r"""A threshold 1[n >= r] by tf-scalar to within epsilon, part (i).

    The output is $p\,[(r+1)(n-r+1)_+-r(n-r)_+]$, that is 0 for n < r and $(n+1)p$ otherwise, short of 1 by
    $\frac{T-n}Z\le\frac{T-r}{(r+1)e^\gamma+T-r}$: at most $\epsilon$ if $e^\gamma\ge\frac{T-r}{r+1}(\frac1\epsilon-1)$.
    """
    least, size = function.least_ones, function.support_size
    if least is None:
        raise Refusal(
            "bag_threshold got a function that is not a threshold: it must be 1 for at least r ones, 1 <= r <= s, and "
            "0 for fewer. Use bag_symmetric or bag_any_function."
        )
    if not 0 < epsilon < 1:
        raise Refusal(f"bag_threshold got {epsilon=}: the error must lie between 0 and 1. Try 0.01.")
    needed = log_or_zero((function.context_length - least) * (1 / epsilon - 1) / (least + 1))
    return build(
        Bag.orthonormal(context_length=function.context_length),
        function.support,
        gamma=chosen_gamma(gamma, needed),
        needed=needed,
        kappa=np.ones(size + 1),
        values=np.concatenate([[[1.0 - least, -least]], np.ones((size, 2))]),
        w_c=np.array([least + 1.0, least]),
        w=np.array([1.0, -1.0]),
        error=epsilon,
        squares={
            "W_K": size + 1,
            "W_V": 2 * size + (least - 1) ** 2 + least**2,
            "W_C": (least + 1) ** 2 + least**2,
            "w": 2,
        },
        orders=SCALAR,
        source="edelman2022, Section 5 (i), bag of vectors, tf-scalar",
    )


def bag_symmetric(function: SparseFunction, *, gamma: float | None = None) -> Construction:
    r"""Any symmetric function g(n) with one hidden layer, part (ii).

    The head reads $np$ and $p$. Units $\mathrm{relu}(np-jp)=p(n-j)_+$ for j = -1, ..., s-1 interpolate
    $G(n)=g(n)/p$ linearly between counts, from G = 0 at -1 on: their weights are the second differences of G.
    """
    levels, size = function.levels, function.support_size
    if levels is None:
        raise Refusal(
            "bag_symmetric got a function that is not symmetric: it must depend only on the number of ones in its "
            "support. Use bag_any_function."
        )
    sharpness = chosen_gamma(gamma, math.log(function.context_length))
    goals = levels * _multipliers(function, sharpness)
    kinks = np.arange(-1, size)
    return build(
        Bag.orthonormal(context_length=function.context_length),
        function.support,
        gamma=sharpness,
        needed=0.0,
        kappa=np.ones(size + 1),
        values=np.column_stack([np.append(0.0, np.ones(size)), np.eye(size + 1)[0]]),
        w_c=np.ones(2),
        hidden=[(np.stack([np.ones(size + 1), -1.0 * kinks]), None)],
        w=np.diff(np.append([0.0, 0.0], goals), n=2),
        error=0.0,
        squares={
            "W_K": size + 1,
            "W_V": size + 1,
            "W_C": 2,
            "W_1": size + 2 + (size - 1) * size * (2 * size - 1) / 6,
            "w": float(np.sum((goals - 2 * _delayed(goals, 1) + _delayed(goals, 2)) ** 2)),
        },
        orders=SYMMETRIC,
        source="edelman2022, Section 5 (ii), bag of vectors, one hidden layer",
    )


def bag_any_function(function: SparseFunction, *, gamma: float | None = None) -> Construction:
    r"""Any function with one hidden layer, part (iii).

    The head reads $o_i=b_ip$ and $p$. The unit of the pattern q, $\mathrm{relu}(\sum_i(2q_i-1)o_i+(1-|q|)p)$, is
    $p$ on that pattern and 0 elsewhere; its weight is f(q)/p. The default $\gamma=\log T$ keeps 1/p <= |q| + 2.
    """
    size = function.support_size
    sharpness = chosen_gamma(gamma, math.log(function.context_length))
    patterns = points(size)
    ones = patterns.sum(axis=1)
    w = function.values * _multipliers(function, sharpness)[ones]
    return build(
        Bag.orthonormal(context_length=function.context_length),
        function.support,
        gamma=sharpness,
        needed=0.0,
        kappa=np.ones(size + 1),
        values=np.roll(np.eye(size + 1), -1, axis=1),
        w_c=np.ones(size + 1),
        hidden=[(np.concatenate([2.0 * patterns.T - 1, 1.0 - ones[None]]), None)],
        w=w,
        error=0.0,
        squares={
            "W_K": size + 1,
            "W_V": size + 1,
            "W_C": size + 1,
            "W_1": 2**size * (size + size / 4 + (1 - size / 2) ** 2),
            "w": float(np.sum(w**2)),
        },
        orders=GENERAL,
        source="edelman2022, Section 5 (iii), bag of vectors, one hidden layer",
    )


def _multipliers(function: SparseFunction, gamma: float) -> Vector:
    """1/p for n = 0, ..., s."""
    counts = np.arange(function.support_size + 1)
    return counts + 1 + (function.context_length - counts) * math.exp(-gamma)


def _delayed(entries: Vector, by: int) -> Vector:
    return np.append(np.zeros(by), entries)[: len(entries)]
