"""The population's risk, from its estimate."""

import jax
import jax.random as jr

from genscope.measure.risk import population_risk
from genscope.tasks.token_regression import TokenRegression
from tests.chance import assert_estimate


def test_population_risk_of_nothing_is_the_variance_of_the_labels():
    """Predicting 0.3 of the label is told from predicting 0."""
    task = TokenRegression.draw(jr.key(0), context_length=3, dim=3)
    for share, expected in ((0.0, 1.0), (0.3, 0.49)):
        risk = population_risk(
            lambda x, share=share: share * jax.vmap(task.target)(x), task, key=jr.key(3), size=20_000
        )
        assert_estimate(risk, expected, planted=1.49 - expected)
