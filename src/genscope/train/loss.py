"""Losses of a batch of predictions, with weights for padded examples.

Source: None (standard definitions).
Departures: None.
Guarantee: exact; an example of weight 0 contributes nothing to value or gradient.
"""

import jax.numpy as jnp
import optax
from jaxtyping import Array, Float


def weighted_mean(values: Float[Array, " m"], weight: Float[Array, " m"]) -> Float[Array, ""]:
    """Mean of the values under the weights."""
    return jnp.sum(values * weight) / jnp.sum(weight)


def cross_entropy(logits: Float[Array, " m"], y: Float[Array, " m"], weight: Float[Array, " m"]) -> Float[Array, ""]:
    """Binary cross entropy in nats of logits against labels in {0, 1}."""
    return weighted_mean(optax.sigmoid_binary_cross_entropy(logits, y), weight)


def squared(predictions: Float[Array, " m"], y: Float[Array, " m"], weight: Float[Array, " m"]) -> Float[Array, ""]:
    """Mean squared error."""
    return weighted_mean((predictions - y) ** 2, weight)


def correct(logits: Float[Array, " m"], y: Float[Array, " m"]) -> Float[Array, " m"]:
    """1 where the sign of the logit agrees with the label; a NaN logit agrees with nothing."""
    return jnp.where(y > 0.5, logits > 0, logits <= 0).astype(logits.dtype)
