r"""From covering numbers to generalization, and from a bound to a sample size.

Source: edelman2022, Lemma 2.2, made explicit by Dudley's entropy integral and McDiarmid's inequality (both standard);
Anthony and Bartlett (1999), Theorem 10.1, for margins.
Guarantee: proved, with all constants; numerical integrals are upper sums.
"""

import math
from collections.abc import Callable
from typing import Annotated

from genscope.bounds._base import Bound
from genscope.bounds._logarithms import exp, log
from genscope.bounds._parameters import Choice, Number, checked, count, norm, positive
from genscope.refusal import Refusal

Samples = Annotated[float, count("sample size m")]
Confidence = Annotated[float, Number("probability 1 − δ with which the bound holds", high=1)]
PredictionRange = Annotated[float, positive("A, where |f| ≤ A on the sample")]
LossRange = Annotated[float, positive("range of the loss: it lies in [0, M]")]

_DUDLEY = "edelman2022, Lemma 2.2 (Dudley's integral)"


@checked
def rademacher(
    *,
    capacity: Annotated[float, norm("C, where log N(ε) ≤ C/ε² at every accuracy")],
    range: PredictionRange,
    samples: Samples,
) -> Bound:
    r"""Rademacher complexity of a class with log covering numbers at most C/ε² (edelman2022, Lemma 2.2).

    With $\alpha=3\sqrt{C/m}\le A$: $\hat{\mathcal R}\le4\alpha+\frac{12}{\sqrt m}\int_\alpha^A\frac{\sqrt C}\epsilon
    d\epsilon=12\sqrt{C/m}\,(1+\log\frac A\alpha)$, which is the least over $\alpha$; and always
    $\hat{\mathcal R}\le A$.
    """
    log_alpha = math.log(3) + (log(capacity) - log(samples)) / 2
    alpha = exp(log_alpha)
    terms = {"resolution": 4 * alpha, "entropy integral": 4 * alpha * (log(range) - log_alpha) if capacity else 0.0}
    if log_alpha > log(range) or sum(terms.values()) >= range:
        terms = {"range": range}
    return Bound("rademacher", terms, explicit=True, source=_DUDLEY, trivial=range)


_STEPS = 64  # of the grid per factor e: upper sums are within 1 % of the integral of 1/ε


@checked
def dudley(log_cover: Callable[[float], float], *, range: PredictionRange, samples: Samples) -> Bound:
    r"""Rademacher complexity from any covering numbers: `log_cover(epsilon)` in nats, not increasing in epsilon.

    $\hat{\mathcal R}\le\inf_\alpha4\alpha+\frac{12}{\sqrt m}\int_\alpha^A\sqrt{\log\mathcal N(\epsilon)}\,d\epsilon$.
    The integral is taken as an upper sum on a logarithmic grid, downwards; from where $\log\mathcal N\ge m/9$, smaller
    $\alpha$ cost more than they save.
    """
    root = exp(math.log(12) - log(samples) / 2)
    enough = exp(log(samples) - math.log(9))
    best, integral, alpha = (4.0 * range, 0.0), 0.0, float(range)
    while alpha > max(1e-9 * sum(best), 1e-12 * range):  # a class of one function would go on for ever
        lower = alpha * math.exp(-1 / _STEPS)
        nats = log_cover(lower)
        integral += root * math.sqrt(nats) * (alpha - lower)
        alpha = lower
        best = min(best, (4 * alpha, integral), key=sum)
        if nats >= enough:
            break
    terms = {"resolution": best[0], "entropy integral": best[1]} if sum(best) < range else {"range": range}
    return Bound("dudley", terms, explicit=True, source=_DUDLEY, trivial=range)


@checked
def generalization(
    *,
    rademacher: Annotated[float, norm("Rademacher complexity of the class")],
    lipschitz: Annotated[float, norm("Lipschitz constant of the loss in the prediction")] = 1.0,
    range: LossRange = 1.0,
    samples: Samples,
    confidence: Confidence = 0.95,
    two_sided: Annotated[bool, Choice("bound the absolute value of the difference")] = False,
) -> Bound:
    r"""Population risk minus empirical risk, for all functions of the class at once (edelman2022, Lemma 2.2).

    With probability $1-\delta$: $2L\hat{\mathcal R}+3M\sqrt{\log(2/\delta)/(2m)}$ for losses in
    $[0,M]$; with $\log(4/\delta)$ for the absolute value.
    """
    tail = log(4 if two_sided else 2) - math.log1p(-confidence)
    terms = {
        "complexity": exp(math.log(2) + log(lipschitz) + log(rademacher)),
        "confidence": exp(math.log(3) + log(range) + (log(tail / 2) - log(samples)) / 2),
    }
    return Bound("generalization", terms, explicit=True, source="edelman2022, Lemma 2.2", trivial=range)


@checked
def margin(
    *,
    log_cover: Annotated[float, norm("log N(ε) in nats on 2m examples, at some ε below half the margin")],
    empirical_error: Annotated[float, Number("share of the sample within the margin", high=1, closed=(True, True))],
    samples: Samples,
    confidence: Confidence = 0.95,
) -> Bound:
    r"""Probability of error, for all functions of the class at once (Anthony and Bartlett 1999, Theorem 10.1).

    With probability $1-\delta$:
    $\widehat{\mathrm{er}}_\gamma+\sqrt{\frac8m(\log\mathcal N_\infty(\gamma/2,2m)+\log\frac2\delta)}$.
    The covers of this theorem are strict, hence $\epsilon<\gamma/2$.
    """
    tail = math.log(2) - math.log1p(-confidence)
    terms = {
        "empirical error": empirical_error,
        "complexity": exp((math.log(8) + log(log_cover + tail) - log(samples)) / 2),
    }
    source = "anthony1999, Theorem 10.1"
    return Bound("margin", terms, explicit=True, source=source, trivial=1.0)


def sample_size(bound_of_samples: Callable[[int], Bound | float], target: float) -> int | None:
    """The smallest sample size whose bound is at most `target`, by doubling and bisection; None if 2^1000 are too few.

    A bound that rises for a while is read as its running minimum: more samples can be left aside.

    >>> sample_size(lambda samples: rademacher(capacity=1.0, range=1.0, samples=samples), 0.5)
    12226
    """
    if not target > 0:
        raise Refusal(
            f"sample_size got target={target!r}: the bound approaches 0 but never reaches it. Choose a target above 0."
        )

    def reached(samples: int) -> bool:
        bound = bound_of_samples(samples)
        return (bound.value if isinstance(bound, Bound) else bound) <= target

    high = next((2**power for power in range(1001) if reached(2**power)), None)
    if high is None:
        return None
    low = high // 2  # not reached, or 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high
