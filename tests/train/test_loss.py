"""Losses against values worked out by hand and a NumPy twin, and every mistake with its advice."""

import jax.numpy as jnp
import numpy as np
import pytest

from genscope.refusal import Refusal
from genscope.train import IGNORED, correct, cross_entropy, error, logistic, masked, own_loss, squared
from genscope.train.loss import surrogate

LOGITS = np.random.default_rng(0).normal(size=(5, 4, 3)).astype(np.float32)
TOKENS = np.array([[0, 1, 2, 0], [2, 2, IGNORED, IGNORED], [1, 0, 0, 2], [0, IGNORED, 1, 1], [2, 0, 1, 2]])


def softmax_loss(logits, y):
    """Mean over the tokens that count of log Σ exp z − z_y, one by one."""
    found = []
    for row, labels in zip(logits.astype(float), y, strict=True):
        each = [np.log(np.exp(z).sum()) - z[label] for z, label in zip(row, labels, strict=True) if label != IGNORED]
        found.append(np.mean(each))
    return found


def test_the_cross_entropy_of_tokens_leaves_padding_out():
    np.testing.assert_allclose(
        cross_entropy(jnp.asarray(LOGITS), jnp.asarray(TOKENS)), softmax_loss(LOGITS, TOKENS), rtol=1e-5
    )
    assert cross_entropy(jnp.array([[0.0, np.log(3.0)]], "float32"), jnp.array([0]))[0] == pytest.approx(np.log(4))
    kept = masked(np.maximum(TOKENS, 0), TOKENS != IGNORED)
    np.testing.assert_array_equal(kept, TOKENS)


def test_the_error_of_classes_and_of_bits():
    best = LOGITS.argmax(axis=-1)
    counts = TOKENS != IGNORED
    expected = ((best != TOKENS) & counts).sum(axis=1) / counts.sum(axis=1)
    np.testing.assert_allclose(error(jnp.asarray(LOGITS), jnp.asarray(TOKENS)), expected, rtol=1e-6)
    np.testing.assert_allclose(correct(jnp.asarray(LOGITS), jnp.asarray(TOKENS)), 1 - expected, rtol=1e-6)
    strange = jnp.array([[jnp.nan, 0.0], [1.0, 0.0]])
    np.testing.assert_array_equal(error(strange, jnp.array([0, 0])), [1, 0])  # what is no number is wrong
    np.testing.assert_array_equal(error(jnp.array([jnp.nan, jnp.nan, 0.0]), jnp.array([0, 1, 0])), [1, 1, 0])


def test_what_is_trained_in_place_of_the_error():
    flat, bits = jnp.asarray(LOGITS[:, 0, 0]), jnp.array([0, 1, 1, 0, 1])
    np.testing.assert_array_equal(surrogate(flat, bits), logistic(flat, bits))
    np.testing.assert_array_equal(
        surrogate(jnp.asarray(LOGITS), jnp.asarray(TOKENS)), cross_entropy(jnp.asarray(LOGITS), jnp.asarray(TOKENS))
    )


def test_two_logits_are_one():
    """Softmax over (0, z) is the logistic function of z."""
    z, y = jnp.asarray(LOGITS[:, 0, 0]), jnp.array([0, 1, 1, 0, 1])
    pair = jnp.stack([jnp.zeros(5), z], axis=1)
    np.testing.assert_allclose(cross_entropy(pair, y), logistic(z, y), rtol=1e-5)


def test_a_loss_of_ones_own_sees_one_example():
    hinge = own_loss(lambda output, y: jnp.maximum(0, 1 - output[y] + output[1 - y]), "hinge")
    np.testing.assert_allclose(hinge(jnp.array([[2.0, 0.0], [0.0, 0.5]]), jnp.array([0, 0])), [0, 1.5])
    with pytest.raises(Refusal, match="Return, for example, the mean"):
        own_loss(lambda output, y: output)(jnp.zeros((2, 3)), jnp.zeros(2))


@pytest.mark.parametrize(
    ("loss", "shape", "y", "advice"),
    [
        (cross_entropy, (3, 4), np.array([0, 4, 1]), "label 4 in example 1 for a model with 4 classes"),
        (cross_entropy, (3, 4), np.array([0, -1, 1]), "Number the classes from 0"),
        (cross_entropy, (3, 4), np.array([0.0, 1, 1]), "classes must be whole numbers"),
        (cross_entropy, (3,), np.array([0, 1, 1]), "logistic loss for a single logit"),
        (cross_entropy, (3, 1), np.array([0, 1, 1]), "at least two"),
        (cross_entropy, (2, 2, 3), np.full((2, 2), IGNORED), "Leave these examples out"),
        (error, (3, 4), np.array([0.0, 1, 1]), "y.astype"),
        (error, (3,), np.array([0, 2, 1]), "give a model with one logit per class"),
        (logistic, (3,), np.array([-1, 1, 1]), "labels must be 0 and 1"),
        (squared, (3, 4), np.array([0, 1, 1]), "For 4 classes take the cross-entropy loss"),
        (squared, (3, 1), np.array([[0], [1]]), "Reshape y"),
        (squared, (3, 1), np.array([0, 1, 1]), r"Give y one more axis, y\[:, None\]"),
        (cross_entropy, (3, 2), np.array([[0], [1], [1]]), r"Take y\[\.\.\., 0\] for y"),
        (cross_entropy, (3, 2), np.array([0, 2, 1]), "from 0 to 1. Number"),
        (cross_entropy, (2, 2, 2), np.array([[0, 2], [1, 1]]), "or -100 for a token that does not count"),
        (squared, (3,), np.array([[0], [1], [1]]), r"Take y\[:, 0\] for y"),
    ],
)
def test_labels_that_do_not_fit(loss, shape, y, advice):
    with pytest.raises(Refusal, match=advice):
        loss.check(shape, y)


@pytest.mark.parametrize(
    ("y", "mask"),
    [(np.zeros((2, 2)), np.ones((2, 2))), (np.zeros(2, int), np.ones((2, 2))), (np.zeros(2, int), np.array([2, 1]))],
)
def test_a_mask_that_does_not_fit(y, mask):
    with pytest.raises(Refusal, match="Correct the mask"):
        masked(y, mask)
