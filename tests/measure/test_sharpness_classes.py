"""Sharpness with classes, tokens, named inputs and large files, against dense matrices."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from genscope.measure import _curvature, gradient_trace, hessian_trace, mean_loss, operator_norm, sharpness
from genscope.precision import float64
from genscope.refusal import Refusal
from genscope.tasks import Batch
from genscope.train import IGNORED, cross_entropy, logistic, own_loss, squared
from tests.chance import assert_estimate

SAMPLES, TOKENS, CLASSES, WORDS = 11, 3, 4, 6


class Tagger(eqx.Module):
    """Logits of every token, from its word and the mean of the words that count."""

    words: jax.Array
    readout: jax.Array

    def __call__(self, ids, mask):
        each = jnp.tanh(self.words[ids])
        mean = (each * mask[:, None]).sum(axis=0) / mask.sum()
        return (each + mean[None]) @ self.readout


def tagger():
    random = np.random.default_rng(1)
    mask = np.arange(TOKENS) < random.integers(1, TOKENS + 1, (SAMPLES, 1))
    y = np.where(mask, random.integers(0, CLASSES, (SAMPLES, TOKENS)), IGNORED)
    with float64():
        model = Tagger(jr.normal(jr.key(0), (WORDS, 2)), jr.normal(jr.key(1), (2, CLASSES)))
        x = {"ids": jnp.asarray(random.integers(0, WORDS, (SAMPLES, TOKENS))), "mask": jnp.asarray(mask, float)}
        return model, Batch(x, jnp.asarray(y))


def dense(model, batch):
    """Hessian and Gauss–Newton matrix of the mean over examples of the mean over their tokens, by brute force."""
    with float64():
        theta, unravel = ravel_pytree(model)
        counts = (batch.y != IGNORED).astype(float)

        def outputs(vector):
            return jax.vmap(lambda x: unravel(vector)(**x))(batch.x)

        def risk(logits):
            z = logits.reshape(SAMPLES, TOKENS, CLASSES)
            chosen = jnp.take_along_axis(z, jnp.where(batch.y == IGNORED, 0, batch.y)[..., None], axis=2)[..., 0]
            each = (jnp.log(jnp.exp(z).sum(axis=2)) - chosen) * counts
            return (each.sum(axis=1) / counts.sum(axis=1)).mean()

        def both(vector):
            flat = outputs(vector).reshape(-1)
            jacobian = jax.jacrev(lambda t: outputs(t).reshape(-1))(vector)
            newton = jacobian.T @ jax.hessian(risk)(flat) @ jacobian
            return jax.hessian(lambda t: risk(outputs(t)))(vector), newton, risk(outputs(vector))

        hessian, newton, value = jax.jit(both)(theta)
        return np.asarray(hessian), np.asarray(newton), float(value)


@pytest.fixture(scope="module")
def tokens():
    model, batch = tagger()
    return model, batch, *dense(model, batch)


@pytest.mark.parametrize("chunk", [1024, 3])
def test_traces_and_norm_of_token_losses(tokens, chunk):
    model, batch, hessian, newton, risk = tokens
    assert mean_loss(model, batch, cross_entropy, chunk=chunk) == pytest.approx(risk, rel=1e-12)
    exact = hessian_trace(model, batch, cross_entropy, method="exact", chunk=chunk)
    assert exact.mean == pytest.approx(np.trace(hessian), rel=1e-10)
    found = gradient_trace(model, batch, cross_entropy, chunk=chunk)
    assert found.mean == pytest.approx(np.trace(newton), rel=1e-10)
    blocks = np.add.reduceat(np.diag(newton), (0, 2 * WORDS))
    assert [each.mean for each in found.groups.values()] == pytest.approx(blocks, rel=1e-10)
    norm = operator_norm(model, batch, cross_entropy, key=jr.key(0), chunk=chunk)
    assert norm.norm == pytest.approx(np.linalg.norm(hessian, 2), rel=1e-6)


def test_the_fisher_matrix_has_the_gauss_newton_trace(tokens):
    model, batch, _, newton, _ = tokens
    found = hessian_trace(model, batch, cross_entropy, method="fisher", probes=4000, key=jr.key(5))
    assert_estimate(found, np.trace(newton), planted=1.1 * np.trace(newton))
    blocks = np.add.reduceat(np.diag(newton), (0, 2 * WORDS))
    for each, block in zip(found.groups.values(), blocks, strict=True):
        assert_estimate(each, block, planted=1.15 * block)


@pytest.mark.parametrize("loss", [squared, logistic])
def test_the_fisher_matrix_of_the_other_losses(loss):
    with float64():
        x, weight = jr.normal(jr.key(0), (9, 3)), jr.normal(jr.key(1), (2, 3))
        y = jr.bernoulli(jr.key(2), 0.5, (9, 2)).astype(float)
    batch, model = Batch(x, y), Matrix(weight)
    exact = gradient_trace(model, batch, loss).mean
    found = hessian_trace(model, batch, loss, method="fisher", probes=1000, key=jr.key(5), chunk=4)
    assert_estimate(found, exact, planted=1.2 * exact)


class Matrix(eqx.Module):
    weight: jax.Array

    def __call__(self, x):
        return self.weight @ x


def test_data_in_a_mapped_file_are_read_in_blocks(tokens, tmp_path, monkeypatch):
    model, batch, hessian, newton, _ = tokens
    monkeypatch.setattr(_curvature, "INPUT_NUMBERS", 2 * 2 * TOKENS)  # two examples
    seen = []

    class Watched(np.memmap):
        def __getitem__(self, index):
            seen.append(len(index) if isinstance(index, np.ndarray) else None)
            return np.asarray(super().__getitem__(index))

    parts = {}
    for name, part in batch.x.items():
        np.save(tmp_path / f"{name}.npy", np.asarray(part))
        parts[name] = np.load(tmp_path / f"{name}.npy", mmap_mode="r").view(Watched)
    mapped = Batch(parts, batch.y)
    for chunk in (2, 5):
        found = hessian_trace(model, mapped, cross_entropy, method="exact", chunk=chunk)
        assert found.mean == pytest.approx(np.trace(hessian), rel=1e-10)
    assert gradient_trace(model, mapped, cross_entropy, chunk=2).mean == pytest.approx(np.trace(newton), rel=1e-10)
    assert max(filter(None, seen)) <= 4  # never the whole file


def test_weights_of_examples(tokens):
    """With the numbers of their tokens as weights, the mean is PyTorch's, over all tokens."""
    model, batch, *_ = tokens
    with float64():
        counts = np.asarray(batch.y != IGNORED)
        weighted = Batch(batch.x, batch.y, jnp.asarray(counts.sum(axis=1), float))
        z = np.asarray(jax.vmap(lambda x: model(**x))(batch.x))
    chosen = np.take_along_axis(z, np.where(counts, np.asarray(batch.y), 0)[..., None], axis=2)[..., 0]
    expected = (np.log(np.exp(z).sum(axis=2)) - chosen)[counts].mean()
    assert mean_loss(model, weighted, cross_entropy) == pytest.approx(expected, rel=1e-12)
    with pytest.raises(Refusal, match="Give positive weights"):
        mean_loss(model, Batch(batch.x, batch.y, jnp.zeros(SAMPLES)), cross_entropy)


