"""Learning rules against closed forms of linear regression: ridge, the ball, interpolation of least norm."""

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from scipy.optimize import brentq

from genscope.precision import float64
from genscope.refusal import Refusal
from genscope.tasks import Batch
from genscope.train import Constrained, Draws, MinimumNorm, Regularised, Risk, Stationary, Whole, adam, cosine, fit, sgd
from genscope.train import squared as loss

CHANCE = np.random.default_rng(4)
X, Y = CHANCE.normal(size=(6, 4)), CHANCE.normal(size=6)  # no exact fit
WIDE, LABELS = CHANCE.normal(size=(3, 5)), CHANCE.normal(size=3)  # many


class Weights(eqx.Module):
    w: jnp.ndarray

    def __call__(self, x):
        return jnp.sum(self.w * x)


def run(objective, x, y, until, optimizer, start=0.3):
    with float64():
        batch = Batch(jnp.asarray(x), jnp.asarray(y))
        found = fit(
            Weights(jnp.full(x.shape[1], start)), Whole(batch), objective(), until, optimizer=optimizer(), every=500
        )
        return found, np.asarray(found.model.w)


def ridge(penalty, x=X, y=Y):
    return np.linalg.solve(x.T @ x / len(y) * 2 + penalty * np.eye(x.shape[1]), x.T @ y / len(y) * 2)


def test_a_stationary_point_of_the_regularised_risk_is_ridge_regression():
    found, w = run(
        lambda: Regularised(Risk(loss), 0.3), X, Y, [20_000, Stationary(1e-10)], lambda: sgd(0.05, momentum=0.9)
    )
    assert found.ended == "stationary"
    assert w == pytest.approx(ridge(0.3), abs=1e-8)
    assert found.recorded["risk"][-1] == pytest.approx(np.mean((X @ w - Y) ** 2), rel=1e-6)
    assert np.abs(w - ridge(0.36)).max() > 1e-3  # which a penalty off by a fifth would give


def test_the_best_of_a_ball_is_on_its_sphere():
    free = np.linalg.lstsq(X, Y)[0]
    radius = 0.5 * float(np.linalg.norm(free))
    wanted = ridge(brentq(lambda penalty: np.linalg.norm(ridge(penalty)) - radius, 1e-6, 1e3))
    found, w = run(lambda: Constrained(Risk(loss), radius), X, Y, 4000, lambda: sgd(0.05))
    with float64():
        inside = np.asarray(Constrained(Risk(loss), radius).within(found.model).w)
    assert np.linalg.norm(inside) == pytest.approx(radius)
    assert inside == pytest.approx(wanted, abs=1e-6)
    assert w / np.linalg.norm(w) == pytest.approx(inside / radius)
    roomy, w = run(lambda: Constrained(Risk(loss), 10 * radius), X, Y, 4000, lambda: sgd(0.05))
    assert w == pytest.approx(free, abs=1e-6)
    assert roomy.loss == pytest.approx(np.mean((X @ free - Y) ** 2))


@pytest.mark.parametrize("share", [0.02, 0.3])
def test_least_norm_within_an_excess_of_the_least_risk(share):
    """The multiplier of the constraint says which ridge regression it is."""
    excess = share * float(np.mean(LABELS**2))

    def risk(w):
        return np.mean((WIDE @ w - LABELS) ** 2)

    inverse = brentq(lambda p: risk(ridge(p, WIDE, LABELS)) - excess, 1e-9, 1e3)  # of the multiplier
    wanted = ridge(inverse, WIDE, LABELS)
    steps = 8000

    def optimizer():
        return adam(0.02, schedule=cosine(steps))

    found, w = run(lambda: MinimumNorm(Risk(loss), excess, penalty=3 / inverse), WIDE, LABELS, steps, optimizer)
    assert w == pytest.approx(wanted, abs=2e-3)
    assert risk(w) == pytest.approx(excess, rel=1e-2)
    assert found.recorded["squared_norm"][-1] == pytest.approx(w @ w, rel=1e-2)


def test_refusals():
    for rule in (
        lambda: Regularised(Risk(loss), 0.0),
        lambda: Constrained(Risk(loss), -1.0),
        lambda: MinimumNorm(Risk(loss), 0.1, penalty=0.0),
    ):
        with pytest.raises(Refusal, match="it must be positive"):
            rule()
    batch = Batch(jnp.asarray(X, "float32"), jnp.asarray(Y, "float32"))
    with pytest.raises(Refusal, match=r"Train on train\.Whole"):
        fit(
            Weights(jnp.zeros(4)),
            Draws(batch, jr.key(0), 2),
            Regularised(Risk(loss), 0.1),
            [10, Stationary(1e-3)],
            optimizer=sgd(0.1),
        )
