"""The perturbation study at its smallest, against the trace by all Hessian-vector products."""

import equinox as eqx
import jax
import jax.flatten_util
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from genscope.constructions.fourier_components import fourier_components
from genscope.fourier import random_function
from genscope.measure import hessian_trace
from genscope.precision import float64
from genscope.random import stream
from genscope.studies import lintilhac2026_perturbation as study
from genscope.tasks import Batch

POINT = {"context_length": 3, "degree": 2, "sparsity": 2, "draws": 1, "pairs": 4}


@pytest.fixture(scope="module")
def record():
    return study.trial(jr.key(0), **POINT)


def test_a_trial_reports_the_whole_mesh(record):
    assert record["sigma"] == pytest.approx(np.logspace(-5, -2, 20))
    for name in (
        "trace_change",
        "trace_change_sem",
        "mean_trace_change",
        "smoothed_change",
        "smoothed_change_sem",
        "bound",
    ):
        assert len(record[name]) == 20
        assert np.isfinite(record[name]).all()
    assert record["trace"] == pytest.approx(record["closed_form_trace"], rel=0.2)  # 256 inputs instead of all


def test_measured_changes_are_below_the_bound_and_of_the_stated_order(record):
    assert (np.array(record["trace_change"]) < np.array(record["bound"])).all()
    small = np.array(record["smoothed_change"][2:9])
    assert small / small[0] == pytest.approx(np.array(record["sigma"][2:9]) ** 2 / record["sigma"][2] ** 2, rel=0.05)


@pytest.mark.slow
def test_the_trace_after_noise_is_that_of_all_products(record):
    """At the largest sigma, of the same function, inputs and noise, within five standard errors."""
    key = jr.key(0)
    with float64():
        sizes = {"dim": POINT["context_length"], "degree": POINT["degree"], "sparsity": POINT["sparsity"]}
        function = random_function(stream(key, "function"), **sizes, basis="phi")
        model = fourier_components(function).model
        x = jr.bernoulli(stream(key, "inputs"), 0.5, (study.INPUTS, POINT["context_length"]))
        batch = Batch(x, jnp.asarray(function(np.asarray(x))))
        parameters, rest = eqx.partition(model, eqx.is_inexact_array)
        theta, unravel = jax.flatten_util.ravel_pytree(parameters)
        noise = jr.normal(stream(key, "noise"), (POINT["pairs"], theta.size), theta.dtype)[0]
        moved = eqx.combine(unravel(theta + study.SIGMAS[-1] * noise), rest)
    before, after = (hessian_trace(each, batch, method="exact").mean for each in (model, moved))
    assert record["trace"] == pytest.approx(before, rel=1e-4)
    sem = record["trace_change_sem"][-1]
    assert 0 < sem < 0.2 * before
    assert record["mean_trace_change"][-1] == pytest.approx(after - before, abs=5 * sem)


def test_points_without_a_construction_are_refused():
    with pytest.raises(ValueError, match="Lower the sparsity"):
        study.STUDY.check({"context_length": 10, "degree": 10, "sparsity": 5})
    for budget in ("quick", "standard", "paper"):
        for point in study.STUDY.plan(budget).points:
            study.STUDY.check(point)
