"""Fourier analysis on the cube straight from the definitions: no transform, Python integers, one division."""

from itertools import product


def dim_of(table) -> int:
    return len(table).bit_length() - 1


def sums(table) -> list[int]:
    """The sum of f chi_S over all points for every set S, sets numbered by their bits; f has integer values."""
    values = [int(value) for value in table]
    return [sum(v * (-1) ** (x & s).bit_count() for x, v in enumerate(values)) for s in range(len(values))]


def degree(table) -> int:
    return max((s.bit_count() for s, total in enumerate(sums(table)) if total), default=0)


def sparsity(table) -> int:
    return sum(total != 0 for total in sums(table)[1:])


def level_weights(table) -> list[float]:
    weights = [0] * (dim_of(table) + 1)
    for s, total in enumerate(sums(table)):
        weights[s.bit_count()] += total**2
    return [weight / len(table) ** 2 for weight in weights]


def influences(table) -> list[float]:
    """A quarter of the mean squared difference between neighbours."""
    values = [int(value) for value in table]
    neighbours = ([values[x ^ 1 << i] for x in range(len(values))] for i in range(dim_of(table)))
    return [sum((a - b) ** 2 for a, b in zip(values, other, strict=True)) / (4 * len(table)) for other in neighbours]


def noise_sensitivity(table, flip: float) -> float:
    """A quarter of the mean squared difference between an input and its noisy copy, over all pairs."""
    dim, total = dim_of(table), 0.0
    for x, mask in product(range(len(table)), repeat=2):
        flips = mask.bit_count()
        total += flip**flips * (1 - flip) ** (dim - flips) * (int(table[x]) - int(table[x ^ mask])) ** 2 / 4
    return total / len(table)
