"""The Hessian's trace in two parts: Gauss–Newton from drawn labels, the rest from masked signs, new for every part."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from genscope.measure import _curvature, hessian_trace, sharpness
from genscope.precision import float64
from genscope.tasks import Batch
from genscope.train import cross_entropy, own_loss, squared
from tests.chance import assert_at_least, assert_at_most, assert_mean
from tests.seeds import seed

SAMPLES, CLASSES, CHUNK, DRAWS = 13, 3, 4, 6000


class Network(eqx.Module):
    """Two matrices and two vectors."""

    hidden: jax.Array
    shift: jax.Array
    readout: jax.Array
    offset: jax.Array

    def __call__(self, x):
        found = jnp.tanh(x @ self.hidden + self.shift) @ self.readout + self.offset
        return found if found.size > 1 else found[0]


def case(outputs=CLASSES):
    rng = np.random.default_rng(1)
    with float64():
        model = Network(*(jnp.asarray(rng.normal(size=shape)) for shape in ((2, 3), 3, (3, outputs), outputs)))
        x, weight = jnp.asarray(rng.normal(size=(SAMPLES, 2))), jnp.asarray(rng.uniform(0.5, 2, SAMPLES))
        y = jnp.asarray(rng.integers(0, CLASSES, SAMPLES) if outputs > 1 else rng.normal(size=SAMPLES))
    return model, Batch(x, y, weight)


def dense(model, batch):
    """Hessian, and Hessian less the Gauss–Newton matrix, of the weighted cross-entropy or squared loss."""
    with float64():
        theta, unravel = ravel_pytree(model)
        share = batch.weight / batch.weight.sum()

        def outputs(vector):
            return jax.vmap(unravel(vector))(batch.x)

        def risk(z):
            if z.ndim == 1:
                return share @ (z - batch.y) ** 2
            return share @ (jnp.log(jnp.exp(z).sum(axis=1)) - z[jnp.arange(SAMPLES), batch.y])

        slope = jax.grad(risk)(outputs(theta))
        hessian = jax.hessian(lambda t: risk(outputs(t)))(theta)
        return np.asarray(hessian), np.asarray(jax.hessian(lambda t: jnp.sum(slope * outputs(t)))(theta))


@pytest.fixture(scope="module")
def drawn():
    """Values of parts, draws and groups: of the rest, and of the Gauss–Newton matrix; and the dense matrices."""
    model, batch = case()
    curvature = _curvature.Curvature(model, batch, cross_entropy, chunk=CHUNK, predict=None)
    colors = sharpness._colors(curvature.groups, 16)
    assert colors.tolist() == [0, 2, 1, 2]
    rest = curvature.residual_parts(jr.key(seed(1)), colors, DRAWS)
    newton = curvature.fisher_parts(jr.key(seed(2)), DRAWS)
    hessian, difference = dense(model, batch)
    return rest, newton, hessian, difference, [group.start for group in curvature.groups]


def test_both_parts_are_unbiased_in_every_group(drawn):
    """Right code fails once in 10^8 runs; a tenth of the Hessian's trace too much in any group is found."""
    rest, newton, hessian, difference, starts = drawn
    wrong = np.trace(hessian) / 10
    for values, matrix in ((rest, difference), (newton, hessian - difference)):
        for samples, truth in zip(values.sum(axis=0).T, np.add.reduceat(np.diag(matrix), starts), strict=True):
            if samples.std() < 1e-9:  # a readout that is linear has no second derivative
                assert samples == pytest.approx(truth, abs=1e-9)
            else:
                assert_mean(samples, truth, planted=truth + wrong)


@pytest.mark.parametrize("part", [0, 1])
def test_the_stated_error_is_that_over_draws(drawn, part):
    """Squared errors of pairs of draws over their stated variance have mean 1; half of it and one and a half are found.

    A sum over parts that took their values for equal, or forgot that draws are averaged, would be off by more.
    """
    values, truth = drawn[part], np.trace(drawn[3] if part == 0 else drawn[2] - drawn[3])
    pairs = [sharpness._by_parts(values[:, i : i + 2])[0] for i in range(0, DRAWS, 2)]
    stated = np.mean([each.sem**2 for each in pairs])
    ratios = np.array([(each.mean - truth) ** 2 for each in pairs]) / stated
    assert_at_most(ratios, 1.0, planted=1.5)
    assert_at_least(ratios, 1.0, planted=0.5)


def test_masks_keep_blocks_between_colors_out(drawn):
    """The variance is that of the blocks of each color; the whole matrix, which forgotten masks give, has more."""
    model, batch = case()
    rest, difference = drawn[0], drawn[3]
    found = rest.sum(axis=2).var(axis=1, ddof=1).sum()
    curvature = _curvature.Curvature(model, batch, cross_entropy, chunk=CHUNK, predict=None)
    unmasked = curvature.residual_parts(jr.key(seed(3)), np.zeros(4, int), DRAWS)
    assert unmasked.sum(axis=(0, 2)).mean() == pytest.approx(np.trace(difference), abs=0.2)
    assert found < unmasked.sum(axis=2).var(axis=1, ddof=1).sum() / 2


@pytest.mark.parametrize("masked", [False, True])
def test_groups_sum_to_the_total_with_any_chunk(masked):
    model, batch = case()
    hessian, _ = dense(model, batch)
    for chunk in (1024, 3):
        found = hessian_trace(
            model, batch, cross_entropy, method="split", probes=9, key=jr.key(4), masked=masked, chunk=chunk
        )
        assert sum(each.mean for each in found.groups.values()) == pytest.approx(found.mean)
        assert found.products == (4 * 9 if masked else 3 * 3)
        assert abs(found.mean - np.trace(hessian)) < 6 * found.sem


def test_one_output_and_losses_without_a_law_have_their_gauss_newton_part_exactly():
    """At labels that the model gives, nothing is left to estimate."""
    model, batch = case(outputs=1)
    hessian, _ = dense(model, batch)
    found = hessian_trace(model, batch, squared, method="split", probes=4, key=jr.key(0))
    assert abs(found.mean - np.trace(hessian)) < 6 * found.sem
    with float64():
        flat = Batch(batch.x, jax.vmap(model)(batch.x), batch.weight)
    own = own_loss(lambda outputs, y: (outputs - y) ** 2, "own")
    for loss in (squared, own):
        exact = hessian_trace(model, flat, loss, method="exact").mean
        found = hessian_trace(model, flat, loss, method="split", probes=4, key=jr.key(0))
        assert (found.mean, found.sem) == (pytest.approx(exact), pytest.approx(0.0, abs=1e-12))


@pytest.mark.parametrize(
    ("shapes", "most", "colors"),
    [
        ([(2, 2), (2,), (2, 2), (2, 2), ()], 16, [0, 3, 1, 2, 3]),
        ([(2, 2), (2,), (2, 2), (2, 2), ()], 3, [0, 2, 1, 0, 2]),
        ([(2, 2), (2,), (2, 2)], 1, [0, 0, 0]),
        ([(2, 2), (3, 2), (2, 2, 2)], 2, [0, 1, 0]),
        ([(2,), (3,)], 16, [0, 0]),
    ],
)
def test_colors_are_as_many_as_the_products_allow(shapes, most, colors):
    groups = [_curvature.ParameterGroup(str(i), 0, 0, shape) for i, shape in enumerate(shapes)]
    assert sharpness._colors(groups, most).tolist() == colors
