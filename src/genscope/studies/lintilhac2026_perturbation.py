r"""Does noise on the weights of the Fourier construction change the trace of its Hessian? Measured, and bounded.

Two changes are measured at every $\sigma$ of a mesh: that of the trace itself, at single draws of the noise, and
$\hat\Delta(\sigma)=\mathbb E\big[\frac1{\sigma^2}(L(\theta+\epsilon)+L(\theta-\epsilon)-2L(\theta))
-\xi^\top\nabla^2L(\theta)\,\xi\big]$, $\epsilon=\sigma\xi$, which is what the PAC-Bayes bound adds to the trace. Noise
of different size has the same directions $\xi$.

Source: lintilhac2026, Section 2.3.
Departures: the mesh of $\sigma$ is even in the logarithm; sparsities and context lengths are ours, the text lost them;
risk on 256 uniform inputs. The paper takes the change of the trace for $\Delta$: these are different quantities.
Guarantee: float64. The Gauss–Newton part of a trace is exact on the inputs; the other part, which is of first order in
$\sigma$, is estimated from `PROBES` random directions, with a standard error. Functions are few: the largest of n
exceeds the 90 % quantile with probability $1-0.9^n$ only.
"""

import functools
import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Key

from genscope.bounds.perturbation import derivatives, steady_sigma, trace_change
from genscope.compilation import ONCE, compiled_faster, jit
from genscope.constructions.fourier_components import fourier_components
from genscope.constructions.fourier_construction import FourierConstruction
from genscope.fourier import random_function
from genscope.lab import Curves, Plan, Study, grid, within
from genscope.precision import float64
from genscope.random import stream
from genscope.refusal import Refusal

SIGMAS = tuple(np.logspace(-5, -2, 20).tolist())
INPUTS = 256
PROBES = 8
LEAKAGE, INACTIVE = 0.5, 1e-6  # of the paper's variant
TINY = 1e-12  # changes below it are drawn as if they were of this size
FAILURE = 0.05  # of the analytic bound, over the noise


def trial(
    key: Key[Array, ""], *, context_length: int, degree: int, sparsity: int, draws: int, pairs: int
) -> dict[str, Any]:
    """Perturb the construction of one random function: `draws` traces and `pairs` antithetic losses for each sigma."""
    with float64():
        function = random_function(
            stream(key, "function"), dim=context_length, degree=degree, sparsity=sparsity, basis="phi"
        )
        built = fourier_components(function, leakage=LEAKAGE, inactive=INACTIVE, key=stream(key, "expectation"))
        x = _inputs(stream(key, "inputs"), context_length)
        y = jnp.asarray(function(np.asarray(x)))
        parameters, rest = eqx.partition(built.model, eqx.is_inexact_array)
        theta, unravel = ravel_pytree(parameters)
        measure = functools.partial(_trace, unravel, rest, x, y)
        probes = jr.rademacher(stream(key, "probes"), (PROBES, theta.size), theta.dtype)
        noise = jr.normal(stream(key, "noise"), (max(draws, pairs), theta.size), theta.dtype)
        before = float(measure(theta, probes)[0])
        moved = np.array([[measure(theta + sigma * row, probes) for row in noise[:draws]] for sigma in SIGMAS])
        changes, sems = moved[..., 0] - before, moved[..., 1]
        smoothed = np.asarray(_smoothed_changes(unravel, rest, x, y, theta, noise[:pairs]))
    largest, limits = np.abs(changes).max(axis=1), _bounds(built, theta.size)
    return {
        "sigma": list(SIGMAS),
        "trace": before,
        "closed_form_trace": built.trace,
        "trace_change": largest.tolist(),
        "trace_change_sem": sems.max(axis=1).tolist(),
        "mean_trace_change": changes.mean(axis=1).tolist(),
        "smoothed_change": smoothed.mean(axis=0).tolist(),
        "smoothed_change_sem": (smoothed.std(axis=0, ddof=1) / math.sqrt(pairs)).tolist(),
        "log_trace_change": np.log10(np.maximum(largest, TINY)).tolist(),
        "log_bound": np.log10(limits["bound"]).tolist(),
        **limits,
    }


@functools.partial(jit, static_argnums=1, compiler_options=ONCE)
def _inputs(key: Key[Array, ""], context_length: int) -> Bool[Array, "inputs T"]:
    return jr.bernoulli(key, 0.5, (INPUTS, context_length))


