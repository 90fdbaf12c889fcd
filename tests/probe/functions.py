"""Functions to probe, and a slow, obvious spectrum to compare with."""

import itertools

import numpy as np

from genscope.fourier import table_of_number
from genscope.fourier.walsh import WalshFunction


def spectrum(values, dim):
    """Fourier coefficients by the definition, with sets as tuples; values are listed with bit 0 fastest."""
    sets = [s for size in range(dim + 1) for s in itertools.combinations(range(dim), size)]
    inputs = [tuple((number >> j) & 1 for j in range(dim)) for number in range(2**dim)]
    means = {s: sum(v * (-1) ** sum(x[j] for j in s) for v, x in zip(values, inputs, strict=True)) for s in sets}
    return {s: mean / 2**dim for s, mean in means.items() if abs(mean) > 1e-12}


def census(dim=3):
    """All functions of some bits: as a callable on batches, and its spectrum."""
    weights = 1 << np.arange(dim)
    for number in range(2 ** (2**dim)):
        table = table_of_number(number, dim).astype(float)
        yield (lambda x, t=table: t[x @ weights]), spectrum(table.tolist(), dim)


def degree_of(coefficients):
    return max((len(s) for s in coefficients), default=0)


def sparsity_of(coefficients):
    return sum(1 for s in coefficients if s)


def random_sum(rng, dim, degree, sparsity, energy=1.0):
    """Random supports of one size with positive coefficients of the given energy in total."""
    supports = set()
    while len(supports) < sparsity:
        supports.add(tuple(sorted(rng.choice(dim, degree, replace=False).tolist())))
    coefficients = np.abs(rng.normal(size=sparsity))
    coefficients *= np.sqrt(energy) / np.linalg.norm(coefficients)
    return WalshFunction(dim, tuple(sorted(supports)), tuple(coefficients.tolist()))


def differences_without_dead_bits(oracle, blocks, trials, rng):
    """The differences of the degree test, wrong: every bit is in some block."""
    labels = rng.integers(1, blocks + 1, (trials, oracle.dim))
    x = rng.integers(0, 2, (1, trials, oracle.dim)).astype(bool)
    sign = np.ones(1)
    for block in range(1, blocks + 1):
        x, sign = np.concatenate([x, x ^ (labels == block)]), np.concatenate([sign, -sign])
    return sign @ oracle(x.reshape(-1, oracle.dim)).reshape(len(sign), trials) / len(sign)
