r"""Flat minima of small norm generalize: PAC-Bayes bounds from norm and sharpness, in five degrees of rigour.

Of $\rho=N(\theta,\sigma^2I)$ and $\pi=N(0,\sigma^2I)$ the divergence is $\frac{\|\theta\|^2}{2\sigma^2}$, and for an
interpolator with Hessian trace $H$ the risk on the sample at perturbed weights is $\frac{\sigma^2}2(H+\Delta(\sigma))$,
which defines $\Delta$. Where weights are built and not learned, all of this is known before the sample.

Source: lintilhac2026, Theorem 2, Section 1.2 and Appendix E.2.
Departures: the form for clipped losses, of rate $n^{-1/2}$ where the paper has $n^{-1/3}$. The paper takes the change
of the trace for $\Delta$; `direct` measures the risk itself.
Guarantee: `semi_analytic`, `direct` and `analytic` hold for a learned network that the construction dominates
(`domination`), which is to be checked; `truncated` and `pac_bayes` drop $\Delta(\sigma)$ and certify nothing.
`randomised.empirical` is the fifth, a certificate for any trained network.
"""

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Literal, NamedTuple

from genscope.bounds._base import Bound, Kind
from genscope.bounds._logarithms import exp, log
from genscope.bounds._parameters import Choice, Number, check_fields, checked, count, norm, positive
from genscope.bounds.randomised import SEEGER, EmpiricalRisk, LossConstant, Priors, Trivial, alquier, seeger
from genscope.bounds.risk import Confidence, Samples

NormSquared = Annotated[float, norm("‖θ‖², sum of the squared weights")]
Trace = Annotated[float, norm("trace of the Hessian of the mean loss")]
Sigma = Annotated[float, positive("standard deviation σ of every weight")]
Tail = Annotated[
    Literal["subgaussian", "kl"], Choice("subgaussian: constant C, any loss; kl: the loss is clipped at 2C")
]

_ALQUIER = "lintilhac2026, Theorem 2 (alquier2024, Theorem 2.1)"
_CLIPPED = f"lintilhac2026, Theorem 2 ({SEEGER})"
_STEP = math.log(10) / 10  # between neighbours of the grid of log σ
_TINY = 1e-300  # stands for 0 where a logarithm must be finite


@dataclass(frozen=True)
class BoundSetting:
    """What a bound by a construction is told besides the risk on the sample; all of it fixed before the sample."""

    norm_squared: NormSquared
    constant: LossConstant
    samples: Samples
    confidence: Confidence = 0.95
    priors: Priors = 1
    trivial: Trivial = 0.25
    tail: Tail = "subgaussian"

    def __post_init__(self) -> None:
        check_fields(self)


@checked
def truncated(setting: BoundSetting, *, sigma: Sigma, trace: Trace, empirical_risk: EmpiricalRisk = 0.0) -> Bound:
    r"""The quadratic term $\frac{\sigma^2}2H$ alone for the perturbed risk: certifies nothing."""
    terms = {"empirical risk": empirical_risk, "sharpness": _half_square(sigma, trace)}
    return _bounded("truncated", setting, sigma, terms, "estimate")


@checked
def semi_analytic(
    setting: BoundSetting,
    *,
    sigma: Sigma,
    trace: Trace,
    perturbation: Annotated[float, Number("Δ(σ), measured on the construction", low=-math.inf)],
    empirical_risk: EmpiricalRisk = 0.0,
) -> Bound:
    r"""Closed form plus measurement, $\frac{\sigma^2}2(H+\hat\Delta(\sigma))$."""
    whole = {"sharpness": trace, "perturbation": perturbation}
    terms = {name: _half_square(sigma, value) for name, value in whole.items()}
    return _bounded("semi-analytic", setting, sigma, {"empirical risk": empirical_risk} | terms, "semi-analytic")


