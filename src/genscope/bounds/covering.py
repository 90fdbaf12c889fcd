r"""Covering numbers of linear maps on given points: logarithms, in nats.

$\mathcal N_\infty(\epsilon)$ is the least number of functions such that every function of the class agrees with one of
them up to $\epsilon$ on all $N$ points. With $\kappa=(B_WB_X/\epsilon)^2$ the zero function alone is a cover if
$\kappa\le1$, since $\|Wx\|\le\|W^\top\|_{2,1}\|x\|$.

Source: edelman2022, Lemma 4.6 and its scalar case, which is Theorem 4 of Zhang (2002); the explicit forms are proved
here, constructively: `genscope.constructions.perceptron_encode` finds the element of the cover.
Departures: covers are external (their elements may leave the class) except where `internal` is asked for. That serves
every use in this package: compositions need the norms of the true weights only, and Dudley's chaining and the margin
bound measure distances from the true function only.
Guarantee: explicit forms are proved, and round against themselves; order forms hold up to a constant that is not known.
"""

import math
from typing import Annotated

from genscope.bounds._base import Bound
from genscope.bounds._logarithms import exp, log, log_multisets, softplus
from genscope.bounds._parameters import (
    Choice,
    Constant,
    Epsilon,
    Form,
    InputNorm,
    Number,
    Points,
    WeightNorm,
    checked,
    count,
)
from genscope.refusal import Refusal

RATIOS = (1.05, 1.1, 1.25, 1.5, 2.0)
_ROUNDING = 1 + 1e-12  # kappa is known to so much; a whole number just missed is taken as reached


# --- Sizes, by kappa -------------------------------------------------------------------------------------------------


def updates(log_kappa: float, ratio: float = 1.0) -> float:
    r"""$\lfloor r\kappa\rfloor$: there are fewer than $r\kappa$ updates, hence no more than this."""
    most = ratio * exp(log_kappa) * _ROUNDING
    return most if math.isinf(most) else float(math.floor(most))


def linear_size(log_kappa: float, log_points: float) -> float:
    r"""$\log\binom{2N+K}K$ with $K=\lfloor\kappa\rfloor$, and 0 if $\kappa\le1$."""
    return log_multisets(math.log(2) + log_points, updates(log_kappa)) if log_kappa > 0 else 0.0


def matrix_size(log_kappa: float, log_cells: float, ratio: float | None = None) -> float:
    r"""$\log\binom{A+K}K$ with $K=\lfloor r\kappa\rfloor$ and $A=2d_1NL$, where `log_cells` is $\log d_1N$.

    There are $L=1+\lfloor\log_r(r\kappa)\rfloor$ scales. Without a ratio $r$, the best of a few is taken.
    """
    if log_kappa <= 0:
        return 0.0
    best = math.inf
    for r in RATIOS if ratio is None else (ratio,):
        scales = 2 + math.floor(log_kappa / math.log(r) * _ROUNDING)
        best = min(best, log_multisets(math.log(2 * scales) + log_cells, updates(log_kappa, r)))
    return best


# --- Theorems --------------------------------------------------------------------------------------------------------


@checked
def linear_cover(
    *,
    weight_norm: WeightNorm,
    input_norm: InputNorm,
    epsilon: Epsilon,
    points: Points,
    form: Form = "explicit",
    constant: Constant = None,
    internal: Annotated[bool, Choice("count a cover by members of the class")] = False,
) -> Bound:
    r"""Log covering number of linear functions of bounded norm (after Zhang 2002).

    The class is $x\mapsto w\cdot x$, $\|w\|_2\le B_W$, on $N$ points with $\|x\|\le B_X$.
    Explicit: $\log\mathcal N_\infty\le\log\binom{2N+K}K\le K\log(2N+1)$ with $K=\lfloor\kappa\rfloor$.
    Order: $c_0\,\kappa\log(B_XB_WN/\epsilon)$.

    Proof. Start at $\hat w=0$. While some point has $|(w-\hat w)\cdot x|>\epsilon$, take the first and add
    $\eta\,\mathrm{sign}((w-\hat w)\cdot x)\,x$ to $\hat w$, $\eta=\epsilon/B_X^2$. This lowers $\|w-\hat w\|^2$ by more
    than $2\eta\epsilon-\eta^2B_X^2=\epsilon^2/B_X^2$, so there are fewer than $\kappa$ updates, and $\hat w$ is known
    from the multiset of signed points. With a projection on the ball of radius $B_W$ after each update the argument
    stands and $\hat w$ is in the class, but depends on the order: $K\log(2N+1)$ (`internal`).
    """
    log_kappa = 2 * (log(weight_norm) + log(input_norm) - log(epsilon))
    if form == "order":
        refuse_options("linear_cover", "order", internal=internal or None)
        size = order(log_kappa, log_kappa / 2 + log(points), constant) if log_kappa > 0 else 0.0
        return Bound("linear-cover", {"cover": size}, explicit=False, source="zhang2002, in edelman2022, Section 4")
    refuse_options("linear_cover", "explicit", constant=constant)
    if internal and log_kappa > 0:
        size = updates(log_kappa) * softplus(math.log(2) + log(points))
    else:
        size = linear_size(log_kappa, log(points))
    return Bound("linear-cover", {"cover": size}, explicit=True, source="zhang2002; constants by a perceptron cover")


