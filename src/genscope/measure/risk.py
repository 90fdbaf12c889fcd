r"""The three squared risks of a predictor of sequences, truncated where asked.

Source: mousavi2025, Section 2: population, averaged empirical and point-wise empirical risk.
Departures: the population risk is estimated on fresh prompts, with its standard error.
Guarantee: the empirical risks are exact; the population risk is an unbiased estimate.
"""

import math
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from genscope.estimate import Estimate
from genscope.tasks import AbstractTask


def squares(
    predictions: Float[Array, "n N"], labels: Float[Array, "n N"], truncation: float = math.inf
) -> Float[Array, "n N"]:
    r"""$(\hat y-y)^2\wedge\tau$ at each position."""
    if not truncation > 0:
        raise ValueError(f"got {truncation=}: the loss is cut off at a positive value. Leave it out for none.")
    return jnp.minimum((predictions - labels) ** 2, truncation)


def averaged_risk(
    predictions: Float[Array, "n N"], labels: Float[Array, "n N"], truncation: float = math.inf
) -> Float[Array, ""]:
    r"""$\hat R_{n,N}=\frac1{nN}\sum_{i,j}(\hat y^{(i)}_j-y^{(i)}_j)^2$."""
    return jnp.mean(squares(predictions, labels, truncation))


def pointwise_risk(
    predictions: Float[Array, "n N"],
    labels: Float[Array, "n N"],
    positions: Int[Array, " n"],
    truncation: float = math.inf,
) -> Float[Array, ""]:
    r"""$\hat R_n=\frac1n\sum_i(\hat y^{(i)}_{j_i}-y^{(i)}_{j_i})^2$, one position of each prompt."""
    return jnp.mean(jnp.take_along_axis(squares(predictions, labels, truncation), positions[:, None], axis=1))


def population_risk(
    predict: Callable[[Array], Float[Array, "n N"]],
    task: AbstractTask,
    *,
    key: Key[Array, ""],
    size: int = 10_000,
    truncation: float = math.inf,
) -> Estimate:
    r"""$R=\frac1N\mathbb E\|\hat y(p)-y\|^2$ from `size` fresh prompts, which are independent (positions are not)."""
    batch = task.sample(key, size)
    by_prompt = jnp.mean(squares(predict(batch.x), batch.y, truncation), axis=1)
    return Estimate.of(np.asarray(by_prompt, float))
