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
from genscope.display import Card, Displayed, shown
from genscope.random import stream
from genscope.refusal import Refusal
from genscope.tasks import Batch
from genscope.train import Draws, GaussianPosterior, Loss, PacBayes, adam, cosine, error, fit, logistic, squared
from genscope.train.loss import IGNORED, surrogate
from genscope.train.objective import Predict, by_example
from genscope.train.posterior import check_deviation, moments, parameters
from genscope.train.posterior import divergence as nats_of

# Deviations of the prior to choose from, in each group: so dense that the nearest one costs next to nothing.
GRID = tuple(10 ** (step / 100) for step in range(-500, 101))
_COMMON = 8  # classes, the most frequent ones, that a constant prediction may be


@dataclass(frozen=True)
class Certificate(Displayed):
    """A bound on the clipped risk of the randomized predictor, and what it rests on."""

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
    classes: int | None = None
    """Of the labels; None where they are numbers."""

    def card(self) -> Card:
        """What is shown: the certificate, its terms, and what it rests on."""
        rows = [
            *self.terms.items(),
            ("divergence, nats", self.divergence),
            ("best constant", self.trivial),
            ("loss clipped at", self.clip),
        ]
        worth = "Vacuous: no better than a constant." if self.vacuous else "Informative: below the best constant."
        title = f"Risk at most {shown(self.certificate)}, with confidence {shown(self.confidence)}"
        return Card(title, rows, notes=[worth, "The bound holds if:", *(f"- {each}." for each in self.assumptions)])


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
    prior_deviation: float | None = None,
) -> Certificate:
    """Draw `draws` predictors, each measured on `examples` examples of the sample, and bound the risk.

    Posterior and prior are what they are before `key` is used: a key that helped to choose them proves nothing. The
    means of the prior, a model or None for zeros, must not depend on the sample; its deviations are chosen here, and
    paid for, unless one for all weights is given that does not depend on the sample either.
    """
    shape = check(posterior, batch, loss, prior=prior, clip=clip, predict=predict)
    if min(draws, examples) < 1:
        raise Refusal(f"certify got {draws=} and {examples=}: both must be at least 1. Increase the one that is not.")
    divergence, deviations = grid_divergence(posterior, prior, prior_deviation)
    risks = drawn_risks(posterior, batch, loss, key=key, clip=clip, draws=draws, examples=examples, predict=predict)
    trivial = constant_risk(batch, loss, clip=clip, shape=shape)
    bound = empirical(
        drawn_risk=float(risks.mean()),
        draws=draws,
        divergence=divergence,
        clip=clip,
        samples=len(batch.y),
        confidence=confidence,
        priors=1 if prior_deviation else len(GRID) ** len(deviations),
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
        assumptions=_assumptions(posterior.mean, prior, loss, clip, prior_deviation),
        classes=loss.classes(shape, batch.y.shape),
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
    prior_deviation: float | None = None,
) -> GaussianPosterior:
    """A posterior about a trained model: a deviation for each weight, learned on the bound from `deviation` on.

    The sample may be used for that, since the certificate holds for all posteriors at once. The error has no slope: the
    cross entropy takes its place.
    """
    start = GaussianPosterior.around(model, deviation, by_weight=True)
    check(start, batch, loss, prior=prior, clip=clip, predict=predict)
    smooth = surrogate if loss is error else loss
    size = len(batch.y)
    found = fit(
        start,
        Draws(batch, key, min(256, size)),
        PacBayes(
            smooth,
            prior=prior,
            sample_size=size,
            clip=clip,
            confidence=confidence,
            predict=predict,
            prior_deviation=prior_deviation,
        ),
        until=steps,
        optimizer=adam(0.05, schedule=cosine(steps)),
        every=steps,
        trainable=GaussianPosterior(False, True),
    )
    if found.diverged:
        raise Refusal(
            f"the {smooth.name} loss or its slope is not finite at weights near the model's: the search for deviations "
            "needs both for every example. Check the loss, and the model's outputs on these data."
        )
    return found.model


