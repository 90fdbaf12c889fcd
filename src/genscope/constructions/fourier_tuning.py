r"""Rescalings of the Fourier construction that leave its function alone: the paper's balance, and the least product.

Source: lintilhac2026, Appendix D (balance of E, b against F); the tuned variant is ours.
Departures: the paper's "a single c reduces norm and trace" is false where $\|\nabla_F\|^2\ge\|\nabla_{E,b}\|^2$.
Guarantee: the minimum is global. Squared norm and trace are sums of positive monomials in the scales, so their
logarithms, and the sum of these, are convex in the logarithms of the scales (geometric programming).
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from jaxtyping import Float

from genscope.constructions._fourier_closed_forms import GRADIENT_PARTS, NORM_POWERS, norms
from genscope.constructions.fourier_construction import FourierConstruction, Scales
from genscope.refusal import Refusal

Objective = Literal["norm", "trace", "product"]
Monomials = tuple[Float[np.ndarray, " _"], Float[np.ndarray, "_ 3"]]  # logarithms of coefficients; powers


def balance(construction: FourierConstruction, objective: Objective = "product") -> FourierConstruction:
    r"""The scale c of $(E,b,F)\to(cE,cb,F/c)$ with the least squared norm, trace or product of the two.

    For the norm it is $(\|F\|^2/(\|E\|^2+\|b\|^2))^{1/4}$, for the trace $(\|\nabla_{E,b}\|^2/\|\nabla_F\|^2)^{1/4}$.
    """
    if objective not in ("norm", "trace", "product"):
        raise Refusal(f"balance got {objective=}: objectives are norm, trace and product. Choose one of them.")
    sums = {"norm": [_norm], "trace": [_trace], "product": [_norm, _trace]}[objective]
    return construction.rescaled(_least([each(construction) for each in sums], construction.scales, free=(0,)))


def tuned(construction: FourierConstruction) -> FourierConstruction:
    """All three scales with the least product of squared norm and trace."""
    return construction.rescaled(_least([_norm(construction), _trace(construction)], construction.scales, (0, 1, 2)))


def _norm(construction: FourierConstruction) -> Monomials:
    found = {name: value for name, value in norms(construction.plan, factored=construction.factored).items() if value}
    return np.log([*found.values()]), np.array([NORM_POWERS[name] for name in found], float)


def _trace(construction: FourierConstruction) -> Monomials:
    mean = construction.gradients.mean
    full = np.array(
        [construction.parameterisation == "full" or block != "F_pos" for block, _ in GRADIENT_PARTS.values()]
    )
    powers = np.array([powers for _, powers in GRADIENT_PARTS.values()], float)
    return np.log(mean[full & (mean > 0)]), powers[full & (mean > 0)]


def _least(sums: Sequence[Monomials], start: Scales, free: Sequence[int]) -> Scales:
    """The free scales at which the product of the sums of monomials is least."""
    from scipy import optimize  # slow to load, and every command that lists studies loads this module

    logs = np.log(start)

    def at(x: Float[np.ndarray, " free"]) -> tuple[float, Float[np.ndarray, " free"]]:
        logs[list(free)] = x
        value, slope = 0.0, np.zeros(len(free))
        for coefficients, powers in sums:
            terms = coefficients + powers @ logs
            total = np.logaddexp.reduce(terms)
            value += float(total)
            slope += np.exp(terms - total) @ powers[:, list(free)]
        return value, slope

    logs[list(free)] = optimize.minimize(at, logs[list(free)], jac=True, method="BFGS", options={"gtol": 1e-10}).x
    return Scales(*np.exp(logs).tolist())
