"""The three risks: by hand, equal on constant sequences, and the population's estimate."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from genscope.measure.risk import averaged_risk, pointwise_risk, population_risk
from genscope.tasks.token_regression import TokenRegression

PREDICTIONS, LABELS = jnp.array([[1.0, 2.0], [0.0, 5.0]]), jnp.array([[0.0, 2.0], [1.0, 1.0]])


def test_values_by_hand():
    assert float(averaged_risk(PREDICTIONS, LABELS)) == pytest.approx((1 + 0 + 1 + 16) / 4)
    assert float(averaged_risk(PREDICTIONS, LABELS, truncation=4.0)) == pytest.approx((1 + 0 + 1 + 4) / 4)
    assert float(pointwise_risk(PREDICTIONS, LABELS, jnp.array([1, 1]))) == pytest.approx((0 + 16) / 2)


def test_risks_agree_on_constant_sequences():
    task = TokenRegression.draw(jr.key(0), context_length=4, dim=3, shared_positions=True)
    batch = task.sample(jr.key(1), 50)
    guess = jnp.broadcast_to(jr.normal(jr.key(2), (50, 1)), (50, 4))
    positions = jnp.asarray(np.random.default_rng(0).integers(4, size=50), dtype="int32")
    averaged, pointwise = averaged_risk(guess, batch.y), pointwise_risk(guess, batch.y, positions)
    assert float(averaged) == pytest.approx(float(pointwise), rel=1e-5)


def test_population_risk_of_nothing_is_the_variance_of_the_labels():
    """False alarm 1e-9; predicting 0.3 of the label is told from predicting 0."""
    task = TokenRegression.draw(jr.key(0), context_length=3, dim=3)
    for share, expected in ((0.0, 1.0), (0.3, 0.49)):
        risk = population_risk(
            lambda x, share=share: share * jax.vmap(task.target)(x), task, key=jr.key(3), size=20_000
        )
        assert abs(risk.mean - expected) <= 6.1 * risk.sem
        assert abs(risk.mean - (1.49 - expected)) > 6.1 * risk.sem


def test_truncation_is_positive():
    with pytest.raises(ValueError, match="Leave it out"):
        averaged_risk(PREDICTIONS, LABELS, truncation=0.0)
