"""The chain behind claim C5 against derivatives by automatic differentiation, and by hand."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from genscope.bounds.perturbation import Derivatives, derivatives, steady_sigma, trace_change
from genscope.constructions.fourier_components import fourier_components
from genscope.fourier import WalshFunction, cube
from genscope.precision import float64

SIZES = {
    "degree": 2,
    "sharpness": 3.6,
    "logits_norm": 34.0,
    "largest_logit": 15.0,
    "value": 1.4,
    "inactive": 1e-6,
}


def sizes(built):
    plan = built.plan
    return {
        "degree": plan.degree,
        "sharpness": plan.sharpness,
        "logits_norm": float(np.linalg.norm(plan.logits)),
        "largest_logit": float(np.abs(plan.logits).max()),
        "value": float(plan.values.sum()),
        "inactive": 1e-6,
    }


def test_gradient_and_hessian_are_below_their_bounds_at_every_input():
    """And not below a hundredth of them at all inputs: the proof loses 5 in the gradient, about 100 in the Hessian."""
    built = fourier_components(WalshFunction(4, ((0, 1), (1, 3)), (0.6, 0.8), basis="phi"), variant="full")
    found = derivatives(**sizes(built))
    with float64():
        parameters, rest = eqx.partition(built.model, eqx.is_inexact_array)
        theta, unravel = ravel_pytree(parameters)

        @jax.jit
        def both(bits):
            def output(point):
                return eqx.combine(unravel(point), rest)(bits)

            return jnp.linalg.norm(jax.grad(output)(theta)), jax.hessian(output)(theta)

        drawn = [both(bits) for bits in jnp.asarray(cube.points(4)[::3])]
    gradients = [float(gradient) for gradient, _ in drawn]
    norms = [np.abs(np.linalg.eigvalsh(np.asarray(hessian))).max() for _, hessian in drawn]
    assert found.gradient / 10 < max(gradients) <= found.gradient
    assert found.hessian / 300 < max(norms) <= found.hessian


def test_the_chain_by_hand():
    bound = trace_change(
        derivatives=Derivatives(3.0, 5.0, 1.0), sigma=0.1, parameters=4, inputs=1, failure_probability=0.5
    )
    moved = 0.1 * 5 * (2 + math.sqrt(2 * math.log(4)))
    output = 0.1 * 3 * math.sqrt(2 * math.log(8))
    assert bound.terms == pytest.approx({"gradient": 4 * 3 * moved, "residual": 2 * 4 * output * 5})
    assert bound.explicit


@pytest.mark.parametrize("name", ["sharpness", "logits_norm", "largest_logit", "value", "inactive"])
def test_larger_weights_never_lower_the_bounds(name):
    small, large = derivatives(**SIZES), derivatives(**(SIZES | {name: 2 * SIZES[name]}))
    assert all(after >= before for before, after in zip(small, large, strict=True))
    assert large.hessian > small.hessian


def test_the_change_is_linear_in_sigma_and_flips_come_sooner_with_more_inputs():
    found = derivatives(**SIZES)
    changes = [trace_change(derivatives=found, sigma=s, parameters=400, inputs=64).value for s in (1e-5, 1e-2)]
    assert changes[1] == pytest.approx(1e3 * changes[0])
    options = {"derivatives": found, "degree": 2, "components": 2, "leakage": 0.5, "failure_probability": 0.05}
    few, many = (steady_sigma(inputs=inputs, **options) for inputs in (1, 10**6))
    assert 0 < many < few < 0.125  # the margin itself is (1 - 1/2) / 8, and every unit moves at least like its bias


def test_sizes_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="Take them from the construction"):
        derivatives(**(SIZES | {"value": 0.0}))
    for changes in ({"sigma": 0.0}, {"inputs": 0}, {"failure_probability": 1.0}, {"sigma": math.nan}):
        options = {"sigma": 0.1, "parameters": 4, "inputs": 1, "failure_probability": 0.5} | changes
        with pytest.raises(ValueError, match="Correct the one"):
            trace_change(derivatives=Derivatives(1.0, 1.0, 1.0), **options)
