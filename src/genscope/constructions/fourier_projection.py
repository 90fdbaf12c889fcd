r"""Random positions of fewer, or more, dimensions for a Fourier construction, and what they do to its attention.

Source: lintilhac2026, Appendix B.2.
Departures: the paper says that it narrows the network. To stay on the plateaus, inner products must be right to about
$\frac1{8\kappa c}$, which takes far more dimensions than there are positions at every practical length.
Guarantee: none about the function; `plateau_fraction` is an estimate. Closed forms do not hold for these models.
"""

import dataclasses

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import scipy  # whose parts load on first use: a listing of studies needs none of them
from jaxtyping import Array, Float, Key

from genscope.constructions.fourier_construction import FourierConstruction
from genscope.estimate import Estimate
from genscope.models.lintilhac2026 import FourierTransformer, Projection
from genscope.precision import float64


def project(construction: FourierConstruction, *, projection: Projection) -> FourierTransformer:
    r"""The model with tokens $[J^\top e_i;b_i]$ and matrices $J^\top(\cdot)J$ on the positions, in float64.

    Logits become $e_i^\top JJ^\top AKJJ^\top e_j$, with $c\,I$ for K; those of the second attention likewise.
    """
    model, sharpness = construction.model, construction.plan.sharpness
    score, key, value, select = (np.asarray(w) for w in (model.score, model.key, model.value, model.select))
    lift = scipy.linalg.block_diag(_positions(construction, projection), 1.0)
    changes = {
        "score": lift.T @ score @ key @ lift / sharpness,
        "key": sharpness * np.diag([1.0] * projection.dim + [0.0]),
        "value": lift.T @ value @ lift,
        "select": lift.T @ select @ lift,
        "readout": np.asarray(model.readout) @ lift,
    }
    if model.expand.ndim == 2:
        changes |= {"expand": np.asarray(model.expand) @ lift, "contract": lift.T @ np.asarray(model.contract)}
    with float64():
        arrays = {name: jnp.asarray(array) for name, array in changes.items()}
        return dataclasses.replace(model, projection=projection, **arrays)


def plateau_fraction(
    construction: FourierConstruction, *, projection: Projection, key: Key[Array, ""], inputs: int = 1000
) -> Estimate:
    r"""The share of components whose attended bit stays within $\frac1{4\kappa}$ of its value, over random inputs.

    It needs the inner products $JJ^\top$ alone, so that d' may be large. The error is that of the inputs, not of J.
    """
    plan, positions = construction.plan, _positions(construction, projection)
    products = positions @ positions.T
    logits = plan.sharpness * products[: plan.sparsity, : plan.sparsity] @ plan.shares @ products
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    rng = np.random.default_rng(np.asarray(jr.key_data(key)))
    bits = np.concatenate(
        [rng.random((inputs, plan.context_length)) < 0.5, np.tile([False, True], (inputs, 1))], axis=1
    )
    bits = bits[:, : plan.positions].astype(float)
    ones = bits @ (plan.shares == 1).T  # among the members; the output position has bit 0
    inside = np.abs(bits @ weights.T - ones / plan.degree) <= 1 / (4 * plan.degree)
    return Estimate.of(inside.mean(axis=1))


def _positions(construction: FourierConstruction, projection: Projection) -> Float[np.ndarray, "N e"]:
    with float64():
        return np.asarray(projection.positions(construction.plan.positions, jnp.dtype("float64")))
