"""Links: values by hand, their two-layer forms, their variances."""

import math

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from genscope.tasks.links import LINKS, Average, Hermite, Linear, Relu, SquaredNorm, TwoLayerLink, draw_link
from tests.chance import assert_mean
from tests.seeds import seed

RADII = [1.0, 3.0, 4.0, 6.0, 12.0]
ORDERS = [2.0, math.inf]
SQUARES = ["hermite2", "norm2"]


def network(form, x):
    """a^T relu(W x + b), by NumPy."""
    return np.maximum(x.reshape(len(x), -1) @ form.weight.T + form.bias, 0) @ form.outer


def label(link, x):
    """The link in float64, by NumPy, written out once more."""
    if isinstance(link, SquaredNorm):
        return (np.sum(x**2, axis=(1, 2)) - x[0].size) / math.sqrt(x[0].size)
    along = np.einsum("jd,njd->nj", np.asarray(link.directions, float), x)
    if isinstance(link, Hermite):
        return np.sum((along**2 - 1) / math.sqrt(2), axis=1) / math.sqrt(along.shape[1])
    mean, square = 1 / math.sqrt(2 * math.pi), 1 / 2
    return np.sum(np.maximum(along, 0) - mean, axis=1) / math.sqrt(along.shape[1] * (square - mean**2))


def slopes(form, x):
    """Gradients of the network."""
    active = x.reshape(len(x), -1) @ form.weight.T + form.bias > 0
    return (active * form.outer) @ form.weight


def inside(shape, radius, order, number=0):
    """Tokens of all sizes up to the radius, those at its end and at 0 among them."""
    generator = np.random.default_rng(number)
    x = generator.normal(size=(4000, *shape))
    x *= radius / np.linalg.norm(x, ord=order, axis=2, keepdims=True)
    x[:3000] *= generator.uniform(size=(3000, shape[0], 1))
    return np.concatenate([np.zeros((1, *shape)), x])


def farthest(link, radius, order):
    """The tokens at which every product with a direction is as large as it can be."""
    rows = np.asarray(link.directions, float)
    tokens = np.sign(rows) if order == math.inf else rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return radius * tokens[None]


TOKENS = np.random.default_rng(0).normal(size=(50, 3, 4)).astype(np.float32)


@pytest.mark.parametrize("name", ["linear", "average", "relu"])
def test_exact_two_layer_forms(name):
    link = draw_link(name, jr.key(1), sparsity=3, dim=4)
    values = jax.vmap(link)(jnp.asarray(TOKENS))
    form = link.two_layer(radius=1.0, error=0.1)
    assert form.error == 0
    np.testing.assert_allclose(values, network(form, 1.0 * TOKENS), atol=1e-5)


def test_exact_forms_know_their_lipschitz_constant():
    x = inside((3, 4), 2.0, 2.0)
    for name in ("linear", "average", "relu"):
        form = draw_link(name, jr.key(1), sparsity=3, dim=4).two_layer(radius=2.0, error=0.1)
        assert np.linalg.norm(slopes(form, x[1:]), axis=1).max() == pytest.approx(form.lipschitz, rel=1e-9)
    generator = np.random.default_rng(2)
    inner, bias, outer = [jnp.asarray(generator.normal(size=shape)) for shape in [(7, 12), (7,), (7,)]]
    form = TwoLayerLink(inner, bias, outer, 3).two_layer(radius=2.0, error=0.1)
    steepest = np.linalg.norm(slopes(form, 5 * x), axis=1).max()
    assert form.lipschitz / 3 < steepest <= form.lipschitz


def test_values_by_hand():
    x = jnp.array([[1.0, 2.0], [3.0, -1.0]])
    assert float(Linear(jnp.array([[0.6, 0.0], [0.0, 0.8]]))(x)) == pytest.approx(0.6 - 0.8)
    assert float(Average(jnp.array([1.0, 0.0]), 2)(x)) == pytest.approx(2.0)
    assert float(Hermite(jnp.array([[1.0, 0.0], [0.0, 1.0]]))(x)) == pytest.approx(0.0)
    assert float(Hermite(jnp.array([[0.0, 1.0], [1.0, 0.0]]))(x)) == pytest.approx((3 + 8) / 2)
    ahead = (1 - 2 / math.sqrt(2 * math.pi)) / math.sqrt(1 - 1 / math.pi)
    assert float(Relu(jnp.array([[1.0, 0.0], [0.0, 1.0]]))(x)) == pytest.approx(ahead)
    assert float(SquaredNorm(2, 2)(x)) == pytest.approx((15 - 4) / 2)
    own = TwoLayerLink(jnp.ones((1, 4)), jnp.array([-4.0]), jnp.array([2.0]), 2)
    assert float(own(x)) == pytest.approx(2.0)
    assert own.shape == (2, 2)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("radius", RADII)
