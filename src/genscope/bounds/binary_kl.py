r"""Divergence of two coins, and the largest chance that lies within a given divergence of a frequency.

$\mathrm{kl}(p\|q)=p\log\frac pq+(1-p)\log\frac{1-p}{1-q}$. A mean of $m$ independent values in $[0,1]$ with expectation
$q$ has $\mathbb P(\hat p\le q,\ \mathrm{kl}(\hat p\|q)\ge t)\le e^{-mt}$ (Chernoff), so that an inverse turns what was
seen into what may be true.

Source: langford2005 (the inverse); Chernoff (1952).
Guarantee: exact up to rounding, from 0 to 1 and for every budget; the inverse is approached from above.
"""

import math
import sys
from typing import Annotated

from genscope.bounds._parameters import Number, checked, norm

Share = Annotated[float, Number("a mean of values in [0, 1]", high=1, closed=(True, True))]

_STEPS = 60  # a start is at most 1e8 times too far, and far away a step halves the distance


@checked
def binary_kl(p: Share, q: Share) -> float:
    r"""$\mathrm{kl}(p\|q)$, with $0\log0=0$; infinite where $q$ excludes what $p$ allows.

    >>> round(binary_kl(0.5, 0.25), 6) == round(0.5 * math.log(4 / 3), 6)
    True
    """
    return _divergence(p, 1 - p, q - p, 1 - q) if p <= q else _divergence(1 - p, p, p - q, q)


@checked
def kl_inverse(p: Share, budget: Annotated[float, norm("largest divergence in nats")]) -> float:
    r"""The largest $q\ge p$ with $\mathrm{kl}(p\|q)\le$ budget; not decreasing in either argument.

    Newton's method on a convex increasing function, from above, hence never below the root. Start:
    $\mathrm{kl}(p\|q)\ge\frac{(q-p)^2}{2q}$ gives $q-p\le\sqrt{2pb}+2b$, and leaving out $p\log\frac1q$ gives
    $1-q\ge(1-p)\exp\frac{p\log p-b}{1-p}$.

    >>> kl_inverse(0.0, math.log(2)), kl_inverse(1.0, 0.1), kl_inverse(0.3, 0.0)
    (0.5, 1.0, 0.3)
    """
    if p == 0 or p == 1:
        return p - math.expm1(-budget) if p == 0 else 1.0
    near = math.sqrt(2 * p) * math.sqrt(budget) + 2 * budget
    rise = min(near, (p - 1) * math.expm1((p * math.log(p) - budget) / (1 - p)))
    for _ in range(_STEPS):
        rest = 1 - p - rise
        excess = _divergence(p, 1 - p, rise, rest) - budget
        if not 0 < excess < math.inf:
            break
        rise -= excess * ((p + rise) / rise) * rest
    return min(1.0, p + rise)


def _divergence(p: float, other: float, rise: float, rest: float) -> float:
    r"""$\mathrm{kl}(p\|q)$ at $q=p+d$, from $1-p$ and $1-q$ too: $\frac{d^2}q+p\phi(\frac dq)-(1-p)\phi(\frac d{1-p})$.

    With $\phi(f)=\log(1-f)+f$ the first orders, which cancel, are gone: a small divergence keeps its digits.
    """
    if rise == 0:
        return 0.0
    if rest <= 0:
        return math.inf
    q = p + rise
    kept = p * _log_less(p, q, rise) if p else 0.0
    return rise * (rise / q) + kept - other * _log_less(rest, other, rise)


def _log_less(part: float, whole: float, fall: float) -> float:
    r"""$\log\frac{\rm part}{\rm whole}+\frac{\rm fall}{\rm whole}$, where `part` is `whole` less `fall`."""
    share = fall / whole
    if share < 1e-2:  # the series: its tenth term is below the last digit
        return -sum(share**power / power for power in range(2, 10))
    if share < 0.5:
        return math.log1p(-share) + share
    ratio = part / whole
    # A quotient below the smallest normal number has few digits left.
    return (math.log(ratio) if ratio >= sys.float_info.min else math.log(part) - math.log(whole)) + share
