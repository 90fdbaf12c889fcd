r"""A Fourier construction without the units that a sample does not use.

The perceptron has to be right at $\frac j\kappa$ for the numbers j of ones that some component shows on some input of
the sample, U; elsewhere it may be anything. `thin` builds it with a ramp wherever the parity turns between neighbours
in U (`_fourier_plan.thinned_wave`), which leaves out the units of all other values. Ramps stay in [0, 1], so that
positions without a component cost no more than before, and the promise stands on the sample.

Source: lintilhac2026, Appendix D (2) ("interpolators need only fit the training set").
Departures: the paper speaks of inputs such as all zeros, which are rare among $2^T$. What has a unit is a number of
ones among the k bits of a *component*, and the rarest has probability $2^{-k}$ per input: it is missing from n inputs
with probability at most $(1-2^{-k})^n$ each, $10^{-113}$ for k = 5 and n = 8,192. So nothing is left out at the paper's
sizes but the two units that no input uses (even k); something is where n is not far above $2^k$.
Guarantee: on the sample, that of the whole construction; off it, none. Norms and traces at the sample are exact (the
trace up to $O(\tau)$, as for the whole).

**May a bound use it?** Yes, and here is the price. In Theorem 2 the construction enters twice: $\|\theta_c\|$ and its
sharpness bound those of the learned network, which are the posterior's and may depend on the sample; and they choose
$\sigma$ and $\lambda$, which are the prior's and may not. So (`kept`) with $\sigma,\lambda$ of the whole construction,
$$\mathbb E_\rho R\le\frac{\sigma^2}2(H_U+\Delta)+\frac{\lambda C^2}{2n}
+\frac1\lambda\Big(\frac{\|\theta_U\|^2}{2\sigma^2}+\log\frac1\delta\Big)$$
costs nothing, and no term is larger than the whole's: the units are among its units and have no steeper slopes, so that
every block of norm and gradient is at most its (the latter up to $O(\tau)$). And (`own`) since U is one of
$2^{\kappa+1}$ sets, each with $\sigma_U,\lambda_U$ that are known before the sample, their own optimum costs
$(\kappa+1)\log2$ beside $\log\frac1\delta$, by a union over the sets. The assumption grows with the gain: the learned
network has to be dominated by the thinner one. Units that are left out are units with weights 0 in the network of the
whole: norm and gradient are the same, and the prior is one over all weights.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Array, Bool, Key

from genscope.bounds.flat_minima import BoundSetting, truncated, truncated_optimum
from genscope.bounds.randomised import alquier
from genscope.constructions._fourier_closed_forms import Gradients, SampleGradients
from genscope.constructions._fourier_plan import FourierPlan
from genscope.constructions.fourier_construction import FourierConstruction
from genscope.constructions.fourier_verification import outputs
from genscope.constructions.verification import ROUNDING, Verification
from genscope.refusal import Refusal

Sample = Bool[np.ndarray, "n T"]


@dataclass(frozen=True, eq=False)
class ThinnedConstruction:
    """The whole construction and the thinned one, both with their gradients at the sample; `used` is U."""

    whole: FourierConstruction
    thinned: FourierConstruction
    sample: Sample

    @property
    def used(self) -> tuple[int, ...]:
        """Numbers of ones that the sample shows to components."""
        return self.thinned.plan.used or ()

    @property
    def units(self) -> tuple[int, int]:
        """Units of the perceptron before and after."""
        return len(self.whole.plan.wave[0]), len(self.thinned.plan.wave[0])

    @property
    def sets(self) -> int:
        r"""$2^{\kappa+1}$: how many sets U there are to choose from."""
        return 2 ** (self.whole.plan.degree + 1)


def used_values(plan: FourierPlan, sample: Sample) -> tuple[int, ...]:
    """The numbers of ones, the one-token included, among the bits of components on the inputs of a sample."""
    members = (plan.shares == 1)[:, : plan.context_length]
    counts = sample.astype(np.int64) @ members.T.astype(np.int64)
    if plan.one_token:
        counts = counts + (plan.shares[:, -1] == 1)
    return tuple(np.unique(counts).tolist())


def thin(construction: FourierConstruction, sample: Sample) -> ThinnedConstruction:
    """Leave out what the inputs [n, T] of a sample do not use; every scale and parameterisation stays.

    >>> from genscope.constructions import fourier_components
    >>> from genscope.fourier.walsh import WalshFunction
    >>> built = fourier_components(WalshFunction(4, ((0, 1, 2, 3),), (1.0,), basis="phi"))
    >>> thinner = thin(built, np.array([[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 0, 1]], bool))
    >>> thinner.used, thinner.units
    ((2, 3), (12, 4))
    """
    sample = np.asarray(sample)
    if sample.ndim != 2 or sample.shape[1] != construction.function.dim or sample.dtype != bool or not len(sample):
        raise Refusal(
            f"thin got a sample of shape {sample.shape} and type {sample.dtype} for {construction.function.dim} bits: "
            "it must be an array [n, T] of truth values with at least one row. Give x == 1."
        )
    if not construction.plan.sparsity:
        raise Refusal(
            "thin got a constant function: it has no component whose units could be left out. Give a function that "
            "depends on some bit."
        )
    plan = replace(construction.plan, used=used_values(construction.plan, sample))
    return ThinnedConstruction(
        replace(construction, gradients=SampleGradients(construction.plan, sample)),
        replace(construction, plan=plan, gradients=SampleGradients(plan, sample)),
        sample,
    )


def verify_thinned(thinned: ThinnedConstruction) -> Verification:
    """Compare the thinned model with the function at every input of the sample, and nowhere else."""
    function = thinned.thinned.function
    largest = float(np.abs(outputs(thinned.thinned.model, thinned.sample) - function(thinned.sample)).max())
    rounding = ROUNDING * max(1.0, sum(map(abs, function.coefficients)))
    promised = thinned.thinned.error + rounding
    return Verification(largest, len(thinned.sample), False, exact=largest <= rounding, kept=largest <= promised)


def thinned_bounds(
    thinned: ThinnedConstruction, *, constant: float, confidence: float = 0.95, key: Key[Array, ""] | None = None
) -> dict[str, float]:
    r"""The truncated bounds of whole and thinned weights for a dominated network, n the size of the sample.

    "whole", "kept" ($\sigma,\lambda$ of the whole) and "own" ($\sigma_U,\lambda_U$ and the union), each with the
    confidence for itself. Traces that choose $\sigma$ are those on uniform inputs; the key serves them.
    """
    n, whole, thin_ = len(thinned.sample), thinned.whole, thinned.thinned
    before, after = whole.norm_squared["total"], thin_.norm_squared["total"]

    def sigma(built: FourierConstruction, size: float) -> float:
        trace = replace(built, gradients=Gradients(built.plan, key)).trace
        return truncated_optimum(norm_squared=size, trace=trace, constant=constant, samples=n).sigma

    first = sigma(whole, before)
    nats = before / (2 * first**2) - math.log1p(-confidence)
    kept = alquier(
        empirical_risk=first**2 / 2 * thin_.trace,
        divergence=after / (2 * first**2),
        constant=constant,
        samples=n,
        confidence=confidence,
        temperature=math.sqrt(2 * n * nats) / constant,
    )
    own = BoundSetting(after, constant, n, confidence, priors=thinned.sets)
    return {
        "whole": truncated(BoundSetting(before, constant, n, confidence), sigma=first, trace=whole.trace).value,
        "kept": kept.value,
        "own": truncated(own, sigma=sigma(thin_, after), trace=thin_.trace).value,
    }
