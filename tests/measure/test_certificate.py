"""Certificates: by hand, where they must be vacuous, and by repetition where the true risk is known."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from genscope.bounds import randomised
from genscope.measure import certificate
from genscope.measure.certificate import GRID, certify, constant_risk, grid_divergence, tuned_posterior
from genscope.random import stream
from genscope.refusal import Refusal
from genscope.tasks import Batch
from genscope.train import Draws, GaussianPosterior, PacBayes, adam, cosine, error, fit, logistic, squared
from genscope.train.posterior import least_divergence, moments
from tests.chance import Seldom
from tests.seeds import seed


class Linear(eqx.Module):
    weight: jax.Array
    bias: jax.Array

    def __call__(self, x):
        return self.weight @ x + self.bias


class Table(eqx.Module):
    """A number for every input 0, ..., p - 1."""

    values: jax.Array

    def __call__(self, x):
        return self.values[x]


@pytest.fixture(scope="module")
def regression():
    """A linear target of variance 1 and 20,000 examples."""
    x = jr.rademacher(jr.key(0), (20_000, 6), jnp.float32)
    return Batch(x, 0.6 * x[:, 0] - 0.8 * x[:, 3])


@pytest.fixture(scope="module")
def exact_model():
    return Linear(jnp.asarray([0.6, 0, 0, -0.8, 0, 0]), jnp.zeros(()))


def test_the_number_follows_from_the_draws(regression, exact_model):
    posterior = GaussianPosterior.around(exact_model, 0.05, by_weight=True)
    found = certify(posterior, regression, prior=None, key=jr.key(5), draws=200, examples=32, clip=0.5)
    risks = []
    for number in range(200):
        own = jr.fold_in(jr.key(5), number)
        index = np.asarray(jr.randint(stream(own, "examples"), (32,), 0, 20_000))
        drawn = posterior.draw(stream(own, "weights"))
        predictions = np.asarray(regression.x)[index] @ np.asarray(drawn.weight) + float(drawn.bias)
        risks.append(np.minimum((predictions - np.asarray(regression.y)[index]) ** 2, 0.5).mean())
    expected = randomised.empirical(
        drawn_risk=float(np.mean(risks)),
        draws=200,
        divergence=grid_divergence(posterior, None)[0],
        clip=0.5,
        samples=20_000,
        priors=len(GRID) ** 2,
    )
    assert found.certificate == pytest.approx(expected.value, rel=1e-5)
    assert found.certificate == pytest.approx(sum(found.terms.values()))
    assert found.empirical_risk == pytest.approx(np.mean(risks), rel=1e-5)
    assert not found.vacuous
    assert any("anew" in assumption for assumption in found.assumptions)
    assert any("zero" in assumption for assumption in found.assumptions)


def test_the_divergence_takes_the_best_of_the_grid(exact_model):
    posterior = GaussianPosterior.around(exact_model, 0.037)
    total, chosen = grid_divergence(posterior, None)
    best = 0.0
    for name, group in moments(posterior.mean, posterior.deviation, None, exactly=True).items():
        nats = [0.5 * group.size * (group.square / s**2 - 1 + 2 * np.log(s) - group.log_variance) for s in GRID]
        best += min(nats)
        assert chosen[name] == GRID[int(np.argmin(nats))]
    assert total == pytest.approx(best, rel=1e-12)
    far = grid_divergence(GaussianPosterior.around(exact_model, 1e-8), exact_model)
    assert far[1] == {"weight": GRID[0], "bias": GRID[0]}  # beyond the grid: its end, and more to pay
    assert far[0] > 10


def test_tuned_deviations_make_a_better_certificate(regression, exact_model):
    given = {"prior": None, "clip": 1.0, "loss": squared}
    plain = certify(
        GaussianPosterior.around(exact_model, 0.01, by_weight=True),
        regression,
        key=jr.key(1),
        draws=200,
        examples=32,
        **given,
    )
    tuned = tuned_posterior(exact_model, regression, key=jr.key(2), steps=200, **given)
    better = certify(tuned, regression, key=jr.key(1), draws=200, examples=32, **given)
    assert better.certificate < plain.certificate < better.trivial
    np.testing.assert_array_equal(tuned.mean.weight, exact_model.weight)


def test_training_on_the_bound_finds_the_target_and_certifies_it(regression):
    start = Linear(jnp.zeros(6), jnp.zeros(()))
    found = fit(
        GaussianPosterior.around(start, 0.1, by_weight=True),
        Draws(regression, jr.key(3), 256),
        PacBayes(squared, prior=start, sample_size=20_000),
        until=400,
        optimizer=adam(0.02, schedule=cosine(400)),
    )
    assert not found.diverged
    assert found.losses[-50:].mean() < 0.2 * found.losses[:50].mean()
    certified = certify(found.model, regression, prior=start, key=jr.key(4), draws=200, examples=32)
    assert certified.certificate < 0.1 < certified.trivial
    spread = np.asarray(found.model.deviation.weight)
    assert spread.min() > 0


def test_what_is_no_number_counts_as_the_clip(regression):
    broken = GaussianPosterior.around(Linear(jnp.full(6, 1e30), jnp.zeros(())), 1e25, by_weight=True)
    found = certify(broken, regression, prior=None, key=jr.key(0), draws=200, examples=32, clip=2.0)
    assert found.certificate == 2.0
    assert found.vacuous
    logarithm = certify(
        GaussianPosterior.around(Linear(jnp.zeros(6), jnp.zeros(())), 0.1),
        regression,
        prior=None,
        key=jr.key(0),
        draws=8,
        predict=lambda model, x: jnp.log(-jnp.abs(jax.vmap(model)(x)) - 1),
    )
    assert logarithm.empirical_risk == 1.0


def test_the_best_constant():
    y = Batch(jnp.zeros(4), jnp.array([0.0, 0.0, 0.0, 10.0]))
    assert constant_risk(y, squared, clip=1.0) == pytest.approx(0.25)  # the clip makes 0 better than the mean
    assert constant_risk(y, squared, clip=1e9) == pytest.approx(18.75)
    labels = Batch(jnp.zeros(4), jnp.array([0, 1, 1, 1]))
    assert constant_risk(labels, error, clip=1.0) == 0.25
    entropy = -0.75 * np.log(0.75) - 0.25 * np.log(0.25)
    assert constant_risk(labels, logistic, clip=5.0) == pytest.approx(entropy, rel=1e-5)


def test_classes(regression):
    labels = Batch(regression.x, (regression.y > 0).astype(jnp.float32))
    model = Linear(jnp.asarray([6.0, 0, 0, -8.0, 0, 0]), jnp.zeros(()))
    tuned = tuned_posterior(model, labels, error, prior=None, key=jr.key(2), steps=20)
    found = certify(tuned, labels, error, prior=None, key=jr.key(1), draws=200)
    assert found.certificate < found.trivial
    assert not np.allclose(tuned.deviation.weight, 0.01, rtol=0.1)  # the error itself has no slope
    logits, y = jnp.asarray([2.0, -1.0]), jnp.asarray([1.0, 0.0])
    np.testing.assert_allclose(logistic(logits, y), np.log1p(np.exp([-2.0, -1.0])), rtol=1e-6)
    np.testing.assert_array_equal(error(jnp.asarray([2.0, 1.0, jnp.nan]), jnp.asarray([1, 0, 1])), [0, 1, 1])


def test_a_deviation_that_was_settled_before_costs_nothing(regression):
    model, prior = Linear(jnp.arange(6.0) / 9, jnp.zeros(())), Linear(jnp.zeros(6), jnp.ones(()))
    posterior = GaussianPosterior.around(model, 0.02, by_weight=True)
    total, chosen = grid_divergence(posterior, prior, 0.05)
    far = np.append(np.arange(6) / 9, -1.0)  # by hand: the divergence of two normal laws, weight by weight
    nats = np.log(0.05 / 0.02) + (0.02**2 + far**2) / (2 * 0.05**2) - 0.5
    assert total == pytest.approx(nats.sum(), rel=1e-5)
    assert chosen == {"weight": 0.05, "bias": 0.05}
    assert float(least_divergence(model, posterior.deviation, prior, 0.05)) == pytest.approx(total, rel=1e-5)
    near = {"prior": model, "key": jr.key(1), "draws": 50}
    paid, free = (certify(posterior, regression, **near, prior_deviation=each) for each in (None, 0.02))
    assert free.divergence == pytest.approx(0, abs=1e-4)
    assert free.certificate < paid.certificate
    assert any("settled likewise" in each for each in free.assumptions)
    with pytest.raises(Refusal, match="or leave it out to pay for the best"):
        certify(posterior, regression, **near, prior_deviation=0.0)


class Masked(eqx.Module):
    """With an array that no divergence counts, or without."""

    weight: jax.Array
    mask: jax.Array | None

    def __call__(self, x):
        return self.weight @ x


@pytest.mark.parametrize("before", [jnp.asarray([True, False]), None], ids=["another", "none"])
def test_what_is_no_weight_is_the_same_in_model_and_prior(before, regression):
    mask = jnp.asarray([True, True])
    posterior = GaussianPosterior.around(Masked(jnp.ones(6), mask), 0.02)
    asked = {"key": jr.key(1), "draws": 10, "prior_deviation": 0.1}
    found = certify(posterior, regression, prior=Masked(jnp.zeros(6), mask), **asked)
    assert "fixed without the sample" in found.assumptions[-1]
    with pytest.raises(Refusal, match="differ in an array that is not a weight"):
        certify(posterior, regression, prior=Masked(jnp.zeros(6), before), **asked)


FAILURE = 0.05


def repeated(one, law):
    """How many certificates of independent samples lie below the true risk."""
    return int(sum(one(key) for key in jr.split(jr.key(seed(11)), law.trials)))


NORMAL, WEIGHTS = np.polynomial.hermite_e.hermegauss(60)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def true_risk(posterior, clip):
    """Of a table against fair signs: over the normal law of each value by quadrature."""
    values, spread = np.asarray(posterior.mean.values, float), float(posterior.deviation.values)
    drawn = values[:, None] + spread * NORMAL
    return np.mean([np.minimum((drawn - sign) ** 2, clip) @ WEIGHTS for sign in (-1.0, 1.0)])


def overfitted(key):
    """Whether the certificate of a table that memorised pure noise is below its risk."""
    x, y = jr.randint(stream(key, "x"), (400,), 0, 400), jr.rademacher(stream(key, "y"), (400,), jnp.float32)
    sums, counts = (np.bincount(np.asarray(x), weights, minlength=400) for weights in (np.asarray(y), None))
    start = Table(jnp.zeros(400))
    posterior = GaussianPosterior.around(Table(jnp.asarray(sums / np.maximum(counts, 1), jnp.float32)), 0.3)
    given = {"clip": 4.0, "draws": 300, "examples": 20, "confidence": 1 - FAILURE}
    found = certify(posterior, Batch(x, y), prior=start, key=stream(key, "draws"), **given)
    return found.certificate < true_risk(posterior, 4.0)


def few_draws(key):
    """The same for one number against zeros, where all uncertainty is that of the five draws."""
    model = Table(jnp.zeros(1))
    x, y = jnp.zeros(10_000, int), jnp.ones(10_000)
    posterior = GaussianPosterior.around(model, 0.7)
    found = certify(posterior, Batch(x, y), prior=model, key=key, clip=4.0, draws=5, examples=1, confidence=1 - FAILURE)
    spread = np.minimum((0.7 * NORMAL - 1) ** 2, 4.0) @ WEIGHTS
    return found.certificate < spread


# Without the divergence all certificates of the table are wrong; without the price of the draws half of the number's.
LAWS = {overfitted: Seldom(60, FAILURE, planted=0.9), few_draws: Seldom(150, FAILURE, planted=0.4)}


@pytest.mark.parametrize("one", [overfitted, few_draws])
def test_certificates_hold_as_often_as_they_say(one):
    assert LAWS[one].explains(repeated(one, LAWS[one]))


def test_without_the_divergence_they_would_not(monkeypatch):
    monkeypatch.setattr(certificate, "grid_divergence", lambda *_: (0.0, {}))
    assert not LAWS[overfitted].explains(repeated(overfitted, LAWS[overfitted]))


def test_without_the_price_of_the_draws_they_would_not(monkeypatch):
    def free(*, drawn_risk, draws, trivial, **given):
        return dataclasses.replace(randomised.seeger(empirical_risk=drawn_risk, **given), trivial=trivial)

    monkeypatch.setattr(certificate, "empirical", free)
    assert not LAWS[few_draws].explains(repeated(few_draws, LAWS[few_draws]))


@pytest.mark.parametrize(
    ("change", "advice"),
    [
        ({"loss": error}, "labels must be 0 and 1"),
        ({"clip": 0.0}, "for example, 1"),
        ({"draws": 0}, "at least 1"),
        ({"prior": Linear(jnp.zeros(5), jnp.zeros(()))}, "Give such a prior"),
        ({"batch": Batch(jnp.ones((7, 6)), jnp.ones(7))}, "at least 8 examples"),
        (
            {"posterior": GaussianPosterior.around(Linear(jnp.full(6, jnp.nan), jnp.zeros(())), 0.1)},
            "smaller learning rate",
        ),
    ],
)
def test_refusals(regression, exact_model, change, advice):
    given = {"posterior": GaussianPosterior.around(exact_model, 0.1), "batch": regression, "prior": None} | change
    with pytest.raises(ValueError, match=advice):
        certify(given.pop("posterior"), given.pop("batch"), key=jr.key(0), **given)


def test_training_refuses_what_makes_no_sense(regression, exact_model):
    with pytest.raises(ValueError, match="Correct the one"):
        PacBayes(squared, prior=None, sample_size=20_000, clip=0.0)
    with pytest.raises(ValueError, match="Give one whole number"):
        fit(
            GaussianPosterior.around(exact_model, 0.1), Draws(regression, jr.key(0), 8), squared, 0, optimizer=adam(0.1)
        )
