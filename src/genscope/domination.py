r"""A trained model against the flat construction of the function it computes, and the bound that would follow.

The paper's workflow, in one call: probe the model, build the network of Appendix B for what was found, compare norm,
trace and perturbed sharpness at the training data, and bound the risk by the construction's norm and sharpness.

Source: lintilhac2026, Theorem 2 and Section 2.2; Section 5 (probing instead of knowing the target).
Departures: the perturbed sharpness is measured for both networks, where the paper compares traces. A model that does
not interpolate keeps its loss on the data as a term.
Guarantee: none of the bound, unless its assumptions hold (`assumptions`, printed with it): domination is measured with
a standard error, the constant is fitted or given, and the target is taken from the model instead of being known.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key, PyTree

from genscope.bounds import Bound
from genscope.bounds.flat_minima import BoundSetting, Domination, domination, semi_analytic, truncated_optimum
from genscope.bounds.loss_constant import fitted_constant
from genscope.constructions import FourierConstruction, fourier_components, verify_fourier
from genscope.estimate import Estimate
from genscope.measure import hessian_trace, mean_loss, smoothed_sharpness
from genscope.models.bit_transformer import BitTransformer
from genscope.precision import float64
from genscope.probe import Findings, probe
from genscope.random import stream
from genscope.refusal import Refusal
from genscope.tasks import Batch

TOLERANCE = 0.05  # of the model's variance that the function may leave out
SEMS = 2.0  # standard errors that a comparison must survive
_SIZES = (64, 1024, 16384)  # inputs at once: one program is compiled for each

Model = Callable[..., Any]


@dataclass(frozen=True)
class Measured:
    """A network at the data: squared norm, trace of the Hessian, perturbed sharpness at the bound's σ, mean loss."""

    parameters: int
    norm_squared: float
    trace: Estimate
    perturbed_sharpness: Estimate
    mean_loss: float


@dataclass(frozen=True)
class Comparison:
    """What was found; `dominated` is None where standard errors leave it open."""

    function: Findings
    built: FourierConstruction
    verified: bool
    constructed: Measured
    trained: Measured
    ratios: Domination
    dominated: bool | None
    sigma: float
    constant: float
    bound: Bound
    assumptions: tuple[str, ...]


def dominate(
    model: Model,
    batch: Batch,
    bits: int,
    *,
    key: Key[Array, ""],
    tolerance: float = TOLERANCE,
    constant: float | None = None,
    confidence: float = 0.95,
    probes: int = 32,
    seed: int = 0,
) -> Comparison:
    r"""Compare a model of `bits` bits with the construction of its function, at data with inputs 0 and 1.

    The function is that of `probe` with this `tolerance`. $C$ is fitted to the model's losses on the data unless given;
    $\sigma$ is the best one of the truncated bound for the construction.
    """
    outputs = _outputs(model, batch.x.dtype)
    found = probe(outputs, bits, tolerance=tolerance, seed=seed)
    if found.sparsity is None:
        raise Refusal(
            f"the model has at least {found.sparsity_at_least} Fourier components, more than the probe can identify "
            f"while leaving out at most {tolerance:g} of the variance, so no network can be built. Increase the "
            "tolerance, or train the model further."
        )
    if not found.sparsity:
        raise Refusal(
            "the model computes a constant on almost all inputs, so there is no Fourier component to build. Train it "
            "further, or check its outputs."
        )
    if found.sparsity > bits:
        raise Refusal(_too_many(found, bits))
    samples = len(batch.x)
    built = fourier_components(found.function, key=stream(key, "expectation"))
    losses = (outputs(np.asarray(batch.x)) - np.asarray(batch.y, float)) ** 2
    used = fitted_constant(losses.tolist()) if constant is None else constant
    size, trace = built.norm_squared["total"], built.trace
    sigma = truncated_optimum(norm_squared=size, trace=trace, constant=max(used, 1e-12), samples=samples).sigma
    options = {"sigma": sigma, "probes": probes, "key": stream(key, "probes")}
    trained = _measured(model, batch, **options)
    with float64():
        wide = Batch(jnp.asarray(np.asarray(batch.x)), jnp.asarray(np.asarray(batch.y, float)))
        constructed = _measured(built.model, wide, exact=trace, **options)
    ratios = domination(
        norm_squared=trained.norm_squared,
        sharpness=max(trained.perturbed_sharpness.mean, 0.0),
        built_norm_squared=size,
        built_sharpness=max(constructed.perturbed_sharpness.mean, 1e-300),
    )
    variance = float(np.var(np.asarray(batch.y, float)))
    bound = semi_analytic(
        BoundSetting(size, max(used, 1e-12), samples, confidence, trivial=max(variance, 1e-12)),
        sigma=sigma,
        trace=trace,
        perturbation=constructed.perturbed_sharpness.mean - trace,
        empirical_risk=trained.mean_loss,
    )
    return Comparison(
        function=found,
        built=built,
        verified=verify_fourier(built, key=stream(key, "verification")).verified,
        constructed=constructed,
        trained=trained,
        ratios=ratios,
        dominated=_dominated(trained, constructed),
        sigma=sigma,
        constant=used,
        bound=bound,
        assumptions=_assumptions(found, given=constant is not None, labels=np.asarray(batch.y, float)),
    )


