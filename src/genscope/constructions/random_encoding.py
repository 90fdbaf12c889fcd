r"""Any sparse function of bits encoded by random signs in dimension O(s log T).

Source: edelman2022, Section 5 (iii), approximately orthonormal embeddings. Thresholds by attention alone and bags are
in `nearly_orthogonal`; that $\beta$ and $\rho$ are small where the coherence is, is proved in `_crosstalk`.
Departures: weights, constants and proof are ours; the perceptron has biases, since no feature is exactly constant.
Guarantee: exact up to rounding if beta < 1 for the vectors that were drawn; otherwise nothing is promised.
"""

import math
from typing import TypeVar

import equinox as eqx
import numpy as np
from jaxtyping import Array, Key

from genscope.constructions._base import Construction, build, chosen_gamma, log_or_zero
from genscope.constructions._crosstalk import crosstalk
from genscope.constructions.sparse_function import SparseFunction
from genscope.constructions.sparse_variable import (
    GENERAL,
    SYMMETRIC,
    bit_readers,
    bit_squares,
    check_base,
    pattern_layers,
)
from genscope.models.encoding import AbstractEncoding, Positional
from genscope.precision import float64
from genscope.refusal import Refusal

LARGEST = 2**28  # entries of the vectors: 2 GiB


def sufficient_dimension(*, support_size: int, context_length: int) -> int:
    r"""$8s\log(2T)$, where $\beta\approx\sqrt{2s\log(2T)/d}$ is about 1/2; at least what s + 3 vectors need."""
    return max(support_size + 3, math.ceil(8 * max(1, support_size) * math.log(2 * context_length)))


def random_any_function(
    function: SparseFunction,
    *,
    dimension: int | None = None,
    base: float = 2.0,
    cls_is_key: bool = True,
    gamma: float | None = None,
    key: Key[Array, ""],
) -> Construction:
    r"""The weights of `any_function` with every vector replaced by its dual row.

    Then CLS and the relevant tokens are read exactly. An irrelevant position has
    $\langle\sum_iD_i,P_t\rangle\le\beta$, and the value read-outs are off by at most $\rho$ on it. So its weight is at
    most $e^{\beta\gamma}q^{1+\rho}$, and the leak moves $h_i$ by at most
    $\lambda(\rho+\frac{q+1}{2s}(1+2\rho))$: the bit is right if
    $\lambda\le\frac{\mu_0/2}{\mu_0+\rho+(q+1)(1+2\rho)/(2s)}$, which
    $e^{(1-\beta)\gamma}\ge(\frac1\lambda-1)\frac{(T-s)q^{1+\rho}+c}s$ ensures. Where the ReLU of the head clips a
    negative read-out, it only moves it toward its leak-free value. The halves and 1 - |p| are biases.
    """
    check_base(function, base)
    size, length = function.support_size, function.context_length
    encoding = draw_vectors(Positional, function, dimension, key)
    found = crosstalk(
        encoding, function.support, np.repeat([0.0, 1.0], [3, size]), bit_readers(size, 1.0, base, cls_is_key)[1]
    )
    beta, rho = found.beta, found.rho
    least = (base - 1) / (2 * base * size)  # mu_0
    leak = least / 2 / (least + rho + (base + 1) * (1 + 2 * rho) / (2 * size))
    others = (length - size) * base ** (1 + rho) + cls_is_key
    aligned = max(math.log(base), log_or_zero((1 / leak - 1) * others / size))
    needed = aligned / (1 - beta) if beta < 1 else math.inf
    sharpness = chosen_gamma(gamma, needed if beta < 1 else aligned)
    kappa, values = bit_readers(size, sharpness, base, cls_is_key)
    w_1, w_2, squares = pattern_layers(size, base)
    halves = np.tile([0.5, -0.5], size)
    w_1[-1, :-1] -= halves
    squares["W_1"] -= size / 2 + 1  # without the halves and the copy of the constant
    squares["W_2"] = 2**size * 2 * size
    return build(
        encoding,
        function.support,
        gamma=sharpness,
        needed=needed,
        kappa=kappa,
        values=values,
        w_c=np.ones(size + 2),
        hidden=[(w_1[:, :-1], halves), (w_2[:-1], w_2[-1])],
        w=function.values,
        error=0.0,
        squares={**bit_squares(size, sharpness, base, cls_is_key), **squares, "w": float(np.sum(function.values**2))},
        orders=GENERAL,
        source="edelman2022, Section 5 (iii), random embeddings of low dimension, tf+mlp",
        cls_is_key=cls_is_key,
        constants=found.constants(vectors=size + 3, attended=size, read=2 + cls_is_key),
    )


Encoding = TypeVar("Encoding", bound=AbstractEncoding)


def draw_vectors(
    kind: type[Encoding], function: SparseFunction, dimension: int | None, key: Key[Array, ""]
) -> Encoding:
    """An encoding by random signs in this dimension, or in one that suffices as a rule."""
    size, length = function.support_size, function.context_length
    if dimension is None:
        dimension = sufficient_dimension(support_size=size, context_length=length)
    if dimension < size + 3:
        raise Refusal(
            f"random vectors got {dimension=}: the vectors of CLS, of the two bits and of the {size} relevant "
            f"positions can only be independent in dimension {size + 3} or more. Increase the dimension; about "
            f"{sufficient_dimension(support_size=size, context_length=length)} is enough."
        )
    if (length + 3) * dimension > LARGEST:
        raise Refusal(
            f"random vectors got {dimension=} for context_length={length}: at most {LARGEST} numbers can be stored. "
            f"Reduce the dimension to {LARGEST // (length + 3)}, shorten the context, or use coordinate vectors."
        )
    with float64():
        return eqx.filter_jit(kind.draw)(key, context_length=length, dim=dimension)


def random_constant(
    function: SparseFunction, *, dimension: int | None = None, gamma: float | None = None, key: Key[Array, ""]
) -> Construction:
    """A constant: one hidden unit with a bias and nothing else, since no feature of these tokens is constant."""
    return build(
        draw_vectors(Positional, function, dimension, key),
        (),
        gamma=chosen_gamma(gamma, 0.0),
        needed=0.0,
        kappa=np.zeros(3),
        values=np.zeros((3, 1)),
        w_c=np.ones(1),
        hidden=[(np.zeros((1, 1)), np.ones(1))],
        w=function.values,
        error=0.0,
        squares={"W_K": 0, "W_V": 0, "W_C": 1, "W_1": 0, "w": float(np.sum(function.values**2))},
        orders=SYMMETRIC,
        source="edelman2022, Section 5 (ii), random embeddings of low dimension, one hidden layer",
    )