@pytest.mark.parametrize("name", SQUARES)
def test_squares_err_by_what_is_said_and_no_more(name, radius, order):
    link = draw_link(name, jr.key(2), sparsity=3, dim=4)
    form = link.two_layer(radius=radius, error=1e-3, order=order)
    x = inside((3, 4), radius, order)
    errors = np.abs(network(form, x) - label(link, x))
    assert errors.max() <= form.error <= 1e-3
    assert errors[0] == pytest.approx(form.error, rel=1e-5)  # tokens 0 are knots
    pieces = (len(form.outer) - 1) // (2 * (3 if name == "hermite2" else 12))
    assert form.error * (pieces / (pieces - 1)) ** 2 > 1e-3  # one knot less would not do


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("radius", RADII)
def test_hermite_is_made_for_the_radius_that_tokens_reach(radius, order):
    link = Hermite.draw(jr.key(2), sparsity=3, dim=4)
    form = link.two_layer(radius=radius, error=1e-3, order=order)
    far = farthest(link, radius, order)
    assert np.abs(network(form, far) - label(link, far)) == pytest.approx(form.error, rel=1e-5)
    farther = 1.05 * far
    assert np.abs(network(form, farther) - label(link, farther)) > form.error  # it is made for no more
    assert np.linalg.norm(slopes(form, far * (1 - 1e-9)), axis=1) == pytest.approx(form.lipschitz, rel=1e-9)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", SQUARES)
def test_slopes_of_squares_keep_the_lipschitz_constant(name, order):
    for radius in RADII:
        form = draw_link(name, jr.key(2), sparsity=3, dim=4).two_layer(radius=radius, error=1e-3, order=order)
        steepest = np.linalg.norm(slopes(form, inside((3, 4), radius, order)), axis=1).max()
        assert 0.6 * form.lipschitz < steepest <= form.lipschitz


def test_norms_of_squares_by_formula():
    """Sums of squares of the arrays against the closed forms of the docstring, for directions of several lengths."""
    rows = np.random.default_rng(5).normal(size=(2, 3))
    form = Hermite(jnp.asarray(rows, "float32")).two_layer(radius=3.0, error=0.01)
    rows = np.asarray(jnp.asarray(rows, "float32"), float)
    k = (len(form.outer) - 1) // 4
    steps = 9.0 * np.sum(rows**2) / k**2
    assert np.sum(form.weight**2) == pytest.approx(2 * k * np.sum(rows**2))
    assert np.sum(form.bias**2) == pytest.approx(1 + k * (k - 1) * (2 * k - 1) * steps / 3)
    assert np.sum(form.outer**2) == pytest.approx((2 * (4 * k - 3) * steps + (2 + steps / 8) ** 2) / 4)
    assert form.error == pytest.approx(steps / 16, rel=1e-6)


@pytest.mark.parametrize(("name", "variance"), [("hermite2", 1.0), ("norm2", 2.0), ("linear", 1.0)])
def test_variances_at_distinct_positions(name, variance):
    """Mean squares of centred values; an excess of 15 % is found."""
    link = draw_link(name, jr.key(3), sparsity=3, dim=5)
    x = jr.normal(jr.key(seed(4)), (100_000 * 15,)).reshape(100_000, 3, 5)
    samples = np.asarray(jax.jit(jax.vmap(link))(x))
    assert_mean(np.asarray(samples, float) ** 2, variance, planted=1.15 * variance)


def test_directions_are_unit_vectors():
    assert float(jnp.sum(Linear.draw(jr.key(0), sparsity=3, dim=4).directions ** 2)) == pytest.approx(1, abs=1e-5)
    rows = Hermite.draw(jr.key(0), sparsity=3, dim=4).directions
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), np.ones(3), atol=1e-5)


@pytest.mark.parametrize(
    ("wrong", "advice"),
    [
        (lambda: draw_link("cubic", jr.key(0), sparsity=1, dim=2), "Correct the one that is not"),
        (lambda: draw_link("linear", jr.key(0), sparsity=0, dim=2), "at least 1"),
        (lambda: SquaredNorm(1, 2).two_layer(radius=0.0, error=0.1), "between 1e-100 and 1e100"),
        (lambda: SquaredNorm(1, 2).two_layer(radius=1.0, error=math.nan), "between 1e-100 and 1e100"),
        (lambda: SquaredNorm(1, 2).two_layer(radius=1.0, error=0.1, order=1.0), "2 or infinity"),
        (lambda: SquaredNorm(1, 2).two_layer(radius=1e60, error=0.1), "Allow a larger error"),
        (lambda: SquaredNorm(1, 2).two_layer(radius=1.0, error=1e-12), "Allow a larger error"),
        (lambda: TwoLayerLink(jnp.ones((1, 5)), jnp.ones(1), jnp.ones(1), 2), "Make the sizes agree"),
    ],
)
def test_misuse_is_refused(wrong, advice):
    with pytest.raises(ValueError, match=advice):
        wrong()


def test_every_link_has_a_name():
    for name in LINKS:
        assert draw_link(name, jr.key(0), sparsity=2, dim=3).shape == (2, 3)
