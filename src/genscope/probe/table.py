"""Degree, sparsity, relevant bits and components, read off a whole table of values.

Source: lintilhac2026, Section 2 (Fourier–Walsh expansion).
Departures: None.
Guarantee: exact up to rounding; with a tolerance E, the fewest components that leave out an energy of at most E.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Num, Shaped

from genscope.fourier.transform import walsh_coefficients
from genscope.fourier.walsh import WalshFunction

LISTED = 4096  # components of a function, the largest, if it has more


@dataclass(frozen=True)
class Tabled:
    """What a table says; `function` holds the largest components, and `left_out` the energy of all others."""

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
    order = 1 + np.argsort(np.abs(coefficients[1:]))  # the constant is never left out
    energies = np.cumsum(coefficients[order] ** 2)
    dropped = order[energies <= tolerance]
    left_out = float(energies[len(dropped) - 1]) if len(dropped) else 0.0
    coefficients[dropped] = 0.0
    sets = np.flatnonzero(coefficients)
    largest = sets[np.argsort(-np.abs(coefficients[sets]), kind="stable")][:LISTED]
    left_out += float(np.sum(coefficients[sets] ** 2) - np.sum(coefficients[largest] ** 2)) if len(sets) > LISTED else 0
    found = {_named(each, variables): float(coefficients[each]) for each in largest.tolist()}
    supports = tuple(sorted(support for support in found if support))
    return Tabled(
        int(np.bitwise_count(sets).max(initial=0)),
        int((sets > 0).sum()),
        _named(int(np.bitwise_or.reduce(sets, initial=0)), variables),
        WalshFunction(bits, supports, tuple(found[support] for support in supports), constant=found.get((), 0.0)),
        left_out,
    )


def _named(number: int, variables: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(variable for place, variable in enumerate(variables) if number >> place & 1))
