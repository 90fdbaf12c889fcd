r"""PAC-Bayes certificates: what is proved of a trained network's risk, if its weights are drawn anew for each use.

The network with weights from the posterior $N(\theta,\operatorname{diag}\sigma^2)$ has clipped risk $\mathbb
E_\rho\mathbb E\min(\ell,B)$. Some draws bound its clipped risk on the sample, and this with the divergence from a prior
bounds the risk: `bounds.randomised.empirical`.

Source: maurer2004, Theorem 5; langford2005; lintilhac2026, Section 1.2 (posterior and prior about Gaussian weights).
Departures: the prior has a deviation of its own in each group, from a grid that is paid for by its logarithm. A draw is
measured on a random part of the sample: unbiased, which is all that the theorem asks, and as cheap as one likes.
Guarantee: with the stated confidence, over sample and draws, under the stated `assumptions`; float32 rounding aside.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Key, PyTree

from genscope.bounds.randomised import empirical
from genscope.random import stream
from genscope.refusal import Refusal
from genscope.tasks import Batch
from genscope.train import Draws, GaussianPosterior, Loss, PacBayes, adam, cosine, cross_entropy, error, fit, squared
from genscope.train.objective import Predict, by_example
from genscope.train.posterior import moments, parameters

# Deviations of the prior to choose from, in each group: so dense that the nearest one costs next to nothing.
GRID = tuple(10 ** (step / 100) for step in range(-500, 101))


@dataclass(frozen=True)
class Certificate:
    """A bound on the clipped risk of the randomised predictor, and what it rests on."""

    certificate: float
    empirical_risk: float
    """Mean clipped risk of the drawn predictors on the sample."""
    divergence: float
    terms: Mapping[str, float]
    confidence: float
    clip: float
    trivial: float
    """Clipped risk of the best constant, on the sample."""
    vacuous: bool
    priors: Mapping[str, float]
    """Deviation of the prior in each group."""
    assumptions: tuple[str, ...]


def certify(
    posterior: GaussianPosterior,
    batch: Batch,
    loss: Loss = squared,
    *,
    prior: PyTree | None,
    key: Key[Array, ""],
    clip: float = 1.0,
    draws: int = 1000,
    examples: int = 256,
    confidence: float = 0.95,
    predict: Predict = by_example,
) -> Certificate:
    """Draw `draws` predictors, each measured on `examples` examples of the sample, and bound the risk.

    Posterior and prior are what they are before `key` is used: a key that helped to choose them proves nothing. The
    means of the prior, a model or None for zeros, must not depend on the sample; its deviations are chosen here.
    """
    check(posterior, batch, loss, prior=prior, clip=clip)
    if min(draws, examples) < 1:
        raise Refusal(f"certify got {draws=} and {examples=}: both are counts. Give at least 1.")
    divergence, deviations = grid_divergence(posterior, prior)
    risks = drawn_risks(posterior, batch, loss, key=key, clip=clip, draws=draws, examples=examples, predict=predict)
    trivial = constant_risk(batch, loss, clip=clip)
    bound = empirical(
        drawn_risk=float(risks.mean()),
        draws=draws,
        divergence=divergence,
        clip=clip,
        samples=len(batch.x),
        confidence=confidence,
        priors=len(GRID) ** len(deviations),
        trivial=trivial,
    )
    return Certificate(
        certificate=bound.value,
        empirical_risk=bound.terms["empirical risk"],
        divergence=divergence,
        terms=bound.terms,
        confidence=confidence,
        clip=clip,
        trivial=trivial,
        vacuous=bool(bound.vacuous),
        priors=deviations,
        assumptions=_assumptions(prior, loss, clip),
    )


def tuned_posterior(
    model: PyTree,
    batch: Batch,
    loss: Loss = squared,
    *,
    prior: PyTree | None,
    key: Key[Array, ""],
    clip: float = 1.0,
    confidence: float = 0.95,
    steps: int = 300,
    deviation: float = 0.01,
    predict: Predict = by_example,
) -> GaussianPosterior:
    """A posterior about a trained model: a deviation for each weight, learned on the bound from `deviation` on.

    The sample may be used for that, since the certificate holds for all posteriors at once. The error has no slope: the
    cross entropy takes its place.
    """
    start = GaussianPosterior.around(model, deviation, by_weight=True)
    check(start, batch, loss, prior=prior, clip=clip)
    smooth = cross_entropy if loss is error else loss
    size = len(batch.x)
    return fit(
        start,
        Draws(batch, key, min(256, size)),
        PacBayes(smooth, prior=prior, sample_size=size, clip=clip, confidence=confidence, predict=predict),
        until=steps,
        optimizer=adam(0.05, schedule=cosine(steps)),
        every=steps,
        trainable=GaussianPosterior(False, True),
    ).model


def grid_divergence(posterior: GaussianPosterior, prior: PyTree | None) -> tuple[float, dict[str, float]]:
    r"""$\mathrm{KL}(\rho\|\pi)$ with the best deviation of `GRID` in each group, and these deviations."""
    total, chosen = 0.0, {}
    for name, group in moments(posterior.mean, posterior.deviation, prior, exactly=True).items():
        place = 100 * math.log10(math.sqrt(group.square)) + 500  # of the best deviation in the grid
        near = {min(max(round_(place), 0), len(GRID) - 1) for round_ in (math.floor, math.ceil)}
        nats = {
            GRID[j]: 0.5 * group.size * (group.square / GRID[j] ** 2 - 1 + 2 * math.log(GRID[j]) - group.log_variance)
            for j in near
        }
        chosen[name] = min(nats, key=lambda deviation: nats[deviation])
        total += max(0.0, float(nats[chosen[name]]))
    return total, chosen


def constant_risk(batch: Batch, loss: Loss = squared, *, clip: float = 1.0) -> float:
    """Clipped risk on the sample of the best constant prediction: of the mean, and of quantiles or signs."""
    y = np.asarray(batch.y, np.float64).reshape(len(batch.y), -1)
    mean = y.mean(axis=0)
    if loss is cross_entropy:
        share = np.clip(mean, 1e-9, 1 - 1e-9)
        constants = [np.log(share / (1 - share))]
    elif loss.binary:
        constants = [np.ones_like(mean), -np.ones_like(mean)]
    else:
        constants = [mean, *np.quantile(y, np.linspace(0, 1, 21), axis=0)]
    with jax.numpy_rank_promotion("allow"):
        risks = [
            np.minimum(np.asarray(loss.each(jnp.float32(c), jnp.float32(y))).mean(axis=1), clip).mean()
            for c in constants
        ]
    return float(min(risks))


def drawn_risks(
    posterior: GaussianPosterior,
    batch: Batch,
    loss: Loss = squared,
    *,
    key: Key[Array, ""],
    clip: float = 1.0,
    draws: int = 1000,
    examples: int = 256,
    predict: Predict = by_example,
) -> Float[np.ndarray, " draws"]:
    """Clipped risk of each of the drawn predictors on `examples` random examples of the batch, with replacement."""
    drawn = _drawn_risks(posterior, batch, loss, key, jnp.float32(clip), draws, examples, predict)
    return np.asarray(drawn, np.float64)


@eqx.filter_jit
def _drawn_risks(
    posterior: GaussianPosterior,
    batch: Batch,
    loss: Loss,
    key: Key[Array, ""],
    clip: Float[Array, ""],
    draws: int,
    examples: int,
    predict: Predict,
) -> Float[Array, " draws"]:
    def risk(number: Array) -> Array:
        own = jr.fold_in(key, number)
        index = jr.randint(stream(own, "examples"), (examples,), 0, len(batch.x))
        predictions = predict(posterior.draw(stream(own, "weights")), batch.x[index])
        each = loss(predictions, batch.y[index]).astype(clip.dtype)
        return jnp.where(each <= clip, each, clip).mean()  # what is no number counts as the clip

    return jax.lax.map(risk, jnp.arange(draws))


def _assumptions(prior: PyTree | None, loss: Loss, clip: float) -> tuple[str, ...]:
    centre = "zero" if prior is None else "those of the given model, which were fixed without the sample"
    return (
        "the examples are independent draws from one law, and the risk is under that law",
        f"the prior's means are {centre}; its deviations come from a grid that was fixed in advance",
        "weights are drawn anew for every prediction: nothing is said of the network with the mean weights",
        f"the loss is {loss.name}, and a loss above {clip:g} counts as {clip:g}; both were settled without the sample",
        "the draws were made after the posterior was fixed, by a seed that was not chosen for its result",
    )


def check(posterior: GaussianPosterior, batch: Batch, loss: Loss, *, prior: PyTree | None, clip: float) -> None:
    """Refuse what has no certificate."""
    if not 0 < clip < math.inf:
        raise Refusal(f"certify got {clip=}: losses are cut off at a positive number. Give one, such as 1.")
    if len(batch.x) != len(batch.y) or len(batch.x) < 8:
        raise Refusal(
            f"certify got {len(batch.x)} inputs and {len(batch.y)} labels: the theorem needs at least 8 examples, each "
            "with its label. Give more, or x and y of one length."
        )
    labels = np.asarray(batch.y)
    if loss.binary and not np.isin(labels, (0, 1)).all():
        strange = labels[~np.isin(labels, (0, 1))].reshape(-1)[0]
        raise Refusal(
            f"certify got the label {strange} for the {loss.name} loss: classes are 0 and 1. Convert the labels, or "
            "take the squared loss."
        )
    shapes = [leaf.shape for leaf in jax.tree.leaves(parameters(posterior.mean))]
    others = shapes if prior is None else [leaf.shape for leaf in jax.tree.leaves(parameters(prior))]
    if shapes != others or not shapes:
        raise Refusal(
            f"certify got a model with arrays of shapes {shapes} and a prior with {others}: the prior is a model of "
            "the same shapes, such as the initialisation, and a model has weights. Give such a prior, or none."
        )
    arrays = [np.asarray(leaf) for leaf in jax.tree.leaves((parameters(posterior), parameters(prior)))]
    deviations = [np.asarray(leaf) for leaf in jax.tree.leaves(posterior.deviation)]
    if not all(np.isfinite(array).all() for array in arrays) or any((array <= 0).any() for array in deviations):
        raise Refusal(
            "certify got weights that are not finite, or deviations that are not positive: training went astray. "
            "Train with a smaller rate, and leave out what diverged."
        )
