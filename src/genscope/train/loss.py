"""Losses by name, of the outputs of a model against labels: one number for each example.

Guarantee: exact; an example of weight 0 contributes nothing to value or gradient of a weighted mean.
"""

from collections.abc import Callable
from dataclasses import dataclass

import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Shaped

from genscope.refusal import Refusal


@dataclass(frozen=True)
class Loss:
    """A loss with a name; called with outputs and labels of one shape, it is the mean over the outputs of an example.

    >>> squared(jnp.array([[1.0, 2.0], [0.0, 0.0]]), jnp.array([[1.0, 0.0], [0.0, 0.0]]))
    Array([2., 0.], dtype=float32)
    """

    name: str
    each: Callable[[Array, Array], Array]  # of every output, without a check of shapes
    binary: bool = False  # labels are 0 and 1, outputs are logits

    def __call__(self, outputs: Float[Array, "size ..."], y: Shaped[Array, "size ..."]) -> Float[Array, " size"]:
        """The loss of each example; labels take the outputs' number type."""
        if outputs.shape != y.shape:
            raise Refusal(
                f"the {self.name} loss got outputs of shape {outputs.shape} for labels of shape {y.shape}: a label has "
                "the shape of an output. Reshape y, or give a model with that output."
            )
        return self.each(outputs, y.astype(outputs.dtype)).reshape(len(y), -1).mean(axis=1)


def weighted_mean(values: Float[Array, " size"], weight: Float[Array, " size"] | None) -> Float[Array, ""]:
    """Mean of the values under the weights; without these, all count alike."""
    return jnp.mean(values) if weight is None else jnp.sum(values * weight) / jnp.sum(weight)


def _correct(logits: Array, y: Array) -> Array:
    return jnp.where(y > 0.5, logits > 0, logits <= 0).astype(logits.dtype)


squared = Loss("squared", lambda outputs, y: (outputs - y) ** 2)
cross_entropy = Loss("logistic", optax.sigmoid_binary_cross_entropy, binary=True)
"""The logistic loss, binary cross entropy in nats, of logits against labels 0 and 1."""
error = Loss("error", lambda logits, y: ((logits > 0) != (y > 0.5)).astype(logits.dtype), binary=True)
"""1 where the sign of the logit disagrees with the label: it has no slope, so it is measured and not trained on."""
correct = Loss("accuracy", _correct, binary=True)
"""1 where the sign of the logit agrees with the label; a NaN logit agrees with nothing."""
