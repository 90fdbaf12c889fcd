"""Whether a Fourier construction keeps its promise.

Guarantee: up to 16 bits every input is checked; beyond, random inputs of all densities, and hard ones that show a
component its members with all other bits 0, or all 1, where attention leaks the most. All in float64.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from genscope.constructions.fourier_construction import FourierConstruction
from genscope.constructions.verification import ROUNDING, Verification
from genscope.fourier import points
from genscope.fourier.walsh import WalshFunction
from genscope.models.lintilhac2026 import FourierTransformer
from genscope.precision import float64

EXHAUSTIVE = 16  # bits
_SAMPLES, _FEWEST = 2**12, 16  # inputs
_WORK = 2**31  # multiplications of all tokens with one matrix
_NUMBERS = 2**24  # attention weights of a block of inputs


def verify_fourier(construction: FourierConstruction, *, key: Key[Array, ""]) -> Verification:
    """Compare the model with the function that it represents."""
    function = construction.function
    exhaustive = function.dim <= EXHAUSTIVE
    inputs = points(function.dim) if exhaustive else _hard_inputs(function, key)
    errors = np.abs(outputs(construction.model, inputs) - function(inputs))
    largest = float(errors.max())
    rounding = ROUNDING * max(1.0, sum(map(abs, function.coefficients)))
    return Verification(
        largest, len(inputs), exhaustive, exact=largest <= rounding, kept=largest <= construction.error + rounding
    )


def outputs(model: FourierTransformer, inputs: Bool[np.ndarray, "inputs T"]) -> Float[np.ndarray, " inputs"]:
    """The model on many inputs, in float64."""
    size = max(1, min(_SAMPLES, _NUMBERS // model.positions**2))
    with float64():
        blocks = [np.asarray(_batched(model, jnp.asarray(inputs[i : i + size]))) for i in range(0, len(inputs), size)]
    return np.concatenate(blocks)


@eqx.filter_jit
def _batched(model: FourierTransformer, x: Bool[Array, "inputs T"]) -> Float[Array, " inputs"]:
    return jax.vmap(model)(x)


def _hard_inputs(function: WalshFunction, key: Key[Array, ""]) -> Bool[np.ndarray, "inputs T"]:
    """As many random inputs as hard ones, and the two constant ones; fewer where the network is large."""
    rng = np.random.default_rng(np.asarray(jr.key_data(key)))
    size = (max(_FEWEST, min(_SAMPLES, _WORK // function.dim**3)), function.dim)
    random, patterns = (rng.random(size) < rng.random((size[0], 1)) for _ in range(2))
    member = np.zeros((max(1, len(function.supports)), function.dim), bool)
    for row, support in zip(member, function.supports, strict=False):
        row[list(support)] = True
    turn = np.arange(size[0])
    others = (turn // len(member) % 2 == 1)[:, None]  # every component meets zeros, then ones
    hard = np.where(member[turn % len(member)], patterns, others)
    return np.concatenate([random, hard, np.zeros((1, function.dim), bool), np.ones((1, function.dim), bool)])
