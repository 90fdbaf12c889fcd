r"""How far a loss may stray below its mean: three treatments of the constant $C$ in PAC-Bayes bounds.

The theorem needs $\mathbb Ee^{t(R(\theta)-\ell(\theta,x))}\le e^{t^2C^2/2}$ for all $t>0$ and almost all $\theta$ of
the *prior*, most of which predict nothing: near $\theta=0$ the squared loss of a centered target is $y^2$, and $t\to0$
asks for $C^2\ge\operatorname{Var}y^2$.

Source: lintilhac2026, Appendices A and E.2 (fit $C$ between .01 and .1 to the losses of trained networks).
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
from genscope.refusal import Refusal

_LEAST = 0.01  # of t times the largest deviation: for smaller t the variance decides, to 1 part in 300
_STEP, _FINE = 1.2, 16  # from one t to the next, and how many finer steps between two


def fitted_constant(losses: Sequence[float]) -> float:
    r"""The smallest $C$ with $\log\frac1N\sum_ie^{t(\ell_i-\bar\ell)}\le\frac{C^2t^2}2$ for all $t$, positive or not.

    With the largest deviation $M$ and the variance $v$: $t\to0$ asks for $C^2\ge v$, and to ask for more, $t$ must be
    below $\frac{2M}v$ in size. Between these ends a grid is looked through, finely about its best point, so $C$ is
    equivariant: losses that are a thousand times smaller have a thousandth of it.

    >>> round(fitted_constant([0.0, 1.0]), 3), round(fitted_constant([0.0, 0.001]), 6)  # half the range
    (0.5, 0.0005)
    """
    if len(losses) < 2 or not all(map(math.isfinite, losses)):
        raise Refusal(
            f"fitted_constant got {len(losses)} losses, {sum(map(math.isfinite, losses))} of them finite: it needs at "
            "least two, all finite. Give the losses of a trained model on fresh examples."
        )
    if min(losses) == max(losses):
        return 0.0
    unit = max(map(abs, losses))  # sums of losses over this stay finite
    mean = math.fsum(loss / unit for loss in losses) / len(losses)
    most = max(abs(loss / unit - mean) for loss in losses)
    apart = [(loss / unit - mean) / most for loss in losses]
    variance = math.fsum(each * each for each in apart) / len(apart)

    def square(rate: float) -> float:
        return 2 * _log_mean_exp(rate, apart) / rate**2

    steps = math.ceil(math.log(2 / variance / _LEAST, _STEP))
    best = max((sign * _LEAST * _STEP**step for step in range(steps + 1) for sign in (1, -1)), key=square)
    finer = (square(best * _STEP ** (step / _FINE)) for step in range(-_FINE, _FINE + 1))
    return unit * most * math.sqrt(max(variance, *finer))


def _log_mean_exp(rate: float, numbers: Sequence[float]) -> float:
    """For numbers of mean zero: what is left of a small rate keeps its digits."""
    if abs(rate) < 1:
        return math.log1p(math.fsum(math.expm1(rate * each) for each in numbers) / len(numbers))
    return log_sum(rate * each for each in numbers) - math.log(len(numbers))


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
