r"""Sparse functions of additively encoded bits: thresholds and their sums without, everything with a perceptron.

Source: edelman2022, Section 5 (i) to (iii), deterministic positional embeddings.
Departures: exact where the proposition approximates, (i); weights, constants and proofs are ours.
Guarantee: exact up to rounding at the sharpness that is chosen by default.

Letters: T bits, s of them relevant, n ones among these; c = 1 if CLS is a key. Coefficients are on
$v_{CLS},E_0,E_1$ and the support's $P_i$. The constant feature $\mathbf 1=E_0+E_1+v_{CLS}$ (without $v_{CLS}$ if
c = 0) is 1 on every attended token, so its average is exactly 1: it replaces all biases.
"""

import math

import numpy as np

from genscope.constructions._base import Construction, Matrix, Vector, build, chosen_gamma, log_or_zero
from genscope.constructions.sparse_function import SparseFunction
from genscope.fourier import points
from genscope.models.encoding import Positional
from genscope.refusal import Refusal

SCALAR = {"W_Q": "log(T s)", "W_K": "s", "W_V": "s", "W_C": "s"}
SYMMETRIC = {**SCALAR, "W_1": "poly(s)", "W_2": "poly(s)", "w": "poly(s)"}
GENERAL = {**SCALAR, "W_1": "2^s poly(s)", "W_2": "2^s poly(s)", "w": "2^s poly(s)"}


def threshold_sum(
    function: SparseFunction, *, margin: float = 0.25, cls_is_key: bool = True, gamma: float | None = None
) -> Construction:
    r"""Any symmetric function by tf-scalar; a threshold 1[n >= r], part (i), has two value dimensions.

    Scores are $\gamma$ on the support and 0 elsewhere, so the mass outside is
    $\lambda=\frac{T-s+c}{se^\gamma+T-s+c}$ and $a=\sum_tp_tb_t$ has $|sa-n|\le s\lambda$, which is at most the margin
    $\nu<\frac12$ if $e^\gamma\ge(\frac1\nu-\frac1s)(T-s+c)$. Two units of slope $\mu=\frac1{1-2\nu}$ then give
    $\mathrm{clip}_{[0,1]}(\mu(sa-r+1-\nu))=1[n\ge r]$, and $g(n)=g(0)+\sum_r(g(r)-g(r-1))1[n\ge r]$.
    """
    if not 0 < margin < 0.5:
        raise Refusal(
            f"threshold_sum got {margin=}: the ramp must fit between two counts, so 0 < margin < 1/2. Try 0.25."
        )
    levels, size, kept = _levels(function), function.support_size, float(cls_is_key)
    jumps = np.diff(levels)
    steps = np.flatnonzero(jumps)
    slope = 1 / (1 - 2 * margin)
    offsets = (slope * (steps + margin)[:, None] + [0, 1]).reshape(-1)  # step number r - 1, two units each
    ramps = slope * size * _letter(size)[:, None] - np.outer(_constant(size, cls_is_key), offsets)
    w = (jumps[steps][:, None] * [1, -1]).reshape(-1)
    constant = levels[0] != 0 or not len(steps)
    if constant:
        ramps, w = np.column_stack([ramps, _constant(size, cls_is_key)]), np.append(w, levels[0])
    needed = _even_gamma(function, margin, cls_is_key)
    return build(
        Positional.orthonormal(context_length=function.context_length),
        function.support,
        gamma=chosen_gamma(gamma, needed),
        needed=needed,
        kappa=_on_support(size),
        values=ramps,
        w_c=np.ones(len(w)),
        w=w,
        error=0.0,
        squares={
            "W_K": size,
            "W_V": float(np.sum((slope * size - offsets) ** 2 + (1 + kept) * offsets**2) + constant * (2 + kept)),
            "W_C": 2 * len(steps) + constant,
            "w": float(2 * np.sum(jumps**2) + levels[0] ** 2),
        },
        orders=SCALAR,
        source="edelman2022, Section 5 (i), positional embeddings, tf-scalar",
        cls_is_key=cls_is_key,
    )


