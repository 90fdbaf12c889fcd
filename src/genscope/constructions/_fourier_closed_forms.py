r"""Squared norms and mean squared gradients of the Fourier construction, block by block, without differentiating.

Source: lintilhac2026, Theorems 10 (norms), 5, 13 and 14 (gradients, trace); formulas are re-derived here.
Departures: $\nabla F_{pos}$, the rows of F that write into positions, is missing in the paper: these feed the second
softmax, and with M among its logits they can dominate the trace. Several heads.
Guarantee: norms are exact. Gradients leave out those of A, K, V, which vanish on the plateaus and are $O(\kappa\tau)$
at positions without a component. Expectations over uniform bits are exact up to `LARGEST` classes of inputs that the
weights cannot tell apart, sampled with a standard error beyond.

Letters as in `_fourier_plan`; $p^h$ is the second attention of head h, $v_h$ its value, $z_i=g(a_i)$ and
$h_i=\mathrm{relu}(a_i-\vartheta)$ at position i, $\bar z^h=\sum_ip^h_iz_i$, $\delta^h_i=v_hp^h_i(z_i-\bar z^h)$,
$\ell^h$ the logits, o the output position.
"""

import functools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import jax.random as jr
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from genscope.constructions._fourier_plan import FourierPlan
from genscope.refusal import Refusal

LARGEST = 2**20  # classes of inputs
SAMPLES = 2**14
_NUMBERS = 2**21  # of an array that lists units, positions and inputs

Powers = tuple[int, int, int]
# How the squared norms of blocks grow under (hidden, value, feature), the rescalings of `fourier_tuning`.
NORM_POWERS: Mapping[str, Powers] = {
    "A": (0, 0, 0),
    "K": (0, 0, 0),
    "V": (0, 2, 0),
    "E": (2, -2, 0),
    "b": (2, 0, 0),
    "F": (-2, 0, 2),
    "W2": (0, 0, 0),
    "w": (0, 0, -2),
    "b0": (0, 0, 0),
}
# The parts of squared gradients: the block of each, and how it grows.
GRADIENT_PARTS: Mapping[str, tuple[str, Powers]] = {
    "w: positions": ("w", (0, 0, 0)),
    "w: bit": ("w", (0, 0, 2)),
    "W2: keys": ("W2", (0, 0, 0)),
    "W2: bits": ("W2", (0, 0, 2)),
    "W2: keys, query's bit": ("W2", (0, 0, 2)),
    "W2: bits, query's bit": ("W2", (0, 0, 4)),
    "F_b": ("F_b", (2, 0, -2)),
    "F_pos": ("F_pos", (2, 0, 0)),
    "E": ("E", (-2, 2, 0)),
    "b": ("b", (-2, 0, 0)),
    "b0": ("b0", (0, 0, 0)),
}


def norms(plan: FourierPlan, *, factored: bool) -> dict[str, float]:
    r"""Squared norms before any rescaling.

    With `factored`, A and K are $U\sqrt{c\Sigma}$ and $\sqrt{c\Sigma}V^\top$ of the shares $U\Sigma V^\top$.
    """
    sharpness, (thresholds, slopes) = plan.sharpness, plan.wave
    first, second = float(np.sum(plan.shares**2)), plan.positions * sharpness**2
    if factored:
        first = second = sharpness * float(np.linalg.norm(plan.shares, "nuc")) if plan.sparsity else 0.0
    return {
        "A": first,
        "K": second,
        "V": 1.0,
        "E": float(len(thresholds)),
        "b": float(np.sum(thresholds**2)),
        "F": float(np.sum(slopes**2)),
        "W2": float(np.sum(plan.logits**2)),
        "w": float(np.sum(plan.values**2)),
        "b0": (plan.bias or 0.0) ** 2,
    }


