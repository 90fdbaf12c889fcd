"""Token regression: labels by a loop, encodings row by row, laws of positions, padding."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from genscope.tasks.links import Linear
from genscope.tasks.silent_half import SilentHalf
from genscope.tasks.token_regression import TokenRegression
from tests.chance import assert_count, assert_mean
from tests.seeds import seed

sample = eqx.filter_jit(lambda task, key, size: task.sample(key, size))


def draw(**options):
    sizes = {"context_length": 6, "dim": 3, "sparsity": 2, "link": "hermite2"}
    return TokenRegression.draw(jr.key(0), **(sizes | options))


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("replace", [False, True])
def test_labels_agree_with_a_loop(shared, replace):
    task = draw(shared_positions=shared, replace=replace)
    batch = sample(task, jr.key(1), 40)
    for prompt, labels in zip(np.asarray(batch.x), np.asarray(batch.y), strict=True):
        x, t = prompt[:, :3], prompt[:, 3:].astype(int)
        expected = [float(task.link(jnp.asarray(np.stack([x[j] for j in asked])))) for asked in t[:2]]
        np.testing.assert_allclose(labels[:2], expected, atol=1e-5)
        assert t.min() >= 0
        assert t.max() < 6
        assert not shared or (t == t[0]).all()
        assert replace or all(len(set(asked)) == 2 for asked in t)
    if shared:
        np.testing.assert_allclose(np.ptp(np.asarray(batch.y), axis=1), np.zeros(40), atol=1e-5)


@pytest.mark.parametrize(("scale", "factor"), [("none", 1.0), ("sqrt_d_over_q", np.sqrt(1.5))])
def test_encoded_rows(scale, factor):
    task = draw(scale=scale)
    prompt = np.asarray(task.inputs(jr.key(2), 1))[0]
    z, omega = np.asarray(task.encoded(jnp.asarray(prompt))), np.asarray(task.encoding)
    assert z.shape == (6, task.embedding_dim)
    for i, row in enumerate(prompt):
        asked = row[3:].astype(int)
        expected = np.concatenate([row[:3], factor * omega[i], factor * omega[asked[0]], factor * omega[asked[1]]])
        np.testing.assert_allclose(z[i], expected, atol=1e-6)


def test_the_guess_is_the_link_at_the_mean_token():
    """With one position and a linear link, the mean of all labels that a prompt could ask for; padded or not."""
    task = draw(sparsity=1, link="linear")
    padded = task.padded(9, 20)
    prompt = np.asarray(task.inputs(jr.key(3), 1))[0]
    expected = np.mean([float(task.link(jnp.asarray(token[None]))) for token in prompt[:, :3]])
    wider = np.pad(prompt, ((0, 3), (0, 0)))
    assert float(task.guess(jnp.asarray(prompt))) == pytest.approx(expected, abs=1e-6)
    assert float(padded.guess(jnp.asarray(wider))) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("replace", [False, True])
def test_positions_are_uniform_and_tokens_normal(replace):
    """A position that is 10 % too frequent, or a scale 2 % too large, is found."""
    task = draw(replace=replace)
    x, t = jax.jit(lambda key: task.raw(key, 20_000))(jr.key(seed(7)))
    for slot in range(2):
        asked = np.asarray(t)[:, :, slot].ravel()
        for count in np.bincount(asked, minlength=6).tolist():
            assert_count(count, len(asked), 1 / 6, planted=1.1 / 6)
    values = np.asarray(x, float).ravel()
    assert_mean(values, 0, planted=0.03)
    assert_mean(values**2, 1, planted=1.02**2)
    assert_mean(values**4, 3, planted=3.3)


@pytest.mark.parametrize("replace", [False, True])
def test_padding_keeps_the_law_of_the_real_tokens(replace):
    task = draw(replace=replace)
    padded = task.padded(9, 11)
    x, t = padded.raw(jr.key(3), 50)
    assert int(jnp.max(t)) < 6
    assert not np.any(x[:, 6:])
    assert np.all(np.any(x[:, :6], axis=(0, 2)))
    z = jax.vmap(padded.encode)(x, t)
    assert not np.any(z[:, 6:])
    columns = np.concatenate([np.arange(3), *(3 + 11 * slot + np.arange(8) for slot in range(3))])
    small = jax.vmap(task.encode)(x[:, :6], t[:, :6])
    np.testing.assert_array_equal(z[:, :6][..., columns], small)
    np.testing.assert_allclose(np.abs(z).sum(dtype=float), np.abs(small).sum(dtype=float), rtol=1e-12)
    np.testing.assert_allclose(
        jax.vmap(padded.labels)(x, t)[:, :6], jax.vmap(task.labels)(x[:, :6], t[:, :6]), atol=1e-5
    )


def test_a_simple_twin_differs_only_in_its_positions():
    task = draw()
    assert eqx.tree_equal(dataclasses.replace(task.simple(), shared_positions=False), task)


def test_one_token():
    task = TokenRegression.draw(jr.key(0), context_length=1)
    batch = task.sample(jr.key(1), 4)
    assert isinstance(task.link, Linear)
    np.testing.assert_allclose(batch.y[:, 0], batch.x[:, 0, :10] @ task.link.directions[0], atol=1e-5)


@pytest.mark.parametrize(
    ("wrong", "advice"),
    [
        (lambda: draw(scale="half"), "Choose one of them|Type-check"),
        (lambda: draw(context_length=1, replace=False), "lengthen the context"),
        (lambda: draw().padded(5, 20), "Pad the original task"),
        (lambda: draw().padded(8, 20).padded(9, 20), "Pad the original task"),
        (lambda: draw().target(jnp.zeros((6, 4))), "Use jax.vmap|Type-check"),
    ],
)
def test_misuse_is_refused(wrong, advice):
    with pytest.raises(Exception, match=advice):
        wrong()


def silent():
    return SilentHalf.draw(jr.key(0), context_length=6, sparsity=2, dim=3, encoding_dim=5)


def test_half_of_the_tokens_are_silent_and_ask_for_the_others():
    task = silent()
    batch = task.sample(jr.key(1), 30)
    x, y = np.asarray(batch.x), np.asarray(batch.y)
    assert not np.any(x[:, 3:])
    assert not np.any(y[:, :3])
    expected = ((x[:, :2] ** 2).sum(axis=(1, 2)) - 6) / np.sqrt(6)
    np.testing.assert_allclose(y[:, 3:], np.repeat(expected[:, None], 3, axis=1), atol=1e-5)
    z, omega = np.asarray(task.encode(batch.x[0])), np.asarray(task.encoding) * np.sqrt(1.5)
    np.testing.assert_allclose(z[4], np.concatenate([x[0, 4], omega[4], omega[0], omega[1]]), atol=1e-6)
    np.testing.assert_allclose(z[1], np.concatenate([x[0, 1], omega[1], omega[3], omega[4]]), atol=1e-6)


def test_predicting_nothing_has_risk_one():
    """Labels have variance 2 on half of the positions; a tenth more is found."""
    y = np.asarray(sample(silent(), jr.key(seed(2)), 100_000).y, float)
    assert_mean((y**2).mean(axis=1), 1, planted=1.1)


def test_an_odd_number_of_tokens_cannot_be_halved():
    with pytest.raises(ValueError, match="must be even"):
        SilentHalf.draw(jr.key(0), context_length=5, sparsity=2, dim=3, encoding_dim=5)