def symmetric(function: SparseFunction, *, cls_is_key: bool = True, gamma: float | None = None) -> Construction:
    r"""Any symmetric function by tf+mlp, part (ii): the ramps of `threshold_sum` move into the perceptron.

    The head gives $y=(a,1)$. Hidden units $\mathrm{relu}(2sa-2r+\frac32)$ and $\mathrm{relu}(2sa-2r+\frac12)$ for
    r = 1, ..., s differ by 1[n >= r] (margin 1/4); one unit copies the constant. The second layer takes the
    differences, $w_r=g(r)-g(r-1)$ and $w_{s+1}=g(0)$.
    """
    levels, size, kept = _levels(function), function.support_size, float(cls_is_key)
    counts = np.arange(1, size + 1)
    offsets = np.stack([2 * counts - 1.5, 2 * counts - 0.5], axis=1).reshape(-1)
    w_1 = np.column_stack([[np.full(2 * size, 2.0 * size), -offsets], [0, 1]])
    w_2 = np.zeros((2 * size + 1, size + 1))
    w_2[2 * counts - 2, counts - 1], w_2[2 * counts - 1, counts - 1], w_2[-1, -1] = 1, -1, 1
    needed = _even_gamma(function, 0.25, cls_is_key)
    return build(
        Positional.orthonormal(context_length=function.context_length),
        function.support,
        gamma=chosen_gamma(gamma, needed),
        needed=needed,
        kappa=_on_support(size),
        values=np.column_stack([_letter(size), _constant(size, cls_is_key)]),
        w_c=np.ones(2),
        hidden=[(w_1, None), (w_2, None)],
        w=np.append(np.diff(levels), levels[0]),
        error=0.0,
        squares={
            "W_K": size,
            "W_V": 3 + kept,
            "W_C": 2,
            "W_1": 8 * size**3 + 8 * size * (size + 1) * (2 * size + 1) / 6 - 4 * size * (size + 1) + 2.5 * size + 1,
            "W_2": 2 * size + 1,
            "w": float(np.sum(np.diff(levels) ** 2) + levels[0] ** 2),
        },
        orders=SYMMETRIC,
        source="edelman2022, Section 5 (ii), positional embeddings, tf+mlp",
        cls_is_key=cls_is_key,
    )


def any_function(
    function: SparseFunction, *, base: float = 2.0, cls_is_key: bool = True, gamma: float | None = None
) -> Construction:
    r"""Any function by one head and tf+mlp, part (iii).

    A token scores $\gamma1[t\in\mathcal I]+\log q\cdot b_t$ with the base q. The head reads the attention $o_i$ on each
    relevant position, that on ones, $e_1$, and the constant. Without leak, $o_i=q^{b_i}/D$ and $e_1=qn/D$ with
    $D=(q-1)n+s$, so $\frac1D=\frac1s(1-\frac{q-1}qe_1)$ is linear in $e_1$, and
    $$h_i=o_i-\tfrac{q+1}{2s}(1-\tfrac{q-1}qe_1)=\pm\tfrac{q-1}{2D}$$ has the sign of $b_i-\frac12$ and
    $|h_i|\ge\mu_0=\frac{q-1}{2qs}$. A leak $\lambda$ turns it into
    $(1-\lambda)h_i+\lambda\frac{q+1}{2s}(\frac{q-1}q\rho-1)$ with $0\le\rho\le1$: at least $\frac{\mu_0}2$ and of the
    right sign if $\lambda\le\frac12\frac{q-1}{q-1+q(q+1)}$. Since
    $\lambda\le\frac{q(T-s)+c}{se^\gamma+q(T-s)+c}$, $e^\gamma\ge(\frac1\lambda-1)\frac{q(T-s)+c}s$ suffices; a larger
    $\gamma$ only helps, and $\gamma\ge\log q$ keeps $\|W_K\|$ small.
    """
    size, kept = function.support_size, float(cls_is_key)
    check_base(function, base)
    leak = 0.5 * (base - 1) / (base - 1 + base * (base + 1))
    others = base * (function.context_length - size) + kept
    needed = max(math.log(base), log_or_zero((1 / leak - 1) * others / size))
    sharpness = chosen_gamma(gamma, needed)
    kappa, values = bit_readers(size, sharpness, base, cls_is_key)
    w_1, w_2, squares = pattern_layers(size, base)
    return build(
        Positional.orthonormal(context_length=function.context_length),
        function.support,
        gamma=sharpness,
        needed=needed,
        kappa=kappa,
        values=values,
        w_c=np.ones(size + 2),
        hidden=[(w_1, None), (w_2, None)],
        w=function.values,
        error=0.0,
        squares={**bit_squares(size, sharpness, base, cls_is_key), **squares, "w": float(np.sum(function.values**2))},
        orders=GENERAL,
        source="edelman2022, Section 5 (iii), positional embeddings, tf+mlp",
        cls_is_key=cls_is_key,
    )