@checked
def zhang_cover(*, weight_norm: WeightNorm, input_norm: InputNorm, epsilon: Epsilon, points: Points) -> Bound:
    r"""The same by the classical bound, as a yardstick (Zhang 2002, Theorem 4).

    $\log_2\mathcal N_\infty\le36\,\kappa\log_2(2\lceil4B_XB_W/\epsilon+2\rceil N+1)$ (recalled, not proved here).
    """
    log_ratio = log(weight_norm) + log(input_norm) - log(epsilon)
    if log_ratio <= 0:
        return Bound("zhang-cover", {"cover": 0.0}, explicit=True, source="zhang2002, Theorem 4")
    levels = 4 * exp(log_ratio) + 2
    log_levels = math.log(math.ceil(levels)) if math.isfinite(levels) else math.log(4) + log_ratio
    size = exp(math.log(36) + 2 * log_ratio) * softplus(math.log(2) + log_levels + log(points))
    return Bound("zhang-cover", {"cover": size}, explicit=True, source="zhang2002, Theorem 4")


@checked
def matrix_cover(
    *,
    weight_norm: Annotated[float, Number("bound of ‖Wᵀ‖₂,₁, the sum over outputs of ‖row‖", closed=(True, False))],
    input_norm: InputNorm,
    epsilon: Epsilon,
    outputs: Annotated[float, count("output dimension")],
    points: Points,
    form: Form = "explicit",
    constant: Constant = None,
    ratio: Annotated[float | None, Number("ratio r of scales (default: the best of a few)", low=1)] = None,
) -> Bound:
    r"""Log covering number of linear maps of bounded (2,1)-norm (edelman2022, Lemma 4.6).

    The class is $x\mapsto Wx$ with $d_1$ outputs, $\|W^\top\|_{2,1}\le B_W$, on $N$ points with $\|x\|\le B_X$.
    Explicit, for any ratio $r>1$: $\log\mathcal N_\infty\le\log\binom{A+K}K\le r\kappa\log(1+A)$ with
    $K=\lfloor r\kappa\rfloor$, $A=2d_1NL$, $L=1+\lfloor\log_r(r\kappa)\rfloor$. Order: $c_0\,\kappa\log(d_1N)$.

    Proof. Round the row norms $b_j$ up to $\tilde b_j=B_Wr^{-l_j}<rb_j$ and run the perceptron of `linear_cover` on row
    $j$ to accuracy $\tau_j$, $\tau_j^2=\epsilon^2\tilde b_j/(rB_W)$. Errors: $\sum_j\tau_j^2\le\epsilon^2$, since
    $\sum_jb_j\le B_W$. Updates: fewer than $b_j^2B_X^2/\tau_j^2\le rb_jB_WB_X^2/\epsilon^2$ in row $j$, than $r\kappa$
    in all. A row with an update has $\tilde b_jB_X\ge b_jB_X>\tau_j$, hence $r^{l_j}<r\kappa$: at most $L$ scales. The
    matrix $\hat W$ is known from the multiset of (row, point, sign, scale).
    """
    log_kappa = 2 * (log(weight_norm) + log(input_norm) - log(epsilon))
    log_cells = log(outputs) + log(points)
    if form == "order":
        refuse_options("matrix_cover", "order", ratio=ratio)
        size = order(log_kappa, log_cells, constant) if log_kappa > 0 else 0.0
    else:
        refuse_options("matrix_cover", "explicit", constant=constant)
        size = matrix_size(log_kappa, log_cells, ratio)
    return Bound("matrix-cover", {"cover": size}, explicit=form == "explicit", source="edelman2022, Lemma 4.6")


def order(log_leading: float, logarithm: float, constant: float | None) -> float:
    """An order: constant times leading factor times logarithm."""
    return exp(log(constant or 1.0) + log_leading + log(logarithm))


def refuse_options(caller: str, form: str, **options: object) -> None:
    """Refuse options that a form does not know, instead of ignoring them."""
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise Refusal(
            f"{caller} got {', '.join(given)} with form={form!r}: the {form} form does not use "
            f"{'it' if len(given) == 1 else 'them'}. Leave {'it' if len(given) == 1 else 'them'} out, or choose the "
            "other form."
        )
