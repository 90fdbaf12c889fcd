"""Building and verifying constructions, against calling the model on the same inputs.

Peers: the same model called by JAX on many inputs at once (vmap, compiled), and input by input as one would write it
first, timed on some of the inputs. With coordinate vectors irrelevant tokens are alike and `verify` computes one input
for each number of ones; with random vectors it computes all 2^T. At T = 100,000 nothing compares: times as they are.
"""

import time
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from benchmarks._timing import best_seconds, show
from genscope.constructions import SparseFunction, construct, verify
from genscope.fourier import points
from genscope.models.edelman2022 import Transformer
from genscope.precision import float64

SHORT, LONG, SIZE, LARGE = 16, 100_000, 3, 12
CALLED = 256  # inputs of the slowest peer
KEY = jr.key(0)


@eqx.filter_jit
def _one(model: Transformer, bits: jax.Array) -> jax.Array:
    return model(bits)


@eqx.filter_jit
def _many(model: Transformer, bits: jax.Array) -> jax.Array:
    return jax.vmap(model)(bits)


def drawn(length: int, size: int) -> SparseFunction:
    """A function with normal values on positions spread over the context."""
    values = np.random.default_rng(0).normal(size=2**size)
    return SparseFunction(tuple(np.linspace(0, length - 1, size).astype(int).tolist()), values, length)


def all_at_once(model: Transformer) -> list[np.ndarray]:
    """Outputs at all inputs, some thousands at a time."""
    with float64():
        blocks = np.split(points(SHORT), 16)
        return [np.asarray(_many(model, jnp.asarray(block))) for block in blocks]


def one_by_one(model: Transformer) -> list[float]:
    """Outputs at some inputs."""
    with float64():
        return [float(_one(model, jnp.asarray(bits))) for bits in points(SHORT)[:CALLED]]


def main() -> None:
    rows: dict[str, object] = {"tracr": "not installed here: its ratio is left out"}
    for encoding in ("positional", "random"):
        function = drawn(SHORT, SIZE)
        built = construct(function, encoding=encoding, key=KEY)
        ours = best_seconds(partial(verify, built, function, key=KEY))
        together = best_seconds(partial(all_at_once, built.model), repeats=3)
        single = best_seconds(partial(one_by_one, built.model), repeats=3) * 2**SHORT / CALLED
        rows[f"{encoding}, all 2^{SHORT} inputs, s = {SIZE}: verify, ms"] = 1e3 * ours
        rows[f"{encoding}: vmap of the model / verify"] = together / ours
        rows[f"{encoding}: one call per input / verify"] = single / ours
    for encoding in ("positional", "bag", "random"):
        function = drawn(LONG, LARGE)
        start = time.perf_counter()
        made = construct(function, encoding=encoding, key=KEY)
        middle = time.perf_counter()
        exact = verify(made, function, key=KEY).exact
        rows[f"{encoding}, T = {LONG:,}, s = {LARGE}: build, s"] = middle - start
        rows[f"{encoding}, T = {LONG:,}, s = {LARGE}: verify, s"] = time.perf_counter() - middle
        rows[f"{encoding}, T = {LONG:,}, s = {LARGE}: exact"] = str(exact)
    show("construct: explicit weights and their verification", rows)


if __name__ == "__main__":
    main()
