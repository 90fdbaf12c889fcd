r"""PAC-Bayes theorems: the risk of a predictor whose weights are drawn anew for each use.

Weights are drawn from a posterior $\rho$, which may depend on the sample; the prior $\pi$ may not. With probability
$1-\delta$ over the sample, for all $\rho$ at once, the risk $\mathbb E_\rho R$ is bounded by the risk on the sample
$\mathbb E_\rho\hat R$ and $\mathrm{KL}(\rho\|\pi)$. A choice among $G$ priors is paid by $\log\frac1\delta\to\log
\frac G\delta$; one among posteriors is free.

Source: alquier2024, Theorem 2.1; maurer2004, Theorem 5; langford2005 (the risk on the sample from draws).
Guarantee: theorems, with all constants. They speak of the randomized predictor, not of the mean of $\rho$.
"""

import math
from typing import Annotated

from genscope.bounds._base import Bound
from genscope.bounds._logarithms import exp, log
from genscope.bounds._parameters import Choice, Number, checked, count, norm, positive
from genscope.bounds.binary_kl import kl_inverse
from genscope.bounds.risk import Confidence, Samples

EmpiricalRisk = Annotated[float, norm("risk on the sample")]
Divergence = Annotated[float, norm("KL divergence of posterior and prior in nats")]
LossConstant = Annotated[float, positive("C, sub-Gaussian constant of the loss; half its range where it is clipped")]
Clip = Annotated[float, positive("losses above this value count as this value")]
Priors = Annotated[float, count("number of priors to choose from after the sample is seen")]
Enough = Annotated[float, Number("sample size", low=8, closed=(True, False), whole=True)]
Trivial = Annotated[float, positive("risk of the best constant: variance of the labels, ¼ in the φ basis, 1 in χ")]

SEEGER = "maurer2004, Theorem 5"


@checked
def alquier(
    *,
    empirical_risk: EmpiricalRisk,
    divergence: Divergence,
    constant: LossConstant,
    samples: Samples,
    confidence: Confidence = 0.95,
    priors: Priors = 1,
    temperature: Annotated[float | None, positive("λ, fixed in advance (default: the best for this KL)")] = None,
) -> Bound:
    r"""Risk of a randomized predictor whose loss is sub-Gaussian under the prior (alquier2024, Theorem 2.1).

    $\mathbb E_\rho R\le\mathbb E_\rho\hat R+\frac{\lambda C^2}{2n}+\frac{\mathrm{KL}+\log(G/\delta)}\lambda$, if
    $\mathbb Ee^{t(R(\theta)-\ell(\theta,x))}\le e^{t^2C^2/2}$ for all $t>0$ and $\pi$-almost all $\theta$. The default
    $\lambda=\sqrt{2n(\mathrm{KL}+\log(G/\delta))}/C$ is allowed where the KL is known before the sample; otherwise fix
    $\lambda$, or choose among $G_\lambda$ values and count $GG_\lambda$ priors.

    Proof. For fixed $\theta$, $\mathbb Ee^{\lambda(R-\hat R)}\le e^{\lambda^2C^2/2n}$; integrate over $\pi$, exchange,
    bound $\sup_\rho\lambda\mathbb E_\rho(R-\hat R)-\mathrm{KL}$ by the log of that (Donsker and Varadhan); Markov.
    """
    nats = divergence + _tail(confidence, priors)
    log_temperature = (
        (math.log(2) + log(samples) + log(nats)) / 2 - log(constant) if temperature is None else log(temperature)
    )
    terms = {
        "empirical risk": empirical_risk,
        "fluctuation": exp(log_temperature + 2 * log(constant) - math.log(2) - log(samples)),
        "complexity": exp(log(nats) - log_temperature),
    }
    return Bound("alquier", terms, explicit=True, source="alquier2024, Theorem 2.1")


@checked
def seeger(
    *,
    empirical_risk: EmpiricalRisk,
    divergence: Divergence,
    clip: Clip,
    samples: Enough,
    confidence: Confidence = 0.95,
    priors: Priors = 1,
    relaxed: Annotated[bool, Choice("the closed form R̂ + √(2BR̂ψ) + 2Bψ in place of the inverse")] = False,
) -> Bound:
    r"""Risk of a randomized predictor for losses in $[0,B]$, whatever the prior (maurer2004, Theorem 5).

    $\mathrm{kl}(\mathbb E_\rho\hat R/B\,\|\,\mathbb E_\rho R/B)\le\psi=\frac{\mathrm{KL}+\log(2\sqrt nG/\delta)}n$ for
    $n\ge8$ and all $\rho$ at once; nothing to tune. An upper bound of $\mathbb E_\rho\hat R$ will do, as the inverse
    does not decrease.
    """
    psi = _psi(divergence, samples, confidence, priors)
    risk = min(empirical_risk, clip)
    if relaxed:
        value = min(clip, risk + math.sqrt(2 * clip * risk) * math.sqrt(psi) + 2 * clip * psi)
    else:
        value = clip * kl_inverse(risk / clip, psi)
    terms = {"empirical risk": risk, "complexity": max(0.0, value - risk)}
    return Bound("seeger", terms, explicit=True, source=SEEGER, trivial=clip)


@checked
def empirical(
    *,
    drawn_risk: Annotated[float, norm("mean clipped risk on the sample of the drawn predictors")],
    draws: Annotated[float, count("number of independent draws")],
    divergence: Divergence,
    clip: Clip,
    samples: Enough,
    confidence: Confidence = 0.95,
    priors: Priors = 1,
    trivial: Annotated[float | None, norm("risk of the best constant (default: the clip)")] = None,
) -> Bound:
    r"""Certificate: risk of a randomized predictor from its risk on the sample at some draws (maurer2004, Theorem 5).

    Half of $\delta$ each: first $\bar r=B\,\mathrm{kl}^{-1}(\hat r_m/B,\frac1m\log\frac4\delta)$ bounds the risk on the
    sample by that of the draws, then $B\,\mathrm{kl}^{-1}(\bar r/B,\psi)$ the risk. The draws are fresh: made after
    posterior and prior are fixed. A draw's value is any unbiased estimate in $[0,B]$ of its risk on the sample, such as
    the mean over a random part of it.
    """
    half = (1 + confidence) / 2
    risk = min(drawn_risk, clip)
    seen = clip * kl_inverse(risk / clip, (math.log(2) + _tail(half, 1)) / draws)
    value = clip * kl_inverse(min(1.0, seen / clip), _psi(divergence, samples, half, priors))
    terms = {"empirical risk": risk, "draws": max(0.0, seen - risk), "complexity": max(0.0, value - seen)}
    known = clip if trivial is None else min(clip, trivial)
    return Bound("empirical", terms, explicit=True, source=SEEGER, kind="semi-analytic", trivial=known)


def _tail(confidence: float, priors: float) -> float:
    return log(priors) - math.log1p(-confidence)


def _psi(divergence: float, samples: float, confidence: float, priors: float) -> float:
    nats = divergence + math.log(2) + log(samples) / 2 + _tail(confidence, priors)
    return exp(log(nats) - log(samples))
