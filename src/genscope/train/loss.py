"""Losses by name, of the outputs of a model against labels: one number for each example.

Labels are numbers of the outputs' shape (`squared`), bits (`logistic`), or classes: whole numbers, one for each row of
logits in the outputs' last axis (`cross_entropy`), so that outputs [n, C] have labels [n], and outputs [n, T, C] labels
[n, T], token by token. `error` and `correct` take bits or classes, whichever the shapes say.

Departures: the loss of an example is the mean over its tokens, whatever their number; PyTorch's is the mean over all
tokens of a batch, which is ours with examples weighted by their number of tokens.
Guarantee: exact; an example of weight 0 contributes nothing to value or gradient of a weighted mean.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Key, Shaped

from genscope.refusal import Refusal

IGNORED = -100
"""The label of a token that does not count, such as padding; PyTorch has the same."""

Labels = Literal["numbers", "bits", "classes", "bits or classes", "any"]


@dataclass(frozen=True)
class Loss:
    """A loss with a name; called with outputs and labels, it is the mean over the outputs (tokens) of an example.

    >>> squared(jnp.array([[1.0, 2.0], [0.0, 0.0]]), jnp.array([[1.0, 0.0], [0.0, 0.0]]))
    Array([2., 0.], dtype=float32)
    >>> error(jnp.array([[1.0, 2.0, 0.0], [3.0, 0.0, 0.0]]), jnp.array([1, 2]))
    Array([0., 1.], dtype=float32)
    """

    name: str
    each: Callable[[Array, Array], Array]  # of every label, without a check; of one example where labels are "any"
    labels: Labels = "numbers"
    draw: Callable[[Key[Array, ""], Array], Array] | None = None
    """Labels from the law of which this loss is the negative logarithm, up to a constant, given the outputs."""

    def __call__(self, outputs: Float[Array, "size ..."], y: Shaped[Array, "size ..."]) -> Float[Array, " size"]:
        """The loss of each example; labels that are numbers take the outputs' number type."""
        if self.labels == "any":
            return jax.vmap(self._one)(outputs, y).astype(outputs.dtype)
        self._check_shapes(outputs.shape, y)
        if not self.by_class(outputs.shape, y.shape):
            return self.each(outputs, y.astype(outputs.dtype)).reshape(len(y), -1).mean(axis=1)
        counts = y != IGNORED
        values = self.each(outputs, jnp.where(counts, y, 0).astype("int32")) * counts.astype(outputs.dtype)
        number = jnp.maximum(counts.reshape(len(y), -1).sum(axis=1), 1).astype(outputs.dtype)
        return values.reshape(len(y), -1).sum(axis=1) / number

    def _one(self, output: Array, y: Array) -> Array:
        """The loss of one example by a function of the user's, which may return anything."""
        value = self.each(output, y)
        if not eqx.is_array_like(value) or np.shape(value) != () or jnp.iscomplexobj(value):
            array = f"an array of {value.dtype} of shape {value.shape}" if eqx.is_array(value) else None
            raise Refusal(
                f"the loss {self.name} returned {array or f'an object of type {type(value).__name__}'} for one "
                "example: the loss of an example must be one real number. Return, for example, the mean."
            )
        return jnp.asarray(value)

    def by_class(self, outputs: Sequence[int], y: Sequence[int]) -> bool:
        """Whether labels are classes, by the shapes of outputs and labels."""
        return self.labels == "classes" or (self.labels == "bits or classes" and len(outputs) == len(y) + 1)

    def classes(self, outputs: Sequence[int], y: Sequence[int]) -> int | None:
        """How many classes there are; None where labels are no classes."""
        if self.by_class(outputs, y):
            return outputs[-1]
        return 2 if self.labels in ("bits", "bits or classes") else None

    def check(self, outputs: Sequence[int], y: Shaped[Array | np.ndarray, "size ..."]) -> None:
        """Refuse labels that do not belong to outputs of this shape."""
        if self.labels == "any":
            return
        self._check_shapes(outputs, y)
        labels = np.asarray(y)
        if self.by_class(outputs, labels.shape):
            wrong = (labels != IGNORED) & ((labels < 0) | (labels >= outputs[-1]))
            if wrong.any():
                ignored = f", or {IGNORED} for a token that does not count" if labels.ndim > 1 else ""
                raise Refusal(
                    f"got the label {labels[wrong][0]} in example {np.argwhere(wrong)[0][0]} for a model with "
                    f"{outputs[-1]} classes: labels must be whole numbers from 0 to {outputs[-1] - 1}{ignored}. Number "
                    "the classes from 0, or give a model with more outputs."
                )
            empty = np.flatnonzero((labels == IGNORED).reshape(len(labels), -1).all(axis=1))
            if len(empty):
                raise Refusal(
                    f"got example {empty[0]} without any label that counts ({len(empty)} such examples in all): the "
                    "loss of an example is the mean over its labels. Leave these examples out."
                )
        elif self.labels != "numbers" and not np.isin(labels, (0, 1)).all():
            strange = labels[~np.isin(labels, (0, 1))].reshape(-1)[0]
            raise Refusal(
                f"got the label {strange} for the {self.name} loss of one logit: labels must be 0 and 1. Convert the "
                "labels, use the squared loss, or give a model with one logit per class."
            )

    def _check_shapes(self, outputs: Sequence[int], y: Shaped[Array | np.ndarray, "size ..."]) -> None:
        if self.by_class(outputs, y.shape):
            if len(outputs) < 2 or tuple(outputs[:-1]) != tuple(y.shape) or outputs[-1] < 2:
                raise Refusal(
                    f"the {self.name} loss got outputs of shape {tuple(outputs)} for labels of shape {y.shape}: "
                    f"{_classes(tuple(outputs), tuple(y.shape))}"
                )
            if not (jnp.issubdtype(y.dtype, jnp.integer) or y.dtype == bool):
                broken = np.asarray(y)[np.asarray(y) % 1 != 0].reshape(-1)[:1]
                found = f", among them {broken[0]:g}" if len(broken) else ""
                how = "Number the classes from 0" if found else "Convert y with y.astype('int64')"
                raise Refusal(
                    f"the {self.name} loss got labels of type {y.dtype}{found}: classes must be whole numbers, in an "
                    f"array of integers. {how}."
                )
        elif tuple(outputs) != tuple(y.shape):
            raise Refusal(
                f"the {self.name} loss got outputs of shape {tuple(outputs)} for labels of shape {tuple(y.shape)}: "
                f"labels must have the shape of the outputs. {_reshaping(tuple(outputs), tuple(y.shape))}"
            )


