r"""Sparse functions of nearly orthonormal vectors: thresholds by attention alone, and all functions of a bag.

With $\delta$ the coherence of the vectors that matter, an irrelevant position scores at most $\beta$ of a relevant one
and adds at most $\rho$ to a read-out; both are measured, and at most of the order of $\delta$ (`_crosstalk`).
For random signs in dimension $d\ge\frac2{\delta^2}\log\frac{n^2}p$, n vectors have that coherence
with probability $1-p$ (`models.encoding.sign_vectors`): $d=O(\delta^{-2}\log T)$, and with $\delta=\frac1{3s+2}$, which
makes $\beta\le\frac12$, $d=O(s^2\log T)$ (`promised_dimension`). `sufficient_dimension`, linear in s, is what draws
need as a rule.

Source: edelman2022, Section 5 (i) and (iii), approximately orthonormal embeddings.
Departures: weights, constants and proofs are ours. The perceptron of the bag has biases and two hidden layers.
Guarantee: up to rounding, thresholds err by at most $\epsilon$ and functions of a bag by 0, if $\beta<1$ for the
vectors that were drawn; otherwise nothing is promised. `random_encoding` has all functions of positional encodings.
"""

import math

import numpy as np
from jaxtyping import Array, Key

from genscope.constructions._base import Construction, build, chosen_gamma, log_or_zero
from genscope.constructions._crosstalk import crosstalk
from genscope.constructions.random_encoding import draw_vectors
from genscope.constructions.sparse_function import SparseFunction
from genscope.constructions.sparse_variable import GENERAL, SCALAR, SYMMETRIC
from genscope.fourier import points
from genscope.models.encoding import Bag, Positional
from genscope.refusal import Refusal


def promised_dimension(*, support_size: int, context_length: int, failure: float = 1e-3) -> int:
    r"""$\lceil2(3s+2)^2\log\frac{(T+3)^2}p\rceil$: there $\beta\le\frac12$ in all but a share p of draws."""
    if not 0 < failure < 1 or support_size < 0 or context_length < 1:
        raise Refusal(
            f"promised_dimension got {support_size=}, {context_length=} and {failure=}: sizes must not be negative, "
            "and the failure probability must lie between 0 and 1. Correct the one that is out of range."
        )
    return math.ceil(2 * (3 * support_size + 2) ** 2 * (2 * math.log(context_length + 3) - math.log(failure)))


def random_threshold(
    function: SparseFunction,
    *,
    epsilon: float = 0.01,
    dimension: int | None = None,
    cls_is_key: bool = True,
    gamma: float | None = None,
    key: Key[Array, ""],
) -> Construction:
    r"""A threshold $1[n\ge r]$ of positional encodings by random signs, by tf-scalar to within epsilon, part (i).

    The relevant positions score $\gamma$ exactly, CLS 0 and an irrelevant position at most $\beta\gamma$: all but the
    relevant ones get the mass $\lambda\le\frac R{1+R}$, $R=\frac{T-s+c}se^{-(1-\beta)\gamma}$. A unit reads
    $2sE_1-v\mathbf1$, which is $2sb_t-v$ on relevant tokens, $-v$ on CLS and off by at most $\rho(2s+v)$ on others, so
    with $\mu\le\lambda$ the mass of these, and $\bar\zeta$ the mean of what they add to $\mathbf1$,
    $u_v=2n-v-2n\lambda+2s\mu(\bar b+\bar\eta)-v\mu\bar\zeta$, within $2s\lambda(1+2\rho)$ of $2n-v$: at most
    $\frac12$ if $\lambda\le\frac1{4s(1+2\rho)}$. The output is $u_v^+-u_{v+1}^+$ with $v=2r-\frac32$: 0 for n < r, and
    $1+\mu\bar\zeta$ for $n\ge r$, which errs by at most $\lambda\rho\le\epsilon$.
    """
    least, size, length = function.least_ones, function.support_size, function.context_length
    if least is None:
        raise Refusal(
            "random_threshold got a function that is not a threshold: it must be 1 for at least r ones, 1 <= r <= s, "
            "and 0 for fewer. Use random_any_function."
        )
    _check_error("random_threshold", epsilon)
    kept = float(cls_is_key)
    kappa = np.concatenate([np.zeros(3), np.ones(size)])
    constant, letter = np.concatenate([[kept, 1, 1], np.zeros(size)]), np.eye(size + 3)[2]
    low = 2 * least - 1.5
    values = np.column_stack([2 * size * letter - v * constant for v in (low, low + 1)])
    encoding = draw_vectors(Positional, function, dimension, key)
    found = crosstalk(encoding, function.support, kappa, np.column_stack([letter, constant]))
    leak = 1 / (4 * size * (1 + 2 * found.rho))
    leak = min(leak, epsilon / found.rho) if found.rho else leak
    aligned = log_or_zero((1 / leak - 1) * (length - size + kept) / size)
    return build(
        encoding,
        function.support,
        gamma=chosen_gamma(gamma, aligned / (1 - found.beta) if found.beta < 1 else aligned),
        needed=aligned / (1 - found.beta) if found.beta < 1 else math.inf,
        kappa=kappa,
        values=values,
        w_c=np.ones(2),
        w=np.array([1.0, -1.0]),
        error=leak * found.rho,
        squares={
            "W_K": size,
            "W_V": sum((2 * size - v) ** 2 + (1 + kept) * v**2 for v in (low, low + 1)),
            "W_C": 2,
            "w": 2,
        },
        orders=SCALAR,
        source="edelman2022, Section 5 (i), random embeddings of low dimension, tf-scalar",
        cls_is_key=cls_is_key,
        constants=found.constants(vectors=size + 3, attended=size, read=2 + cls_is_key),
    )


