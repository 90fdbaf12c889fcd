r"""How far a loss may stray below its mean: three treatments of the constant $C$ in PAC-Bayes bounds.

The theorem needs $\mathbb Ee^{t(R(\theta)-\ell(\theta,x))}\le e^{t^2C^2/2}$ for all $t>0$ and almost all $\theta$ of
the *prior*, most of which predict nothing: near $\theta=0$ the squared loss of a centred target is $y^2$, and $t\to0$
asks for $C^2\ge\operatorname{Var}y^2$.

Source: lintilhac2026, Section 3 (fits $C$ between .01 and .1 to the losses of trained networks).
Departures: the paper's constant is that of one trained network and is a heuristic here; the other two are proved.
Guarantee: `clipped_constant` for every prior; `one_sided_constant` for priors of bounded support, to which a Gaussian
does not belong; `fitted_constant` none.
"""

import math
from collections.abc import Sequence
from typing import Annotated

from genscope.bounds._logarithms import log_sum
from genscope.bounds._parameters import checked, norm
from genscope.bounds.randomised import Clip

_RATES = [10 ** (-1 + 3 * step / 39) for step in range(40)]  # t from 0.1 to 100, on both sides


def fitted_constant(losses: Sequence[float]) -> float:
    r"""The smallest $C$ with $\log\frac1N\sum_ie^{t(\ell_i-\bar\ell)}\le\frac{C^2t^2}2$ for $\pm t$ from 0.1 to 100.

    >>> round(fitted_constant([0.0, 1.0]), 3)  # half the range
    0.5
    """
    if len(losses) < 2 or not all(map(math.isfinite, losses)):
        raise ValueError(
            f"fitted_constant got {len(losses)} losses, {sum(map(math.isfinite, losses))} of them finite: it needs two "
            "or more, all finite. Give the losses of a trained model on fresh examples."
        )
    mean = math.fsum(losses) / len(losses)
    apart = [loss - mean for loss in losses]
    size = math.log(len(losses))
    squares = (2 * (log_sum(t * each for each in apart) - size) / t**2 for rate in _RATES for t in (rate, -rate))
    return math.sqrt(max(0.0, *squares))


@checked
def one_sided_constant(second_moment: Annotated[float, norm("largest E ℓ² over the support of the prior")]) -> float:
    r"""$C=\sup_\theta\sqrt{\mathbb E\ell^2}$, for losses that are not negative.

    Proof. $e^{-u}\le1-u+\frac{u^2}2$ for $u\ge0$, so $\mathbb Ee^{-t\ell}\le1-tR+\frac{t^2}2\mathbb E\ell^2\le
    e^{-tR+t^2\mathbb E\ell^2/2}$.
    """
    return math.sqrt(second_moment)


@checked
def clipped_constant(clip: Clip) -> float:
    r"""$C=\frac B2$ for the loss $\min(\ell,B)$ (Hoeffding): the bound is then one of the clipped risk."""
    return clip / 2
