r"""FourierConstruction: weights for a sum of Fourier components, with the closed forms of their norms and of the trace.

Source: lintilhac2026, Appendix B (construction), Theorems 10, 13 and 14 (norm, gradients, trace of the Hessian).
Departures: those of `models.lintilhac2026`, `_fourier_plan` and `_fourier_closed_forms`.
Guarantee: the model errs by at most `error`, up to rounding. `norm_squared` is exact; `trace` is
$2\,\mathbb E\|\nabla f\|^2$, the trace of the Hessian of the mean squared loss where the loss is 0, and here up to
$O(\tau)$.

Blocks by the paper's letters: A `score`, K `key`, V `value`, E `expand`, b `threshold`, F `contract` (F_b: the row that
writes the bit; F_pos: the others), W2 `select`, w `readout`, b0 `bias`.
"""

import dataclasses
import functools
import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from genscope.constructions._fourier_closed_forms import GRADIENT_PARTS, NORM_POWERS, Gradients, SampleGradients, norms
from genscope.constructions._fourier_plan import FourierPlan
from genscope.display import Card, Displayed, Table
from genscope.fourier.walsh import WalshFunction
from genscope.models.lintilhac2026 import FourierTransformer
from genscope.precision import float64

Parameterisation = Literal["full", "minimal"]


class Scales(NamedTuple):
    r"""Rescalings that keep the function: $(E,b,F)\to(cE,cb,F/c)$, $(V,E)\to(\eta V,E/\eta)$,
    $(F,w)\to(\gamma F,w/\gamma)$.
    """

    hidden: float = 1.0
    value: float = 1.0
    feature: float = 1.0

    def factor(self, powers: tuple[int, int, int]) -> float:
        r"""$c^i\eta^j\gamma^k$."""
        return math.prod(scale**power for scale, power in zip(self, powers, strict=True))


_UNSCALED = Scales()


@dataclass(frozen=True, eq=False)
class FourierConstruction(Displayed):
    """A model, the function it represents and the closed forms of its weights.

    `error` is the promised largest error. With `factored`, A and K are balanced factors of their product.
    """

    function: WalshFunction
    plan: FourierPlan
    gradients: Gradients | SampleGradients
    parameterisation: Parameterisation = "full"
    scales: Scales = _UNSCALED
    factored: bool = False
    source: str = "lintilhac2026, Appendix B"

    def card(self) -> Card:
        """What is shown: what it represents, and its closed forms by block."""
        norms, gradients = self.norm_squared, self.gradient_squared
        rows = [
            (
                "function",
                f"degree {self.function.degree}, {self.function.sparsity} components, {self.function.dim} bits",
            ),
            ("largest error promised", self.error),
            ("parameters", self.parameters),
            ("trace of the Hessian", self.trace),
            ("source", self.source),
        ]
        blocks = [(name, value, gradients.get(name)) for name, value in norms.items()]
        columns = ["block", "squared norm", "mean squared gradient"]
        return Card("A Transformer for a sparse Fourier expansion", rows, [Table(columns, blocks)])

    @functools.cached_property
    def model(self) -> FourierTransformer:
        """The weights, in float64."""
        return _model(self.plan, self.scales, self.parameterisation, self.factored)

    @property
    def error(self) -> float:
        r"""The promised largest error, $\frac\tau{1+\tau}\sum|\alpha|$."""
        return self.plan.error

    @property
    def parameters(self) -> int:
        """Number of parameters."""
        return sum(leaf.size for leaf in jax.tree.leaves(eqx.filter(self.model, eqx.is_inexact_array)))

    @property
    def norm_squared(self) -> dict[str, float]:
        """Squared norms by block, and their total (Theorem 10)."""
        found = norms(self.plan, factored=self.factored)
        blocks = {name: value * self.scales.factor(NORM_POWERS[name]) for name, value in found.items()}
        if self.plan.bias is None:
            del blocks["b0"]
        return blocks | {"total": math.fsum(blocks.values())}

    @property
    def gradient_squared(self) -> dict[str, float]:
        """Mean squared gradients of the output by block, F in two parts and whole, and their total (Theorem 14)."""
        blocks: dict[str, float] = dict.fromkeys(("A", "K", "V", "E", "b", "F_b", "F_pos", "W2", "w", "b0"), 0.0)
        for (block, _), value in zip(GRADIENT_PARTS.values(), self._factors * self.gradients.mean, strict=True):
            blocks[block] += float(value)
        if self.plan.bias is None:
            del blocks["b0"]
        total = math.fsum(blocks.values())
        return blocks | {"F": blocks["F_b"] + blocks["F_pos"], "total": total}

    @property
    def trace(self) -> float:
        """Trace of the Hessian of the mean squared loss (Theorem 13)."""
        return 2 * float(self._factors @ self.gradients.mean)

    @property
    def trace_sem(self) -> float:
        """Standard error of the trace; 0 where the expectation is exact."""
        factors = self._factors
        return 2 * math.sqrt(max(0.0, float(factors @ self.gradients.covariance @ factors)))

    @property
    def _factors(self) -> Float[np.ndarray, " parts"]:
        """What each part of the gradient counts with these scales and this parameterization."""
        return np.array(
            [
                0.0 if block == "F_pos" and self.parameterisation == "minimal" else self.scales.factor(powers)
                for block, powers in GRADIENT_PARTS.values()
            ]
        )

    def rescaled(self, scales: Scales) -> "FourierConstruction":
        """The same function with other scales."""
        return dataclasses.replace(self, scales=scales)