def random_bag_any_function(
    function: SparseFunction, *, dimension: int | None = None, gamma: float | None = None, key: Key[Array, ""]
) -> Construction:
    r"""Any function of a bag of random signs by tf+mlp, exactly, part (iii).

    CLS and the n relevant ones score $\gamma$ exactly, zeros 0 and irrelevant ones at most $\beta\gamma$; these and the
    zeros get the mass $\lambda\le\frac R{1+R}$, $R=T\,e^{-(1-\beta)\gamma}$, and the others
    $p=\frac{1-\lambda}{n+1}$ each. The head reads $o_i=b_ip$ and $o_c=p$, each off by at most $\lambda\rho$ (where its
    ReLU clips, that moves it towards the right value). So $h_i=o_i-\frac12o_c$ has the sign of $b_i-\frac12$ and is at
    least $(1-\lambda)\mu_0-\frac32\lambda\rho$ long, $\mu_0=\frac1{2(s+1)}$: at least $\frac{\mu_0}2$ if
    $\lambda\le\frac{\mu_0/2}{\mu_0+\frac32\rho}$. Units $\mathrm{relu}(\frac{h_i}{\mu_0}\pm\frac12)$ then differ by the
    bit exactly, and a unit for each pattern reads the bits, as in `sparse_variable`. Unlike for orthonormal vectors
    (`bag_any_function`) the mass of irrelevant ones is not known from n, hence the second layer and its biases.
    """
    size, length = function.support_size, function.context_length
    encoding = draw_vectors(Bag, function, dimension, key)
    if not size:
        return _bag_constant(encoding, function, gamma)
    kappa, values = np.ones(size + 1), np.roll(np.eye(size + 1), -1, axis=1)
    found = crosstalk(encoding, function.support, kappa, values)
    half = 1 / (2 * (size + 1))  # mu_0
    leak = half / 2 / (half + 1.5 * found.rho)
    aligned = log_or_zero((1 / leak - 1) * length)
    patterns = points(size)
    sides = 2.0 * patterns.T - 1
    w_1 = np.concatenate([np.repeat(np.eye(size), 2, axis=1), np.full((1, 2 * size), -0.5)]) / half
    w_2 = np.stack([sides, -sides], axis=1).reshape(2 * size, -1)
    return build(
        encoding,
        function.support,
        gamma=chosen_gamma(gamma, aligned / (1 - found.beta) if found.beta < 1 else aligned),
        needed=aligned / (1 - found.beta) if found.beta < 1 else math.inf,
        kappa=kappa,
        values=values,
        w_c=np.ones(size + 1),
        hidden=[(w_1, np.tile([0.5, -0.5], size)), (w_2, 1.0 - patterns.sum(axis=1))],
        w=function.values,
        error=0.0,
        squares={
            "W_K": size + 1,
            "W_V": size + 1,
            "W_C": size + 1,
            "W_1": 2 * size * 1.25 / half**2,
            "W_2": 2**size * 2 * size,
            "w": float(np.sum(function.values**2)),
        },
        orders=GENERAL,
        source="edelman2022, Section 5 (iii), bag of random vectors of low dimension, tf+mlp",
        constants=found.constants(vectors=size + 1, attended=size + 1, read=1),
    )


def _bag_constant(encoding: Bag, function: SparseFunction, gamma: float | None) -> Construction:
    """One hidden unit with a bias, as in `random_constant`."""
    return build(
        encoding,
        (),
        gamma=chosen_gamma(gamma, 0.0),
        needed=0.0,
        kappa=np.zeros(1),
        values=np.zeros((1, 1)),
        w_c=np.ones(1),
        hidden=[(np.zeros((1, 1)), np.ones(1))],
        w=function.values,
        error=0.0,
        squares={"W_K": 0, "W_V": 0, "W_C": 1, "W_1": 0, "w": float(np.sum(function.values**2))},
        orders=SYMMETRIC,
        source="edelman2022, Section 5 (ii), bag of random vectors of low dimension, one hidden layer",
    )


def _check_error(caller: str, epsilon: float) -> None:
    if not 0 < epsilon < 1:
        raise Refusal(f"{caller} got {epsilon=}: the error must lie between 0 and 1. Try 0.01.")
