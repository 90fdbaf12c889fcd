r"""The squared risk of a predictor of sequences.

Source: mousavi2025, Section 2 (population risk).
Departures: estimated on fresh prompts, with its standard error.
Guarantee: an unbiased estimate.
"""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from genscope.estimate import Estimate
from genscope.tasks import AbstractTask


def population_risk(
    predict: Callable[[Array], Float[Array, "n N"]], task: AbstractTask, *, key: Key[Array, ""], size: int = 10_000
) -> Estimate:
    r"""$R=\frac1N\mathbb E\|\hat y(p)-y\|^2$ from `size` fresh prompts, which are independent (positions are not)."""
    batch = task.sample(key, size)
    by_prompt = jnp.mean((predict(batch.x) - batch.y) ** 2, axis=1)
    return Estimate.of(np.asarray(by_prompt, float))