@checked
def direct(
    setting: BoundSetting,
    *,
    sigma: Sigma,
    perturbed_risk: Annotated[float, norm("mean risk on the sample at weights θ + σξ, ξ standard normal")],
) -> Bound:
    r"""The measured risk $\mathbb E\hat R(\theta+\sigma\xi)$ of the perturbed construction."""
    return _bounded("direct", setting, sigma, {"perturbed risk": perturbed_risk}, "semi-analytic")


@checked
def analytic(
    setting: BoundSetting,
    *,
    sigma: Sigma,
    trace: Trace,
    perturbation: Annotated[float, norm("proved bound of Δ(σ)")],
    empirical_risk: EmpiricalRisk = 0.0,
) -> Bound:
    r"""Proved throughout, by a bound of $\Delta(\sigma)$ (lintilhac2026, Theorem 17)."""
    bound = semi_analytic(setting, sigma=sigma, trace=trace, perturbation=perturbation, empirical_risk=empirical_risk)
    return replace(bound, name="analytic", kind="analytic")


@checked
def pac_bayes(
    *,
    norm_squared: NormSquared,
    trace: Trace,
    constant: LossConstant,
    samples: Samples,
    confidence: Confidence = 0.95,
    sigma_grid: Annotated[float, count("number of values of σ to choose from", most=10_000)] = 20,
    sigma: Annotated[float | None, positive("σ, fixed in advance (default: the best of the grid)")] = None,
    empirical_risk: EmpiricalRisk = 0.0,
    trivial: Trivial = 0.25,
    form: Annotated[
        Literal["truncated", "kl"], Choice("truncated: the paper's; kl: for the loss clipped at twice the constant")
    ] = "truncated",
) -> Bound:
    r"""Estimate of the risk from norm and sharpness, at the best σ of a grid (lintilhac2026, Theorem 2).

    Truncated: $\hat R+\frac{\sigma^2}2H+C\sqrt{(\|\theta\|^2/\sigma^2+2\log(G/\delta))/n}$. Kl: the inverse of
    $\mathrm{kl}(\cdot\|\cdot)$ at $(\frac{\|\theta\|^2}{2\sigma^2}+\log\frac{2\sqrt nG}\delta)/n$ for losses clipped at
    $B=2C$ (maurer2004). The grid has $G$ values in ratios of $10^{1/10}$ about the optimum for the given norm and
    trace, which are known before the sample: a construction's. A $\sigma$ fixed in advance pays for no choice ($G=1$).
    What the loss does beyond the second order is left out in both.
    """
    tail = "kl" if form == "kl" else "subgaussian"
    priors = 1 if sigma else sigma_grid
    setting = BoundSetting(norm_squared, constant, samples, confidence, priors, trivial, tail)
    centre = _log_optimum(setting, trace)
    steps = range(int(sigma_grid))
    sigmas = [sigma] if sigma else [_sigma(centre + (step - sigma_grid // 2) * _STEP) for step in steps]
    candidates = [truncated(setting, sigma=each, trace=trace, empirical_risk=empirical_risk) for each in sigmas]
    best = min(candidates, key=lambda bound: bound.value)
    return replace(best, name="pac-bayes")


class Optimum(NamedTuple):
    """The least value of a bound, where it is attained, and the sample size from which it says something."""

    sigma: float
    value: float
    samples: float


@checked
def truncated_optimum(
    *,
    norm_squared: Annotated[float, positive("‖θ‖²")],
    trace: Annotated[float, positive("trace of the Hessian")],
    constant: LossConstant,
    samples: Samples,
    trivial: Trivial = 0.25,
) -> Optimum:
    r"""The truncated bound at its best $\sigma$, but for the logarithm of the confidence (lintilhac2026, Theorem 2).

    $\sigma_*^3=\frac{C\|\theta\|}{H\sqrt n}$, $B_*=\frac32(C^2\|\theta\|^2H/n)^{1/3}$, which is below the trivial value
    $V$ from $n=\frac{27}8C^2\|\theta\|^2H/V^3$ on.

    >>> best = truncated_optimum(norm_squared=4898.79, trace=1990.73, constant=0.1, samples=10**6)
    >>> round(best.sigma, 4), round(best.value, 4)
    (0.0152, 0.6904)
    """
    log_product = 2 * log(constant) + log(norm_squared) + log(trace)
    return Optimum(
        exp(_log_optimum(BoundSetting(norm_squared, constant, samples), trace)),
        exp(math.log(1.5) + (log_product - log(samples)) / 3),
        exp(3 * math.log(1.5) + log_product - 3 * log(trivial)),
    )


@dataclass(frozen=True)
class Domination:
    """Whether a learned network is below a construction in norm and in sharpness, and by which factors."""

    norm_ratio: float
    sharpness_ratio: float

    @property
    def holds(self) -> bool:
        """Both ratios at most 1: the bounds by the construction then speak of the learned network."""
        return self.norm_ratio <= 1 and self.sharpness_ratio <= 1


@checked
def domination(
    *,
    norm_squared: NormSquared,
    sharpness: Annotated[float, norm("expected perturbed sharpness, or trace, of the learned network")],
    built_norm_squared: Annotated[float, positive("‖θ‖² of the construction")],
    built_sharpness: Annotated[float, positive("the same sharpness of the construction")],
) -> Domination:
    """Compare a learned network with a construction: the assumption of lintilhac2026, Theorem 2, per model."""
    return Domination(norm_squared / built_norm_squared, sharpness / built_sharpness)


def _bounded(name: str, setting: BoundSetting, sigma: float, risk: Mapping[str, float], kind: Kind) -> Bound:
    """The bound whose perturbed risk has these terms."""
    perturbed = max(0.0, sum(risk.values()))
    source, explicit, trivial = _ALQUIER, False, setting.trivial
    if setting.tail == "kl":
        clip = 2 * setting.constant
        source, explicit, trivial = _CLIPPED, kind != "estimate", min(trivial, clip)
        risk = {"clip": clip} if perturbed > clip else risk
        perturbed = min(perturbed, clip)
    terms = {**risk, "complexity": _complexity(setting, sigma, perturbed)}
    return Bound(name, terms, explicit, source, kind, trivial, choices={"sigma": sigma})


def _complexity(setting: BoundSetting, sigma: float, perturbed: float) -> float:
    """What the divergence adds to the perturbed risk: all that can be, where no float holds it."""
    clipped = setting.tail == "kl"
    divergence = exp(log(setting.norm_squared) - math.log(2) - 2 * log(sigma))
    if math.isinf(divergence):
        return 2 * setting.constant - perturbed if clipped else math.inf
    samples, confidence, priors = setting.samples, setting.confidence, setting.priors
    if clipped:
        bound = seeger(
            empirical_risk=perturbed,
            divergence=divergence,
            clip=2 * setting.constant,
            samples=samples,
            confidence=confidence,
            priors=priors,
        )
        return bound.terms["complexity"]
    return alquier(
        empirical_risk=0.0,
        divergence=divergence,
        constant=setting.constant,
        samples=samples,
        confidence=confidence,
        priors=priors,
    ).value


def _half_square(sigma: float, value: float) -> float:
    return math.copysign(exp(2 * log(sigma) + log(abs(value)) - math.log(2)), value)


def _log_optimum(setting: BoundSetting, trace: float) -> float:
    """Logarithm of the best σ of the quadratic term, but for the logarithm of the confidence; finite at zeros."""
    size, sharp, samples = log(max(setting.norm_squared, _TINY)), log(max(trace, _TINY)), log(setting.samples)
    if setting.tail == "kl":
        return (math.log(4) + log(setting.constant) + size - samples - sharp) / 4
    return (log(setting.constant) + size / 2 - sharp - samples / 2) / 3


def _sigma(log_sigma: float) -> float:
    return min(max(exp(log_sigma), sys.float_info.min), sys.float_info.max)
