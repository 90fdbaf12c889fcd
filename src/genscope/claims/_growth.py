"""How a positive quantity grows along an axis: its log-log exponent, and the interaction of two axes.

Source: MacKinnon and White 1985 (HC3, intervals that allow unequal spreads).
Guarantee: intervals are approximate: Student's with HC3 standard errors, for independent values.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # whose parts load on first use: a listing of studies needs none of them
from jaxtyping import Float


@dataclass(frozen=True)
class Coefficient:
    """A least-squares coefficient and its interval; None where there are too few values."""

    value: float | None
    low: float | None = None
    high: float | None = None

    @property
    def interval(self) -> list[float | None]:
        """Both ends."""
        return [self.low, self.high]


def exponent(
    groups: Sequence[tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]], *, confidence: float
) -> Coefficient:
    """The common slope of log value in log x over groups (x, values) that have levels of their own.

    A group with one x tells nothing of the slope and is left out.
    """
    used = [(np.log(x), np.log(values)) for x, values in groups if len(np.unique(x)) > 1]
    if not used:
        return Coefficient(None)
    x, y = (np.concatenate(parts) for parts in zip(*used, strict=True))
    member = np.repeat(np.arange(len(used)), [len(each) for each, _ in used])
    return _coefficient(np.column_stack([x, np.eye(len(used))[member]]), y, confidence)


def interaction(
    first: Float[np.ndarray, " n"],
    second: Float[np.ndarray, " n"],
    values: Float[np.ndarray, " n"],
    *,
    confidence: float,
) -> Coefficient:
    """The coefficient of the product of two axes beside both: above 0, each raises the other's slope."""
    if len(np.unique(first)) < 2 or len(np.unique(second)) < 2:
        return Coefficient(None)
    one, other = first - first.mean(), second - second.mean()
    return _coefficient(np.column_stack([one * other, one, other, np.ones_like(one)]), values, confidence)


def _coefficient(design: Float[np.ndarray, "n p"], y: Float[np.ndarray, " n"], confidence: float) -> Coefficient:
    """The first coefficient."""
    rows = np.linalg.pinv(design)
    value, freedom = float(rows[0] @ y), len(y) - np.linalg.matrix_rank(design)
    if freedom < 1:
        return Coefficient(value)
    leverage = np.einsum("np,pn->n", design, rows)
    residual = (y - design @ (rows @ y)) / np.maximum(1 - leverage, 1e-9)
    reach = float(scipy.special.stdtrit(freedom, (1 + confidence) / 2)) * float(np.linalg.norm(rows[0] * residual))
    return Coefficient(value, value - reach, value + reach)