def grid_divergence(
    posterior: GaussianPosterior, prior: PyTree | None, prior_deviation: float | None = None
) -> tuple[float, dict[str, float]]:
    r"""$\mathrm{KL}(\rho\|\pi)$ with the best deviation of `GRID` in each group, or a given one, and these."""
    check_deviation(prior_deviation)
    total, chosen = 0.0, {}
    for name, group in moments(posterior.mean, posterior.deviation, prior, exactly=True).items():
        if prior_deviation is not None:
            chosen[name] = prior_deviation
            total += max(0.0, float(nats_of(group, prior_deviation)))
            continue
        place = 100 * math.log10(math.sqrt(group.square)) + 500  # of the best deviation in the grid
        near = {min(max(round_(place), 0), len(GRID) - 1) for round_ in (math.floor, math.ceil)}
        nats = {GRID[j]: nats_of(group, GRID[j]) for j in near}
        chosen[name] = min(nats, key=lambda deviation: nats[deviation])
        total += max(0.0, float(nats[chosen[name]]))
    return total, chosen


def constant_risk(
    batch: Batch, loss: Loss = squared, *, clip: float = 1.0, shape: tuple[int, ...] | None = None
) -> float:
    """Clipped risk on the sample of the best constant prediction: of the mean, and of quantiles, signs or classes.

    The shape is that of the predictions, if it is not that of the labels. Of a loss of the user's nothing is known but
    that it is clipped.
    """
    if loss.labels == "any":
        return clip
    if shape is not None and loss.by_class(shape, batch.y.shape):
        return _constant_class_risk(np.asarray(batch.y), loss, clip, shape[-1])
    y = np.asarray(batch.y, np.float64).reshape(len(batch.y), -1)
    mean = y.mean(axis=0)
    if loss is logistic:
        share = np.clip(mean, 1e-9, 1 - 1e-9)
        constants = [np.log(share / (1 - share))]
    elif loss.labels != "numbers":
        constants = [np.ones_like(mean), -np.ones_like(mean)]
    else:
        constants = [mean, *np.quantile(y, np.linspace(0, 1, 21), axis=0)]
    with jax.numpy_rank_promotion("allow"):
        risks = [
            np.minimum(np.asarray(loss.each(jnp.float32(c), jnp.float32(y))).mean(axis=1), clip).mean()
            for c in constants
        ]
    return float(min(risks))


def _constant_class_risk(y: np.ndarray, loss: Loss, clip: float, classes: int) -> float:
    """Of each frequent class for the error; of the classes' shares, and of equal ones, for the cross entropy."""
    labels = y.reshape(len(y), -1)
    counts = labels != IGNORED
    share = np.bincount(labels[counts], minlength=classes) / counts.sum()
    if loss is error:
        each = [(labels != common).astype(float) for common in np.argsort(-share)[:_COMMON]]
    else:
        laws = (np.maximum(share, 1e-9), np.full(classes, 1 / classes))
        each = [-np.log(law)[np.where(counts, labels, 0)] for law in laws]
    return float(min(np.minimum((of * counts).sum(axis=1) / counts.sum(axis=1), clip).mean() for of in each))


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
        index = jr.randint(stream(own, "examples"), (examples,), 0, len(batch.y))
        x, y = jax.tree.map(lambda part: part[index], (batch.x, batch.y))
        each = loss(predict(posterior.draw(stream(own, "weights")), x), y).astype(clip.dtype)
        # What is no number counts as the clip; a loss of the user's below 0 as 0.
        return jnp.where(each <= clip, jnp.maximum(each, 0), clip).mean()

    return jax.lax.map(risk, jnp.arange(draws))


def _fixed(model: PyTree) -> list[np.ndarray]:
    """Arrays that are no weights: buffers, and what is not trained."""
    return [
        np.asarray(leaf) for leaf in jax.tree.leaves(model) if eqx.is_array(leaf) and not eqx.is_inexact_array(leaf)
    ]


def _assumptions(
    model: PyTree, prior: PyTree | None, loss: Loss, clip: float, prior_deviation: float | None
) -> tuple[str, ...]:
    centre = "zero" if prior is None else "those of the given model, which were fixed without the sample"
    return (
        "the examples are independent draws from one law, and the risk is under that law",
        f"the prior's means are {centre}; its deviations "
        + ("come from a grid that was fixed in advance" if prior_deviation is None else "were settled likewise"),
        "weights are drawn anew for every prediction: the network with the mean weights is not covered",
        f"the loss is {loss.name}, and a loss above {clip:g} counts as {clip:g}; both were settled without the sample",
        "the draws were made after the posterior was fixed, by a seed that was not chosen for its result",
        *(
            ["arrays that are no weights (buffers, frozen parts) were fixed without the sample"]
            if _fixed(model)
            else []
        ),
    )