def _classes(outputs: Sequence[int], labels: Sequence[int]) -> str:
    """What outputs and classes must be."""
    if outputs == labels and len(outputs) > 1:
        return (
            "labels must be classes, as whole numbers. Where they are one logit's worth per class (one-hot), give "
            "y.argmax(axis=-1)."
        )
    if labels == (*outputs[:-1], 1):
        return "there must be one label for each list of logits. Take y[..., 0] for y."
    if len(outputs) == len(labels) + 1 and outputs[-1] >= 2:
        return f"there must be one label for each list of logits. Give y of shape {tuple(outputs[:-1])}."
    return (
        "outputs must have one more axis, with one logit for each of at least two classes. Give a model with one logit "
        "per class, y with one class per example or token, or use the logistic loss for a single logit."
    )


def _reshaping(outputs: tuple[int, ...], labels: tuple[int, ...]) -> str:
    """What makes the two shapes one."""
    if outputs == (*labels, 1):
        return "Give y one more axis, y[:, None], or a model with one number for each example."
    if outputs[:-1] == labels:
        return f"For {outputs[-1]} classes take the cross-entropy loss."
    if labels == (*outputs, 1):
        return "Take y[:, 0] for y."
    return "Reshape y, or give a model with that output."


def own_loss(function: Callable[[Array, Array], Array], name: str | None = None) -> Loss:
    """A loss of the user's: a function of output and label of one example that returns one number.

    >>> own_loss(lambda output, y: jnp.abs(output - y), "absolute")(jnp.array([1.0, 3.0]), jnp.array([0.0, 1.0]))
    Array([1., 2.], dtype=float32)
    """
    return Loss(name or getattr(function, "__name__", "given"), function, labels="any")