@compiled_faster
def _trace(
    unravel: Any, rest: Any, x: Array, y: Array, theta: Float[Array, " p"], probes: Float[Array, "m p"]
) -> Float[Array, " 2"]:
    r"""Trace of the Hessian, $2\,\mathbb E\|\nabla f\|^2+2\,\mathbb E[(f-y)\operatorname{Tr}\nabla^2f]$, and its
    standard error.
    """

    def outputs(point: Array) -> Array:
        return jax.vmap(eqx.combine(unravel(point), rest))(x)

    gradients = jax.vmap(jax.grad(lambda point, bits: eqx.combine(unravel(point), rest)(bits)), (None, 0))(theta, x)
    residual = outputs(theta) - y
    rest_of_trace = jax.lax.map(lambda row: _second(lambda p: 2 * jnp.mean(residual * outputs(p)), theta, row), probes)
    trace = 2 * jnp.mean(jnp.sum(gradients**2, axis=1)) + jnp.mean(rest_of_trace)
    return jnp.stack([trace, jnp.std(rest_of_trace, ddof=1) / math.sqrt(PROBES)])


@compiled_faster
def _smoothed_changes(
    unravel: Any, rest: Any, x: Array, y: Array, theta: Array, noise: Array
) -> Float[Array, "pairs sigmas"]:
    """Second differences of the loss less its second derivative, along every direction and for every sigma."""

    def loss(point: Array) -> Array:
        return jnp.mean((jax.vmap(eqx.combine(unravel(point), rest))(x) - y) ** 2)

    def along(row: Array) -> Array:
        def difference(sigma: Array) -> Array:
            ends = jax.lax.map(lambda sign: loss(theta + sign * sigma * row), jnp.array([1.0, 0.0, -1.0]))
            return (ends[0] - 2 * ends[1] + ends[2]) / sigma**2

        return jax.lax.map(difference, jnp.array(SIGMAS)) - _second(loss, theta, row)

    return jax.lax.map(along, noise)


def _second(function: Any, point: Array, direction: Array) -> Float[Array, ""]:
    """Second derivative along a direction, forward twice."""

    def first(moved: Array) -> Array:
        return jax.jvp(function, (moved,), (direction,))[1]

    return jax.jvp(first, (point,), (direction,))[1]


def _bounds(built: FourierConstruction, parameters: int) -> dict[str, Any]:
    """The analytic bound at each sigma, and up to which sigma it is proved that no unit flips."""
    plan = built.plan
    found = derivatives(
        degree=plan.degree,
        sharpness=plan.sharpness,
        logits_norm=float(np.linalg.norm(plan.logits)),
        largest_logit=float(np.abs(plan.logits).max()),
        value=float(plan.values.sum()),
        inactive=INACTIVE,
    )
    limits = [
        trace_change(
            derivatives=found, sigma=sigma, parameters=parameters, inputs=INPUTS, failure_probability=FAILURE
        ).value
        for sigma in SIGMAS
    ]
    steady = steady_sigma(
        derivatives=found,
        degree=plan.degree,
        components=plan.sparsity,
        leakage=LEAKAGE,
        inputs=INPUTS,
        failure_probability=FAILURE,
    )
    return {"bound": limits, "steady_sigma": steady, "gradient_bound": found.gradient, "hessian_bound": found.hessian}


def _check(point) -> None:
    within(context_length=(1, 64), degree=(1, 64), sparsity=(1, 64), draws=(1, 1000), pairs=(2, 10_000))(point)
    if "sparsity" in point and "degree" in point and "context_length" in point:
        length, degree = int(point["context_length"]), int(point["degree"])
        most = min(length, math.comb(length, degree))
        if int(point["sparsity"]) > most:
            raise Refusal(
                f"a construction on {length} bits has at most {most} components of degree {degree}. Lower the sparsity."
            )


def _points(lengths, degrees, sparsities, **effort):
    return tuple(
        point
        for point in grid(context_length=lengths, degree=degrees, sparsity=sparsities, **effort)
        if int(point["sparsity"]) <= int(point["context_length"])
    )


STUDY = Study(
    name="lintilhac2026-perturbation",
    title="Noise on the weights, and the trace of the Hessian",
    source="lintilhac2026, Section 2.3",
    trial=trial,
    trial_cost=5.0,
    points=_points([10, 20], [1, 2, 3, 4, 5], [2, 5], draws=[2], pairs=[32]),
    seeds=3,
    budgets={
        "quick": Plan(_points([10, 20], [1, 2, 3], [5], draws=[1], pairs=[8])),
        "paper": Plan(_points([10, 20, 30, 40], [1, 2, 3, 4, 5], [2, 5, 10, 20], draws=[4], pairs=[64]), seeds=10),
    },
    figures=(
        Curves(
            title="Change of the trace under noise, and its analytic bound",
            caption=(
                "Largest absolute change of the trace of the Hessian over draws of Gaussian noise on all weights, one "
                "thin line per random function, and the first-order bound proved for it."
            ),
            labels={
                "sigma": "standard deviation of the noise σ",
                "log_trace_change": "measured change of the trace",
                "log_bound": "analytic bound",
                "degree": "degree k",
            },
            x="sigma",
            y=("log_trace_change", "log_bound"),
            quantity="log₁₀ of the change of the trace",
            facet="degree",
            log_x=True,
        ),
    ),
    paired=frozenset({"draws", "pairs"}),
    batch=1,
    check=_check,
)
