r"""A Transformer with explicit weights for every sum of at most T Fourier components.

Source: lintilhac2026, Appendix B.
Departures: those of `models.lintilhac2026`, `_fourier_plan` and `_fourier_closed_forms`; the variant "tuned" is ours.
Guarantee: the model errs by at most `error`, up to rounding, on every input; `verify_fourier` checks it.
"""

from typing import Literal

from jaxtyping import Array, Key

from genscope.constructions._fourier_closed_forms import Gradients
from genscope.constructions._fourier_plan import Signed, Units, plan
from genscope.constructions.fourier_construction import FourierConstruction
from genscope.constructions.fourier_tuning import tuned as least_product
from genscope.fourier.walsh import WalshFunction
from genscope.refusal import Refusal


def fourier_components(
    function: WalshFunction,
    *,
    variant: Literal["full", "minimal", "tuned"] = "full",
    leakage: float = 0.5,
    inactive: float | None = None,
    signed: Signed = "two_heads",
    units: Units = "even",
    key: Key[Array, ""] | None = None,
) -> FourierConstruction:
    r"""Weights for a function in its own basis ($\varphi$, or $\chi$ with values twice as large and a bias).

    "full" and "minimal" are the paper's weights; in "minimal" the perceptron has parameters for the bit's coordinate
    alone. "tuned" has the full parameters, rescaled to the least product of squared norm and trace. `leakage` is
    $\rho$, `inactive` is $\tau$ (1e-6, "tuned" 1e-3). The perceptron of Theorem 9 has `units` for the even numbers of
    ones, as everywhere in genscope, or for "all", as its text may be read; the function is the same. The key serves
    expectations over more inputs than can be listed.

    >>> built = fourier_components(WalshFunction(6, ((0, 1), (2, 3)), (0.6, 0.8), basis="phi"))
    >>> built.parameters, round(built.norm_squared["total"], 6), round(built.trace, 6)
    (400, 1378.157242, 431.066445)
    """
    if variant not in ("full", "minimal", "tuned"):
        raise Refusal(
            f"fourier_components got {variant=}: variants are full and minimal (the paper's weights) and tuned (ours). "
            "Choose one of them."
        )
    tuned = variant == "tuned"
    used = (1e-3 if tuned else 1e-6) if inactive is None else inactive
    planned = plan(function, leakage=leakage, inactive=used, signed=signed, units=units)
    if not tuned:
        return FourierConstruction(function, planned, Gradients(planned, key), variant)
    planned = planned.centred()
    built = FourierConstruction(function, planned, Gradients(planned, key), factored=True)
    return least_product(built) if planned.sparsity else built  # a constant has a trace that no scale changes