def _measured(
    model: PyTree, batch: Batch, *, sigma: float, probes: int, key: Key[Array, ""], exact: float | None = None
) -> Measured:
    predict = BitTransformer.outputs if isinstance(model, BitTransformer) else None
    weights = jax.tree.leaves(eqx.filter(model, eqx.is_inexact_array))
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):  # a model may mix types
        return Measured(
            parameters=sum(leaf.size for leaf in weights),
            norm_squared=math.fsum(float(np.sum(np.asarray(leaf, float) ** 2)) for leaf in weights),
            trace=Estimate(exact, 0.0)
            if exact is not None
            else hessian_trace(model, batch, probes=probes, key=stream(key, "trace"), predict=predict),
            perturbed_sharpness=smoothed_sharpness(
                model, batch, sigma=sigma, pairs=probes, key=stream(key, "noise"), predict=predict
            ),
            mean_loss=mean_loss(model, batch, predict=predict),
        )


def _dominated(trained: Measured, built: Measured) -> bool | None:
    if trained.norm_squared > built.norm_squared:
        return False
    here, there = trained.perturbed_sharpness, built.perturbed_sharpness
    error = SEMS * math.hypot(here.sem, there.sem)
    difference = here.mean - there.mean
    return True if difference <= -error else False if difference > error else None


def _outputs(model: Model, kind: Any) -> Callable[[np.ndarray], np.ndarray]:
    """The model as a function of batches of bits, given to it in the number type of the data."""

    @eqx.filter_jit
    def run(model: Any, x: Array) -> Array:
        return model.outputs(x) if isinstance(model, BitTransformer) else jax.vmap(model)(x)

    def ask(x: np.ndarray) -> np.ndarray:
        found = []
        for start in range(0, len(x), _SIZES[-1]):
            part = np.asarray(x[start : start + _SIZES[-1]])
            size = next(size for size in _SIZES if size >= len(part))
            padded = np.concatenate([part, np.zeros((size - len(part), x.shape[1]), part.dtype)])
            with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
                found.append(np.asarray(run(model, jnp.asarray(padded.astype(np.dtype(kind)))), float)[: len(part)])
        return np.concatenate(found)

    return ask


def _too_many(found: Findings, bits: int) -> str:
    """Where the flat network has too few positions; what would have to be left out."""
    energy = np.sort(np.square(found.function.to_chi().coefficients))[::-1]
    rest = found.left_out + (1 - found.left_out) * float(energy[bits:].sum() / energy.sum())
    enough = math.ceil(1000 * rest + 1) / 1000
    return (
        f"the model computes {found.sparsity} Fourier components on {bits} bits: the flat network has a position "
        f"for each component, so there can be at most as many as bits. Raise the tolerance to {enough:g} "
        f"(--tolerance): the {bits} largest components leave out {rest:.3g} of the variance."
    )


def _assumptions(found: Findings, *, given: bool, labels: np.ndarray) -> tuple[str, ...]:
    spread = np.std(labels**2)
    return (
        "the construction dominates the model: its norm and its perturbed sharpness at σ are not smaller",
        f"the function found is the target: {found.left_out:.2g} of the model's variance is left out, and the "
        "construction would have been fixed before the sample",
        f"the loss has the constant C under the prior; C is {'given' if given else 'fitted to losses on the data'}"
        + (f": near weights of 0 the theorem asks for at least {spread:.2g}" if spread else ""),
        "the bound is for the network whose weights are redrawn around the trained ones for every prediction, with "
        "standard deviation σ",
    )