def test_many_parameters_are_probed_a_few_at_a_time(tokens, monkeypatch):
    model, batch, hessian, *_ = tokens
    monkeypatch.setattr(sharpness, "ROWS", 5 * len(hessian))
    found = hessian_trace(model, batch, cross_entropy, method="hutchinson", probes=1200, key=jr.key(0))
    assert found.products == 1200
    assert_estimate(found, np.trace(hessian), planted=1.5 * np.trace(hessian))
    smoothed = sharpness.smoothed_sharpness(model, batch, cross_entropy, sigma=1e-3, key=jr.key(1), pairs=1200)
    assert_estimate(smoothed, np.trace(hessian), planted=1.6 * np.trace(hessian))
    monkeypatch.setattr(sharpness, "SKETCH", 5 * len(hessian))
    with pytest.raises(Refusal, match="Use method hutchinson or fisher"):
        hessian_trace(model, batch, cross_entropy, probes=6, key=jr.key(0))


def test_a_loss_of_ones_own_has_a_hessian_and_no_law(tokens):
    model, batch, *_ = tokens
    own = own_loss(lambda logits, y: cross_entropy(logits[None], y[None])[0])
    exact = hessian_trace(model, batch, own, method="exact").mean
    assert exact == pytest.approx(hessian_trace(model, batch, cross_entropy, method="exact").mean, rel=1e-12)
    with pytest.raises(Refusal, match="squared, logistic and cross-entropy"):
        hessian_trace(model, batch, own, method="fisher", key=jr.key(0))


def test_many_outputs_are_refused_where_they_would_not_fit(tokens, monkeypatch):
    model, batch, *_ = tokens
    monkeypatch.setattr(_curvature, "OUTPUTS", 5)
    with pytest.raises(Refusal, match="Use the method fisher"):
        gradient_trace(model, batch, cross_entropy)