def check(
    posterior: GaussianPosterior, batch: Batch, loss: Loss, *, prior: PyTree | None, clip: float, predict: Predict
) -> tuple[int, ...]:
    """Refuse what has no certificate; the shape of the predictions."""
    if not 0 < clip < math.inf:
        raise Refusal(
            f"certify got {clip=}: the value at which losses are clipped must be positive. Give, for example, 1."
        )
    sizes = {len(part) for part in jax.tree.leaves(batch.x)}
    if sizes != {len(batch.y)} or len(batch.y) < 8:
        raise Refusal(
            f"certify got {', '.join(map(str, sorted(sizes)))} inputs and {len(batch.y)} labels: the theorem needs at "
            "least 8 examples, each with its label. Give more, or x and y of the same length."
        )
    if batch.weight is not None:
        raise Refusal(
            "certify got weighted examples: the theorem is about independent examples that all count the same. Leave "
            "the weights out."
        )
    shape = eqx.filter_eval_shape(predict, posterior.mean, batch.x).shape
    loss.check(shape, batch.y)
    shapes = [leaf.shape for leaf in jax.tree.leaves(parameters(posterior.mean))]
    others = shapes if prior is None else [leaf.shape for leaf in jax.tree.leaves(parameters(prior))]
    if shapes != others or not shapes:
        raise Refusal(
            f"certify got {_difference(shapes, others)}: the prior must be a model with weights of the same shapes, "
            "such as the initialization. Give such a prior, or none."
        )
    ours, before = _fixed(posterior.mean), _fixed(posterior.mean if prior is None else prior)
    if len(ours) != len(before) or not all(map(np.array_equal, ours, before)):
        raise Refusal(
            "certify got a model and a prior that differ in an array that is not a weight, such as the running "
            "statistics of batch normalization: the divergence does not cover these, so they must not depend on the "
            "training set. Freeze them before the model sees these data (in PyTorch, call eval() on those layers), and "
            "give the prior the same values."
        )
    if (wrong := _not_finite(prior)) is not None:
        raise Refusal(
            f"certify got a prior with a weight that is {wrong}: the weights of a prior must be finite, as those of an "
            "initialization are. Give another prior, or none."
        )
    if (wrong := _not_finite(posterior.mean)) is not None:
        raise Refusal(
            f"certify got a model with a weight that is {wrong}: weights must be finite, so training diverged. Train "
            "with a smaller learning rate."
        )
    deviations = [np.asarray(leaf) for leaf in jax.tree.leaves(posterior.deviation)]
    if not all((np.isfinite(array) & (array > 0)).all() for array in deviations):
        raise Refusal(
            "certify got standard deviations of weights that are not finite and positive: training on the bound "
            "diverged. Train with a smaller learning rate."
        )
    return shape


def _difference(shapes: list[tuple[int, ...]], others: list[tuple[int, ...]]) -> str:
    """Where the shapes of a model and a prior differ first.

    >>> _difference([(2, 3), (2,)], [(2, 3), (4,)])
    'a model whose array of weights number 2 has shape (2,), and a prior whose has (4,)'
    """
    if not shapes:
        return "a model without weights"
    if len(shapes) != len(others):
        return f"a model with {len(shapes)} arrays of weights and a prior with {len(others)}"
    number = next(each for each, (one, other) in enumerate(zip(shapes, others, strict=True)) if one != other)
    return (
        f"a model whose array of weights number {number + 1} has shape {shapes[number]}, and a prior whose has "
        f"{others[number]}"
    )


def _not_finite(model: PyTree | None) -> float | None:
    """A weight that is not finite, if there is one."""
    for leaf in map(np.asarray, jax.tree.leaves(parameters(model))):
        if not np.isfinite(leaf).all():
            return float(leaf[~np.isfinite(leaf)][0])
    return None