def chi_scale(construction: FourierConstruction) -> tuple[float, float]:
    r"""Squared norm and trace of $2f-\sum_i\alpha_i$, the function with $\chi$ for $\varphi$, from those of f.

    Values twice as large double all gradients but that of w; the bias adds its own square, and 1 to the gradients.
    """
    norm, gradient = construction.norm_squared, construction.gradient_squared
    before, bias = norm.get("b0", 0.0), 2 * (construction.plan.bias or 0.0) - sum(construction.function.coefficients)
    unchanged = gradient["w"] + gradient.get("b0", 0.0)
    trace = 2 * (4 * (gradient["total"] - unchanged) + gradient["w"] + 1)
    return norm["total"] + 3 * norm["w"] + bias**2 - before, trace


def _model(
    planned: FourierPlan, scales: Scales, parameterisation: Parameterisation, factored: bool
) -> FourierTransformer:
    size, dim, bit = planned.positions, planned.positions + 1, planned.positions
    heads = len(planned.values)
    score, key = np.zeros((dim, dim)), np.zeros((dim, dim))
    if factored:
        left, scale, right = np.linalg.svd(planned.shares, full_matrices=False)
        root = np.sqrt(planned.sharpness * scale)
        score[: len(left), : len(root)] = left * root
        key[: len(root), :size] = root[:, None] * right
    else:
        score[: planned.sparsity, :size] = planned.shares
        key[:size, :size] = planned.sharpness * np.eye(size)
    value = np.zeros((dim, dim))
    value[bit, bit] = scales.value
    thresholds, slopes = planned.wave
    expand = np.full(len(thresholds), scales.hidden / scales.value)
    contract = slopes * scales.feature / scales.hidden
    select, readout = np.zeros((heads, dim, dim)), np.zeros((heads, dim))
    select[:, planned.context_length, :size] = planned.logits
    readout[:, bit] = planned.values / scales.feature
    if parameterisation == "full":
        expand, contract = expand[:, None] * np.eye(dim)[bit], contract * np.eye(dim)[:, bit:]
    with float64():
        return FourierTransformer(
            score=jnp.asarray(score),
            key=jnp.asarray(key),
            value=jnp.asarray(value),
            expand=jnp.asarray(expand),
            threshold=jnp.asarray(scales.hidden * thresholds),
            contract=jnp.asarray(contract),
            select=jnp.asarray(select),
            readout=jnp.asarray(readout),
            bias=None if planned.bias is None else jnp.asarray(planned.bias),
            context_length=planned.context_length,
            one_token=planned.one_token,
        )