def masked(y: Shaped[np.ndarray, "size ..."], mask: Shaped[np.ndarray, "size ..."]) -> np.ndarray:
    """Labels with `IGNORED` where the mask is 0.

    >>> masked(np.array([[1, 2], [0, 0]]), np.array([[1, 1], [1, 0]]))
    array([[   1,    2],
           [   0, -100]])
    """
    y, mask = np.asarray(y), np.asarray(mask)
    if y.shape != mask.shape or y.dtype.kind not in "iu" or not np.isin(mask, (0, 1)).all():
        raise Refusal(
            f"got labels of type {y.dtype} and shape {y.shape} with a mask of shape {mask.shape}: a mask must have "
            "a 1 or 0 for every label, and labels must be whole numbers. Correct the mask, or leave it out."
        )
    return np.where(mask == 1, y.astype(np.int64), IGNORED)


def weighted_mean(values: Float[Array, " size"], weight: Float[Array, " size"] | None) -> Float[Array, ""]:
    """Mean of the values under the weights; without these, all count alike."""
    return jnp.mean(values) if weight is None else jnp.sum(values * weight) / jnp.sum(weight)


def _wrong(logits: Array, y: Array) -> Array:
    """What is no number is wrong."""
    if logits.ndim > y.ndim:
        return (jnp.argmax(logits, axis=-1).astype(y.dtype) != y) | jnp.isnan(logits).any(axis=-1)
    return ~jnp.where(y > 0.5, logits > 0, logits <= 0)


def _entropy(logits: Array, y: Array) -> Array:
    function = optax.softmax_cross_entropy_with_integer_labels if logits.ndim > y.ndim else _logistic
    return function(logits, y)


def _logistic(logits: Array, y: Array) -> Array:
    return optax.sigmoid_binary_cross_entropy(logits, y)


def _normal_labels(key: Key[Array, ""], outputs: Array) -> Array:
    # The squared loss is that of a normal law of variance 1/2.
    return outputs + jnp.asarray(np.sqrt(0.5), outputs.dtype) * jax.random.normal(key, outputs.shape, outputs.dtype)


def _bits(key: Key[Array, ""], logits: Array) -> Array:
    return (jax.random.uniform(key, logits.shape, logits.dtype) < jax.nn.sigmoid(logits)).astype(logits.dtype)


squared = Loss("squared", lambda outputs, y: (outputs - y) ** 2, draw=_normal_labels)
logistic = Loss("logistic", _logistic, labels="bits", draw=_bits)
"""Binary cross entropy in nats, of one logit against labels 0 and 1."""
cross_entropy = Loss("cross-entropy", _entropy, labels="classes", draw=jax.random.categorical)
"""Softmax cross entropy in nats, of a logit per class against classes 0, 1, ...; labels `IGNORED` are left out."""
error = Loss("error", lambda logits, y: _wrong(logits, y).astype(logits.dtype), labels="bits or classes")
"""1 where the largest logit (the sign of a single one) disagrees with the label: it has no slope, so it is measured and
not trained on."""
correct = Loss("accuracy", lambda logits, y: (~_wrong(logits, y)).astype(logits.dtype), labels="bits or classes")
"""1 where the largest logit (the sign of a single one) agrees with the label; what is no number never does."""
surrogate = Loss("cross entropy", _entropy, labels="bits or classes")
"""What is trained in place of the error: the logistic loss or the cross entropy, whichever the shapes say."""

ALL = {loss.name: loss for loss in (squared, logistic, cross_entropy, error)}
"""Those that a command takes by name."""
