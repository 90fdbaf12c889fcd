"""Links: values by hand, their two-layer forms, their variances."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from genscope.tasks.links import LINKS, Average, Hermite, Linear, SquaredNorm, TwoLayerLink, draw_link
from tests.seeds import seed


def network(form, x):
    """a^T relu(W x + b), by NumPy."""
    weight, bias, outer = (np.asarray(part) for part in form)
    return np.maximum(x.reshape(len(x), -1) @ weight.T + bias, 0) @ outer


TOKENS = np.random.default_rng(0).normal(size=(50, 3, 4)).astype(np.float32)


@pytest.mark.parametrize("name", ["linear", "average"])
def test_exact_two_layer_forms(name):
    link = draw_link(name, jr.key(1), sparsity=3, dim=4)
    values = jax.vmap(link)(jnp.asarray(TOKENS))
    np.testing.assert_allclose(values, network(link.two_layer(), TOKENS), atol=1e-5)


def test_values_by_hand():
    x = jnp.array([[1.0, 2.0], [3.0, -1.0]])
    assert float(Linear(jnp.array([[0.6, 0.0], [0.0, 0.8]]))(x)) == pytest.approx(0.6 - 0.8)
    assert float(Average(jnp.array([1.0, 0.0]), 2)(x)) == pytest.approx(2.0)
    assert float(Hermite(jnp.array([[1.0, 0.0], [0.0, 1.0]]))(x)) == pytest.approx(0.0)
    assert float(Hermite(jnp.array([[0.0, 1.0], [1.0, 0.0]]))(x)) == pytest.approx((3 + 8) / 2)
    assert float(SquaredNorm(2, 2)(x)) == pytest.approx((15 - 4) / 2)
    own = TwoLayerLink(jnp.ones((1, 4)), jnp.array([-4.0]), jnp.array([2.0]), 2)
    assert float(own(x)) == pytest.approx(2.0)
    assert own.shape == (2, 2)


@pytest.mark.parametrize(("radius", "pieces"), [(5.0, 16), (6.0, 64), (3.0, 1)])
def test_the_interpolated_hermite_is_within_its_error(radius, pieces):
    link = Hermite.draw(jr.key(2), sparsity=3, dim=4)
    inside = TOKENS[np.abs(np.einsum("jd,njd->nj", np.asarray(link.directions), TOKENS)).max(axis=1) <= radius]
    error = np.abs(np.asarray(jax.vmap(link)(jnp.asarray(inside))) - network(link.two_layer(radius, pieces), inside))
    promised = np.sqrt(3) * (2 * radius / pieces) ** 2 / (4 * np.sqrt(2))
    assert len(inside) > 40
    assert error.max() <= promised * (1 + 1e-4) + 1e-4


def variance_agrees(samples, expected, false_alarm=1e-9):
    """The mean square of centred samples, by the normal limit (10^5 samples)."""
    squares = np.asarray(samples, float) ** 2
    limit = 6.1 * squares.std() / np.sqrt(len(squares))  # two-sided 1e-9
    del false_alarm
    return abs(squares.mean() - expected) <= limit


@pytest.mark.parametrize(("name", "variance"), [("hermite2", 1.0), ("norm2", 2.0), ("linear", 1.0)])
def test_variances_at_distinct_positions(name, variance):
    """False alarm 1e-9; an excess of 10 % is found."""
    link = draw_link(name, jr.key(3), sparsity=3, dim=5)
    x = jr.normal(jr.key(seed(4)), (100_000 * 15,)).reshape(100_000, 3, 5)
    samples = np.asarray(jax.jit(jax.vmap(link))(x))
    assert variance_agrees(samples, variance)
    assert not variance_agrees(np.sqrt(1.1) * samples, variance)


def test_directions_are_unit_vectors():
    assert float(jnp.sum(Linear.draw(jr.key(0), sparsity=3, dim=4).directions ** 2)) == pytest.approx(1, abs=1e-5)
    rows = Hermite.draw(jr.key(0), sparsity=3, dim=4).directions
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), np.ones(3), atol=1e-5)


@pytest.mark.parametrize(
    ("wrong", "advice"),
    [
        (lambda: draw_link("cubic", jr.key(0), sparsity=1, dim=2), "Choose among these"),
        (lambda: draw_link("linear", jr.key(0), sparsity=0, dim=2), "at least one token"),
        (lambda: SquaredNorm(1, 2).two_layer(), "no exact two-layer"),
        (lambda: Hermite.draw(jr.key(0), sparsity=1, dim=2).two_layer(pieces=0), "1 piece or more"),
        (lambda: TwoLayerLink(jnp.ones((1, 5)), jnp.ones(1), jnp.ones(1), 2), "Make the sizes fit"),
    ],
)
def test_misuse_is_refused(wrong, advice):
    with pytest.raises(ValueError, match=advice):
        wrong()


def test_every_link_has_a_name():
    for name in LINKS:
        assert draw_link(name, jr.key(0), sparsity=2, dim=3).shape == (2, 3)