@dataclass(frozen=True, eq=False)
class Gradients:
    """Mean squared gradients of a plan, in the order of GRADIENT_PARTS; computed when first asked for."""

    plan: FourierPlan
    key: Key[Array, ""] | None = None

    @property
    def exact(self) -> bool:
        """Whether the expectation is over all inputs."""
        return math.prod(int(size) + 1 for size in self._kinds[1]) <= LARGEST

    @property
    def mean(self) -> Float[np.ndarray, " parts"]:
        """The mean of every part over uniform bits."""
        return self._moments[0]

    @property
    def covariance(self) -> Float[np.ndarray, "parts parts"]:
        """The covariance of the means; zero where they are exact."""
        return self._moments[1]

    @functools.cached_property
    def _kinds(self) -> tuple[Float[np.ndarray, "rows kinds"], Int[np.ndarray, " kinds"]]:
        """Attention on each kind of bits, those that every row attends to alike, and how many there are of it."""
        columns = self.plan.attention[:, : self.plan.context_length]
        kinds, sizes = np.unique(columns, axis=1, return_counts=True)
        return kinds, sizes

    @functools.cached_property
    def _moments(self) -> tuple[Float[np.ndarray, " parts"], Float[np.ndarray, "parts parts"]]:
        width = len(GRADIENT_PARTS)
        mean, square = np.zeros(width), np.zeros((width, width))
        for counts, weights in self._classes():
            parts = _parts(self.plan, self._attended(counts))
            mean += weights @ parts
            square += (weights[:, None] * parts).T @ parts
        if self.exact:
            return mean, np.zeros((width, width))
        return mean, (square - np.outer(mean, mean)) / (SAMPLES - 1)

    def _attended(self, counts: Int[np.ndarray, "inputs kinds"]) -> Float[np.ndarray, "inputs rows"]:
        attended = counts @ self._kinds[0].T
        return attended + self.plan.attention[:, -1] if self.plan.one_token else attended

    def _classes(self) -> Iterator[tuple[Int[np.ndarray, "inputs kinds"], Float[np.ndarray, " inputs"]]]:
        """Numbers of ones among the bits of each kind, with their probabilities; block by block."""
        _, sizes = self._kinds
        units = len(self.plan.wave[0])
        block = max(1, _NUMBERS // (units * (self.plan.sparsity + 1)))
        if self.exact:
            total = math.prod(int(size) + 1 for size in sizes)
            chances = [[math.comb(int(size), ones) / 2 ** int(size) for ones in range(size + 1)] for size in sizes]
            for start in range(0, total, block):
                counts = np.stack(np.unravel_index(np.arange(start, min(start + block, total)), sizes + 1), axis=1)
                weights = np.prod([np.take(c, n) for c, n in zip(chances, counts.T, strict=True)], axis=0)
                yield counts, weights
            return
        if self.key is None:
            raise Refusal(
                f"the gradients of this construction on {self.plan.context_length} bits need a key: with more than "
                f"{LARGEST} different inputs they are estimated from random ones. Give fourier_components a key."
            )
        rng = np.random.default_rng(np.asarray(jr.key_data(self.key)))  # JAX would compile for each shape
        for start in range(0, SAMPLES, block):
            size = min(block, SAMPLES - start)
            yield rng.binomial(sizes, 0.5, (size, len(sizes))), np.full(size, 1 / SAMPLES)


@dataclass(frozen=True, eq=False)
class SampleGradients:
    """The same means over the inputs of a sample, with no error: the sample is what they are about."""

    plan: FourierPlan
    bits: Bool[np.ndarray, "n T"]
    exact = True

    @functools.cached_property
    def mean(self) -> Float[np.ndarray, " parts"]:
        """The mean of every part over the sample."""
        attention = self.plan.attention
        columns = attention[:, : self.plan.context_length].T
        block = max(1, _NUMBERS // ((len(self.plan.wave[0]) + 1) * (self.plan.sparsity + 1)))
        total = np.zeros(len(GRADIENT_PARTS))
        for start in range(0, len(self.bits), block):
            attended = self.bits[start : start + block] @ columns
            total += _parts(self.plan, attended + attention[:, -1] if self.plan.one_token else attended).sum(axis=0)
        return total / len(self.bits)

    @property
    def covariance(self) -> Float[np.ndarray, "parts parts"]:
        """Zero."""
        return np.zeros((len(GRADIENT_PARTS), len(GRADIENT_PARTS)))


def _parts(plan: FourierPlan, attended: Float[np.ndarray, "inputs rows"]) -> Float[np.ndarray, "inputs parts"]:
    r"""The parts of every input's squared gradient, with hidden, value and feature scales of 1.

    $\|\nabla_w\|^2=\sum_h\sum_i(p^h_i)^2+(\bar z^h)^2$;
    $\|\nabla_{W_2}\|^2=\sum_h(1+z_o^2)(\sum_i(\delta^h_i)^2+(\sum_i\delta^h_iz_i)^2)$; with $e_i=\sum_hv_hp^h_i$:
    $\|\nabla_{F_b}\|^2=\|\sum_ie_ih_i\|^2$, $\|\nabla_b\|^2=\sum_uF_u^2(\sum_ie_i\mathbf 1[h_{iu}>0])^2$,
    $\|\nabla_E\|^2=\sum_uF_u^2(\sum_ie_i\mathbf 1[h_{iu}>0]a_i)^2$; and with $D^h=\sum_i\delta^h_ih_i$:
    $\|\nabla_{F_{pos}}\|^2=\sum_{r\ne o}\|\sum_h\ell^h_rD^h\|^2
    +\|\sum_h\ell^h_oD^h+(\sum_{h,i}\delta^h_i\ell^h_i)h_o\|^2$.
    Positions without a component are alike, and are counted in the last row.
    """
    thresholds, slopes = plan.wave
    rows = [*range(plan.sparsity), plan.context_length]  # the output position stands for all without a component
    copies = np.array([1.0] * plan.sparsity + [plan.positions - plan.sparsity])
    weight, logits = plan.selection[:, rows], plan.logits[:, rows]

    hidden = np.maximum(attended[:, :, None] - thresholds, 0)  # [inputs, rows, units]
    active = (hidden > 0).astype(float)
    z = hidden @ slopes
    mean = z @ (copies * weight).T  # [inputs, heads]
    delta = (plan.values[:, None] * weight) * (z[:, None, :] - mean[:, :, None])  # [inputs, heads, rows]
    keys = np.sum(copies * delta**2, axis=(1, 2))
    delta *= copies
    bits = np.sum(np.einsum("bhi,bi->bh", delta, z) ** 2, axis=1)
    query = z[:, -1] ** 2

    effect = copies * (plan.values @ weight)  # e_i
    pushed = (effect @ active) * slopes
    pulled = np.squeeze((effect * attended)[:, None, :] @ active, axis=1) * slopes
    read = effect @ hidden
    written = delta @ hidden  # D, [inputs, heads, units]
    others = np.delete(plan.logits, plan.context_length, axis=1)
    elsewhere = np.einsum("bhu,hg,bgu->b", written, others @ others.T, written, optimize=True)
    turn = np.einsum("bhi,hi->b", delta, logits)
    here = np.einsum("h,bhu->bu", logits[:, -1], written) + turn[:, None] * hidden[:, -1]
    return np.stack(
        [
            np.full(len(z), np.sum(copies * weight**2)),
            np.sum(mean**2, axis=1),
            keys,
            bits,
            query * keys,
            query * bits,
            np.sum(read**2, axis=1),
            elsewhere + np.sum(here**2, axis=1),
            np.sum(pulled**2, axis=1),
            np.sum(pushed**2, axis=1),
            np.full(len(z), float(plan.bias is not None)),
        ],
        axis=1,
    )