# --- The parts of `any_function`, which the low-dimensional construction shares ---------------------------------------


def check_base(function: SparseFunction, base: float) -> None:
    """Refuse what the construction of any function cannot express."""
    if not 1 < base < math.inf:
        raise Refusal(f"any_function got {base=}: a 1 must score higher than a 0, so base > 1. Leave it out to use 2.")
    if not function.support:
        raise Refusal(
            "any_function got a constant: the function must depend on at least one bit. Use threshold_sum, which also "
            "gives constants."
        )


def bit_readers(size: int, gamma: float, base: float, cls_is_key: bool) -> tuple[Vector, Matrix]:
    """Coefficients of the scores, and of the values (o_1, ..., o_s, e_1, 1)."""
    kappa = _on_support(size) + math.log(base) / gamma * _letter(size)
    positions = np.eye(size + 3)[:, 3:]
    return kappa, np.column_stack([positions, _letter(size), _constant(size, cls_is_key)])


def bit_squares(size: int, gamma: float, base: float, cls_is_key: bool) -> dict[str, float]:
    """Squared norms of the head."""
    return {"W_K": size + (math.log(base) / gamma) ** 2, "W_V": size + 3 + float(cls_is_key), "W_C": size + 2}


def pattern_layers(size: int, base: float) -> tuple[Matrix, Matrix, dict[str, float]]:
    r"""The perceptron from (o_1, ..., o_s, e_1, 1) to one unit per pattern, and its squared norms.

    Units $\mathrm{relu}(\frac{h_i}{\mu_0}\pm\frac12)$ differ by $b_i$ exactly where $|h_i|\ge\frac{\mu_0}2$: the
    plateaus absorb the leak; the last unit copies the constant. Then
    $\mathrm{relu}(\sum_i(2p_i-1)b_i+1-|p|)=1[b_{\mathcal I}=p]$.
    """
    slope = 2 * base * size / (base - 1)  # 1 / mu_0
    on_ones, on_constant = slope * (base**2 - 1) / (2 * size * base), slope * (base + 1) / (2 * size)
    w_1 = np.zeros((size + 2, 2 * size + 1))
    for half, units in ((0.5, slice(0, -1, 2)), (-0.5, slice(1, -1, 2))):
        w_1[:size, units] = slope * np.eye(size)
        w_1[size, units] = on_ones
        w_1[size + 1, units] = half - on_constant
    w_1[size + 1, -1] = 1
    patterns = points(size)
    sides = 2.0 * patterns.T - 1
    w_2 = np.concatenate([np.stack([sides, -sides], axis=1).reshape(2 * size, -1), 1 - patterns.sum(axis=1)[None]])
    squares = {
        "W_1": size * (2 * slope**2 + 2 * on_ones**2 + 2 * on_constant**2 + 0.5) + 1,
        "W_2": 2**size * (2 * size + size / 4 + (1 - size / 2) ** 2),
    }
    return w_1, w_2, squares


# --- Coefficients on CLS, the two bits and the support ---------------------------------------------------------------


def _on_support(size: int) -> Vector:
    return np.concatenate([np.zeros(3), np.ones(size)])


def _letter(size: int) -> Vector:
    """E_1: the bit itself."""
    return np.eye(size + 3)[2]


def _constant(size: int, cls_is_key: bool) -> Vector:
    return np.concatenate([[float(cls_is_key), 1, 1], np.zeros(size)])


def _levels(function: SparseFunction) -> Vector:
    levels = function.levels
    if levels is None:
        raise Refusal(
            "got a function that is not symmetric: this construction needs one that depends only on the number of ones "
            "in its support. Use any_function."
        )
    return levels


def _even_gamma(function: SparseFunction, margin: float, cls_is_key: bool) -> float:
    """The sharpness at which s times the leak is at most the margin; a constant needs none."""
    size = function.support_size
    others = function.context_length - size + cls_is_key
    return log_or_zero((1 / margin - 1 / size) * others) if size else 0.0
