r"""Large Fourier components of any function, also a noisy one: a search of the tree of prefixes.

A node is a pattern U on the first t bits; its weight $\sum_{S: S \cap [t] = U} \hat f(S)^2 = \mathbb E[f(x) f(x')
\chi_U(x \oplus x')]$ is a mean over pairs that share the bits after t. Four bits are added at a time, one sample of
pairs serves all nodes of a level, and nodes of weight below $\theta^2/2$ are dropped.

Source: Goldreich and Levin 1989.
Departures: weights of all sixteen children of a node come from one small transform.
Guarantee: the sample makes every weight right to within $\theta^2/4$ with the confidence by Hoeffding's inequality if
|f| <= `bound`; then every component of absolute value at least θ is found, and nothing below θ/2 is.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool

from genscope.fourier import signs
from genscope.fourier.transform import fwht
from genscope.fourier.walsh import WalshFunction
from genscope.probe.oracle import BATCH, Oracle
from genscope.probe.outcome import check_confidence
from genscope.refusal import Refusal

_STEP = 4  # bits added at a time


@dataclass(frozen=True)
class Heavy:
    """Components at least as large as the threshold, with estimated coefficients and their standard error."""

    function: WalshFunction
    sem: float
    confidence: float | None  # None: the sample was smaller than the guarantee asks for
    queries: int


def heavy_components(
    oracle: Oracle,
    threshold: float,
    *,
    bound: float,
    rng: np.random.Generator,
    confidence: float = 0.99,
    samples: int | None = None,
) -> Heavy | None:
    r"""All components with $|\hat f(S)| \ge \theta$; None if the queries do not suffice.

    `samples` pairs per level, by default $32 B^4 \theta^{-4} \log(2 \cdot \mathrm{nodes} \cdot T/\delta)$.
    """
    check_confidence(confidence)
    if not 0 < threshold <= bound:
        raise Refusal(
            f"heavy_components got {threshold=} and {bound=}: no coefficient is larger than |f|. Give a threshold "
            "between 0 and the bound."
        )
    nodes = 4 * bound**2 / threshold**2 * 2**_STEP  # children of at most so many survivors
    needed = math.ceil(32 * (bound / threshold) ** 4 * math.log(2 * max(1.0, nodes) * oracle.dim / (1 - confidence)))
    pairs = needed if samples is None else samples
    levels = -(-oracle.dim // _STEP)
    if (2 * levels + 1) * pairs > oracle.left:
        return None
    before = oracle.queries
    grown = np.zeros((1, oracle.dim), bool)
    for start in range(0, oracle.dim, _STEP):
        grown = _grow(oracle, grown, start, min(start + _STEP, oracle.dim), pairs, threshold, rng)
    x = rng.integers(0, 2, (pairs, oracle.dim), dtype=np.int8).astype(bool)
    values = oracle(x)
    estimates = np.array([np.mean(values * _character(x, node)) for node in grown])
    found = {tuple(np.flatnonzero(node).tolist()): value for node, value in zip(grown, estimates.tolist(), strict=True)}
    supports = tuple(sorted(support for support in found if support))
    return Heavy(
        WalshFunction(oracle.dim, supports, tuple(found[s] for s in supports), constant=found.get((), 0.0)),
        float(values.std(ddof=1) / math.sqrt(pairs)),
        confidence if pairs >= needed else None,
        oracle.queries - before,
    )


def _grow(
    oracle: Oracle,
    nodes: Bool[np.ndarray, "nodes dim"],
    start: int,
    end: int,
    pairs: int,
    threshold: float,
    rng: np.random.Generator,
) -> Bool[np.ndarray, "children dim"]:
    """The children on the bits from start to end whose weight is large."""
    children = 2 ** (end - start)
    weights = np.zeros((len(nodes), children))
    for first in range(0, pairs, BATCH):
        size = min(BATCH, pairs - first)
        x = rng.integers(0, 2, (size, oracle.dim), dtype=np.int8).astype(bool)
        other = x.copy()
        other[:, :end] = rng.integers(0, 2, (size, end), dtype=np.int8).astype(bool)
        product = oracle(x) * oracle(other)
        apart = x ^ other
        place = apart[:, start:end] @ (1 << np.arange(end - start))
        for node, row in zip(nodes, weights, strict=True):
            row += np.bincount(place, product * _character(apart, node), minlength=children)
    heavy = fwht(weights) / pairs >= threshold**2 / 2
    grown = []
    for node, child in zip(*np.nonzero(heavy), strict=True):
        added = nodes[node].copy()
        added[start:end] = (child >> np.arange(end - start)) & 1 == 1
        grown.append(added)
    return np.array(grown, bool).reshape(-1, oracle.dim)


def _character(x: Bool[np.ndarray, "n dim"], support: Bool[np.ndarray, " dim"]) -> np.ndarray:
    return signs(np.logical_xor.reduce(x[:, support], axis=1), np.float64)
