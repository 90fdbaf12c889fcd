"""Sharpness of small networks against dense Hessians, and of the Fourier construction against its golden trace."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from genscope.constructions.fourier_components import fourier_components
from genscope.fourier import WalshFunction, cube
from genscope.measure import gradient_trace, hessian_trace, operator_norm, smoothed_sharpness
from genscope.measure.sharpness import METHODS
from genscope.models import BitClassifier, BitTransformer
from genscope.precision import float64
from genscope.tasks import Batch
from genscope.train import logistic, squared

SAMPLES = 13


class Network(eqx.Module):
    """Two layers of tanh, `outputs` outputs, one parameter of another type, one integer that is none."""

    hidden: jax.Array
    readout: jax.Array
    offset: jax.Array
    power: jax.Array
    outputs: int = eqx.field(static=True)

    @classmethod
    def draw(cls, key, *, outputs=1, dtype=jnp.float64, offset_dtype=None):
        shapes = (3, 4), (4, outputs)
        hidden, readout = (jr.normal(each, s, dtype) for each, s in zip(jr.split(key), shapes, strict=True))
        return cls(hidden, readout, jnp.full(outputs, 0.3, offset_dtype or dtype), jnp.asarray(1), outputs)

    def __call__(self, x):
        found = jnp.tanh(x @ self.hidden) ** self.power @ self.readout + self.offset.astype(self.readout.dtype)
        return found[0] if self.outputs == 1 else found


def case(outputs=1, labels=None):
    with float64():
        model = Network.draw(jr.key(1), outputs=outputs)
        x = jr.normal(jr.key(2), (SAMPLES, 3))
        shape = (SAMPLES,) if outputs == 1 else (SAMPLES, outputs)
        y = jr.normal(jr.key(3), shape) if labels is None else jr.bernoulli(jr.key(3), 0.5, shape).astype(float)
    return model, Batch(x, y)


def dense(model, batch, loss):
    """Hessian and Gauss–Newton matrix by brute force."""
    with float64():
        parameters, rest = eqx.partition(model, eqx.is_inexact_array)
        theta, unravel = ravel_pytree(parameters)

        def outputs(vector):
            return jax.vmap(eqx.combine(unravel(vector), rest))(batch.x).reshape(-1)

        def risk(predictions):
            return loss(predictions, batch.y.reshape(-1)).mean()

        def both(vector):
            jacobian = jax.jacrev(outputs)(vector)
            newton = jacobian.T @ jax.hessian(risk)(outputs(vector)) @ jacobian
            return jax.hessian(lambda t: risk(outputs(t)))(vector), newton

        return tuple(map(np.asarray, jax.jit(both)(theta)))


STARTS = {1: (0, 12, 16), 2: (0, 12, 20)}


@pytest.fixture(scope="module")
def plain():
    model, batch = case()
    return model, batch, *dense(model, batch, squared)


@pytest.mark.parametrize("chunk", [1024, 5])
def test_the_exact_trace_is_that_of_the_dense_hessian(plain, chunk):
    model, batch, hessian, _ = plain
    found = hessian_trace(model, batch, method="exact", chunk=chunk)
    assert found.mean == pytest.approx(np.trace(hessian), rel=1e-12)
    assert (found.sem, found.products) == (0.0, 17)
    blocks = np.add.reduceat(np.diag(hessian), STARTS[1])
    assert [each.mean for each in found.groups.values()] == pytest.approx(blocks, rel=1e-10)
    assert list(found.groups) == ["hidden", "readout", "offset"]


@pytest.mark.parametrize(("outputs", "loss"), [(1, squared), (2, logistic)])
def test_the_gauss_newton_trace(outputs, loss):
    model, batch = case(outputs, labels=None if loss is squared else "bits")
    _, newton = dense(model, batch, loss)
    found = gradient_trace(model, batch, loss, chunk=4)
    assert found.mean == pytest.approx(np.trace(newton), rel=1e-12)
    blocks = np.add.reduceat(np.diag(newton), STARTS[outputs])
    assert [each.mean for each in found.groups.values()] == pytest.approx(blocks, rel=1e-12)
    if outputs == 1:
        nystrom = hessian_trace(model, batch, loss, method="xnystrace", probes=6, key=jr.key(0))
        assert abs(nystrom.mean - found.mean) < 6 * nystrom.sem + 1e-9


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("method", ["hutchinson", "hutchpp", "xtrace"])
def test_estimates_are_near_and_groups_sum_to_the_total(plain, method, masked):
    model, batch, hessian, _ = plain
    found = hessian_trace(model, batch, method=method, probes=8, key=jr.key(4), masked=masked)
    assert 0 < found.sem < np.abs(np.linalg.eigvalsh(hessian)).sum()
    assert abs(found.mean - np.trace(hessian)) < 6 * found.sem
    assert sum(each.mean for each in found.groups.values()) == pytest.approx(found.mean)
    each = {"hutchinson": 1, "hutchpp": 3, "xtrace": 2}[method] * 8
    assert found.products == each * (3 if masked else 1)
    again = hessian_trace(model, batch, method=method, probes=8, key=jr.key(4), masked=masked)
    assert again.mean == found.mean


def test_masked_probes_leave_out_the_blocks_beside_the_diagonal(plain):
    """The block of the offset is one number, so its own probes know it exactly."""
    model, batch, _, _ = plain
    shared = hessian_trace(model, batch, method="hutchinson", probes=8, key=jr.key(4))
    masked = hessian_trace(model, batch, method="hutchinson", probes=8, key=jr.key(4), masked=True)
    assert masked.groups["offset"].sem < 1e-12 < shared.groups["offset"].sem
    assert masked.groups["offset"].mean == pytest.approx(2.0)


def test_with_probes_for_half_of_the_parameters_the_trace_is_exact(plain):
    model, batch, hessian, _ = plain
    found = hessian_trace(model, batch, probes=9, key=jr.key(0))
    assert (found.sem, found.mean) == (0.0, pytest.approx(np.trace(hessian)))


def test_a_batched_predictor_is_used(plain):
    model, batch, _, _ = plain

    def doubled(model, x):
        return 2 * jax.vmap(model)(x)

    ordinary, twice = (gradient_trace(model, batch, predict=each).mean for each in (None, doubled))
    assert twice == pytest.approx(4 * ordinary)


def test_the_norm_and_its_residual(plain):
    model, batch, hessian, _ = plain
    eigenvalues = np.linalg.eigvalsh(hessian)
    found = operator_norm(model, batch, key=jr.key(0), depth=30)
    assert found.norm == pytest.approx(np.abs(eigenvalues).max(), rel=1e-9)
    assert (found.lowest, found.highest) == pytest.approx((eigenvalues[0], eigenvalues[-1]), rel=1e-6)
    early = operator_norm(model, batch, key=jr.key(0), depth=3)
    assert early.norm <= np.abs(eigenvalues).max() * (1 + 1e-9)
    assert np.abs(eigenvalues - early.eigenvalue).min() <= early.residual


def test_the_smoothed_loss_of_a_quadratic_has_the_sharpness_of_its_hessian():
    x = np.random.default_rng(0).normal(size=(6, 4))
    with float64():
        model, batch = Linear(jnp.ones(4)), Batch(jnp.asarray(x), jnp.zeros(6))
    exact = hessian_trace(model, batch, method="exact").mean
    assert exact == pytest.approx(2 * np.mean(np.sum(x**2, axis=1)), rel=1e-12)
    found = smoothed_sharpness(model, batch, sigma=0.7, key=jr.key(2), pairs=400)
    assert abs(found.mean - exact) < 5 * found.sem
    assert found.sem < exact / 5


class Linear(eqx.Module):
    weight: jax.Array

    def __call__(self, x):
        return x @ self.weight


@pytest.mark.parametrize(("dtype", "offset"), [(jnp.float32, jnp.bfloat16)])
def test_any_number_type(plain, dtype, offset):
    model, batch, hessian, _ = plain
    single = Network.draw(jr.key(1), dtype=dtype, offset_dtype=offset)
    copied = eqx.tree_at(lambda m: (m.hidden, m.readout), single, (model.hidden, model.readout))
    copied = jax.tree.map(lambda a, like: jnp.asarray(np.asarray(a), like.dtype), copied, single)
    data = Batch(jnp.asarray(np.asarray(batch.x), dtype), jnp.asarray(np.asarray(batch.y)))
    assert hessian_trace(copied, data, method="exact").mean == pytest.approx(np.trace(hessian), rel=2e-2)


@pytest.mark.slow
def test_golden_sharpness_of_the_fourier_construction():
    """Golden: G1 by autodiff has trace 431.066452 and largest eigenvalue 311.5 (printed digits)."""
    function = WalshFunction(6, ((0, 1), (2, 3)), (0.6, 0.8), basis="phi")
    built = fourier_components(function, variant="full")
    bits = cube.points(6)
    with float64():
        batch = Batch(jnp.asarray(bits), jnp.asarray(function(bits)))
    assert hessian_trace(built.model, batch, method="exact").mean == pytest.approx(431.066452, rel=1e-8)
    assert operator_norm(built.model, batch, key=jr.key(0)).norm == pytest.approx(311.5, abs=0.05)


@pytest.mark.parametrize(
    ("changes", "advice"),
    [
        ({"method": "magic"}, "Choose one of them"),
        ({"method": "xtrace"}, "Give more probes and a key"),
        ({"method": "hutchinson", "probes": 1, "key": jr.key(0)}, "Give more probes"),
        ({"method": "xnystrace", "probes": 17, "key": jr.key(0)}, "method='gauss_newton'"),
        ({"chunk": 0}, "Give 1 or more"),
        ({"y": jnp.zeros((SAMPLES, 1))}, r"Take y\[:, 0\] for y"),
        ({"model": eqx.nn.Identity()}, "floating-point arrays"),
    ],
)
def test_what_makes_no_sense_is_refused(plain, changes, advice):
    model, batch, _, _ = plain
    options = {"probes": 4, **changes}
    batch = Batch(batch.x, options.pop("y", batch.y))
    with pytest.raises(ValueError, match=advice):
        hessian_trace(options.pop("model", model), batch, **options)
    assert "magic" not in METHODS


def test_sizes_of_the_others_are_checked_too(plain):
    model, batch, _, _ = plain
    with pytest.raises(ValueError, match="at least one step"):
        operator_norm(model, batch, key=jr.key(0), depth=0)
    for sigma, pairs in ((0.0, 4), (float("nan"), 4), (0.1, 1)):
        with pytest.raises(ValueError, match="at least two pairs"):
            smoothed_sharpness(model, batch, sigma=sigma, pairs=pairs, key=jr.key(0))


@pytest.mark.parametrize("name", ["classifier", pytest.param("transformer", marks=pytest.mark.slow)])
def test_networks_with_a_fast_form_are_measured_whatever_its_derivative(name):
    """The classifier's fast form has a gradient of its own, which has no forward mode; the Transformer's has both."""
    with float64():
        if name == "classifier":
            model = BitClassifier(3, dim=4, heads=2, key=jr.key(1))
        else:
            model = BitTransformer(3, embedding=2, hidden=3, key=jr.key(1))
        x, y = jnp.asarray(cube.points(3)), jnp.asarray(np.random.default_rng(0).normal(size=8))
    hessian, newton = dense(model, Batch(x, y), squared)
    assert hessian_trace(model, Batch(x, y), method="exact").mean == pytest.approx(np.trace(hessian))
    found = hessian_trace(model, Batch(x, y), method="xnystrace", probes=9, key=jr.key(0))  # more than its rank
    assert found.mean == pytest.approx(np.trace(newton))
