r"""One accuracy, several covers: how much of it each may spend.

A class that is put together from parts has accuracy $\epsilon$ if part $j$ is covered to $\epsilon_j$ with
$\sum_ja_j\epsilon_j=\epsilon$; the sizes of the covers multiply, so their logarithms add. Every split is a valid bound.
In terms of the budgets $\beta_j=a_j\epsilon_j$, a cover is known by its *radius*, the budget from which on one element
suffices: then $\kappa_j=(\text{radius}_j/\beta_j)^2$.

Source: edelman2022, Theorem 4.2 and Corollary 4.5.
Departures: the closed form serves as a start; then the best of a fixed family of splits is taken.
Guarantee: `split_cubic` is the exact minimum of its model. `allocate` gives a valid bound that is monotone in accuracy
and points, because its splits depend on neither the points nor (but for the cap at the radius) the accuracy; it is
within about 1 % of the best split of two covers, and within a few of the best of more.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from genscope.bounds._logarithms import exp, log, log_sum
from genscope.refusal import Refusal

_NEAR, _FAR = 0.4, 4.0  # tilts: a logarithmic factor of 3 between two covers tilts by log(3) / 3
_EFFORT = 400  # steps of the finest grid


class Split(NamedTuple):
    """The least value of a sum, and the accuracies that attain it."""

    value: float
    accuracies: tuple[float, ...]


def split_cubic(constants: Sequence[float], coefficients: Sequence[float], epsilon: float) -> Split:
    r"""Minimize $\sum_jC_j/\epsilon_j^2$ subject to $\sum_ja_j\epsilon_j=\epsilon$.

    The minimum is $(\sum_j(a_j^2C_j)^{1/3})^3/\epsilon^2$, at $\epsilon_j\propto(C_j/a_j)^{1/3}$ (Lagrange).

    >>> round(split_cubic([1, 8], [1, 1], 0.5).value, 9)
    108.0
    """
    positive = all(map(math.isfinite, [*constants, *coefficients, epsilon])) and min([*constants, *coefficients]) > 0
    if not positive or epsilon <= 0 or len(constants) != len(coefficients):
        raise Refusal(
            f"split_cubic got constants={constants!r}, coefficients={coefficients!r}, epsilon={epsilon!r}: all must "
            "be positive, with one constant per coefficient. Leave out covers that cost nothing."
        )
    logs = [(2 * log(a) + log(c)) / 3 for a, c in zip(coefficients, constants, strict=True)]
    total = log_sum(logs)
    accuracies = (exp(log(epsilon) + x - total - log(a)) for x, a in zip(logs, coefficients, strict=True))
    return Split(exp(3 * total - 2 * log(epsilon)), tuple(accuracies))


class Cover(NamedTuple):
    """A cover, or several equal ones that share a budget equally."""

    name: str
    kind: str
    """Covers of a kind move together when the split is varied."""
    log_radius: float
    """Logarithm of the budget from which on one element suffices (for each of the copies)."""
    size: Callable[[float], float]
    """Nats, by log kappa."""
    copies: int = 1
    wide: bool = False
    """It may cost far less than the others at the same kappa, as a cover of a scalar or of few points does."""


def allocate(covers: Sequence[Cover], log_epsilon: float) -> Mapping[str, float]:
    r"""Nats of each cover, for the best split of the family.

    By `split_cubic` a share is proportional to radius^(2/3); logarithmic factors tilt that by a few tenths. The
    family has shares $\min(\text{radius},\theta e^{\text{tilt}}\text{radius}^{2/3})$, with tilts by kind from a grid
    and $\theta$ such that the budget is used up; an infinite tilt makes a kind trivial.
    """
    live = [cover for cover in covers if cover.log_radius > -math.inf]
    kinds = sorted(dict.fromkeys((cover.wide, cover.kind) for cover in live))
    copies = [math.log(cover.copies) for cover in live]
    caps = [more + cover.log_radius - log_epsilon for more, cover in zip(copies, live, strict=True)]
    best: tuple[float, list[float]] | None = None
    for tilts in _tilts([wide for wide, _ in kinds], len(live)):
        weights = [
            more / 3 + 2 / 3 * cap + tilts[kinds.index((cover.wide, cover.kind))]
            for more, cap, cover in zip(copies, caps, live, strict=True)
        ]
        shares = _fill(weights, caps)
        if shares is None:
            continue
        sizes = [c.copies * c.size(2 * (cap - share)) for c, cap, share in zip(live, caps, shares, strict=True)]
        if best is None or sum(sizes) < best[0]:
            best = sum(sizes), sizes
    sizes = best[1] if best else [math.inf] * len(live)
    return {cover.name: 0.0 for cover in covers} | {cover.name: size for cover, size in zip(live, sizes, strict=True)}


def _tilts(wide: Sequence[bool], covers: int) -> Iterator[tuple[float, ...]]:
    """Tilts of each kind; only differences between finite ones matter, so the first of these is 0.

    The grid is as fine as time allows: with few covers, one update more or less is seen in the sum.
    """
    if not wide:
        yield ()
        return
    first, *others = wide
    if len(others) == 1:
        grids = [_grid(max(8, _EFFORT // covers), wide=True)]
    else:
        steps = max(1, _EFFORT // (100 if len(others) == 2 else 200))
        grids = [_grid(steps, wide=each or first) for each in others]
    yield from ((0.0, *rest) for rest in itertools.product(*grids))
    yield from ((math.inf, *rest) for rest in _tilts(others, covers))


def _grid(steps: int, *, wide: bool) -> list[float]:
    """Equal steps near 0; if wide, equal ratios beyond; and infinity."""
    near = [_NEAR * step / steps for step in range(-steps, steps + 1)]
    tail = max(4, steps // 4)
    far = [_NEAR * (_FAR / _NEAR) ** (step / tail) for step in range(1, tail + 1)] if wide else []
    return [*near, *far, *(-tilt for tilt in far), math.inf]


def _fill(log_weights: Sequence[float], log_caps: Sequence[float]) -> list[float] | None:
    """Logarithms of shares of 1, in proportion to the weights but none above its cap; None if the caps of those with
    infinite weight alone exceed 1.
    """
    shares = list(log_caps)
    free = {i for i, weight in enumerate(log_weights) if weight < math.inf}
    spent = sum(exp(cap) for i, cap in enumerate(log_caps) if i not in free)
    while free:
        if spent >= 1:
            return None
        level = math.log1p(-spent) - log_sum(log_weights[i] for i in free)
        full = {i for i in free if level + log_weights[i] >= log_caps[i]}
        if not full:
            for i in free:
                shares[i] = level + log_weights[i]
            break
        free -= full
        spent += sum(exp(log_caps[i]) for i in full)
    return shares if spent <= 1 else None
