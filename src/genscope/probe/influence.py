r"""Which bits matter, and how much: $\mathrm{Inf}_i = \frac14 \mathbb E (f(x) - f(x^{\oplus i}))^2$ from pairs.

Source: lintilhac2026, Equation (1) (components).
Guarantee: the mean is unbiased. A bit that is called relevant is (rounding aside). One that is relevant is missed with
probability at most 1 - confidence, all bits together, if f has at most `sparsity_bound` components: the difference
along a bit is then non-zero on at least a share 1/sparsity_bound of the inputs.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from genscope.probe.oracle import Oracle
from genscope.probe.outcome import check_confidence
from genscope.refusal import Refusal

SPARSITY_BOUND = 32  # where the caller knows none


@dataclass(frozen=True)
class Influences:
    """Influence of every bit with its standard error, and the bits that were seen to matter."""

    mean: Float64[np.ndarray, " dim"]
    sem: Float64[np.ndarray, " dim"]
    relevant: tuple[int, ...]
    queries: int


def flips_needed(dim: int, confidence: float, sparsity_bound: int = SPARSITY_BOUND) -> int:
    """Queries of `influences`: every bit is flipped at `sparsity_bound` log(dim / (1 - confidence)) inputs."""
    return (dim + 1) * max(2, math.ceil(sparsity_bound * math.log(dim / (1 - confidence))))


def influences(
    oracle: Oracle, *, rng: np.random.Generator, confidence: float = 0.99, sparsity_bound: int = SPARSITY_BOUND
) -> Influences | None:
    """Flip every bit at random inputs; None if the queries do not suffice."""
    check_confidence(confidence)
    if sparsity_bound < 1:
        raise Refusal(f"influences got {sparsity_bound=}: a function has at least one component. Give 1 or more.")
    needed = flips_needed(oracle.dim, confidence, sparsity_bound)
    if needed > oracle.left:
        return None
    samples = needed // (oracle.dim + 1)
    before = oracle.queries
    x = rng.integers(0, 2, (samples, oracle.dim), dtype=np.int8).astype(bool)
    here = oracle(x)
    mean, sem, seen = np.zeros(oracle.dim), np.zeros(oracle.dim), np.zeros(oracle.dim, bool)
    for i in range(oracle.dim):
        x[:, i] ^= True
        apart = here - oracle(x)
        x[:, i] ^= True
        mean[i], sem[i] = np.mean(apart**2) / 4, np.std(apart**2, ddof=1) / 4 / math.sqrt(samples)
        seen[i] = (np.abs(apart) > oracle.resolution).any()
    return Influences(mean, sem, tuple(np.flatnonzero(seen).tolist()), oracle.queries - before)
