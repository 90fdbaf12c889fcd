"""Degree, sparsity, relevant bits and components, read off a whole table of values.

Source: lintilhac2026, Equation (1) (Fourier–Walsh expansion).
Guarantee: exact up to rounding; with a tolerance E, the fewest components that leave out at most the share E of the
energy, which is the variance.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Num, Shaped

from genscope.fourier.transform import walsh_coefficients
from genscope.fourier.walsh import WalshFunction

LISTED = 4096  # components of a function, the largest, if it has more


@dataclass(frozen=True)
class Tabled:
    """What a table says; `function` holds the largest components, and `left_out` is the share of the others' energy."""

    degree: int
    sparsity: int
    relevant: tuple[int, ...]
    function: WalshFunction
    left_out: float


def read_table(
    table: Shaped[np.ndarray, " entries"],
    variables: tuple[int, ...],
    bits: int,
    *,
    resolution: float,
    tolerance: float = 0.0,
) -> Tabled:
    """The function of `bits` bits whose values at all inputs of the variables, the first fastest, are the table."""
    coefficients: Num[np.ndarray, " sets"] = walsh_coefficients(table.astype(np.float64))
    coefficients[np.abs(coefficients) <= resolution] = 0.0
    order = 1 + np.argsort(-np.abs(coefficients[1:]), kind="stable")  # the constant is never left out
    tails = np.append(np.cumsum(coefficients[order[::-1]] ** 2)[::-1], 0.0)  # energy from each component on
    energy = float(tails[0])
    kept = order[: int((tails > tolerance * energy).sum())]
    listed = kept[:LISTED].tolist()
    found = {_named(each, variables): float(coefficients[each]) for each in listed}
    supports = tuple(sorted(found))
    return Tabled(
        int(np.bitwise_count(kept).max(initial=0)),
        len(kept),
        _named(int(np.bitwise_or.reduce(kept, initial=0)), variables),
        WalshFunction(bits, supports, tuple(found[support] for support in supports), constant=float(coefficients[0])),
        float(tails[len(listed)]) / energy if energy else 0.0,
    )


def _named(number: int, variables: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(variable for place, variable in enumerate(variables) if number >> place & 1))
