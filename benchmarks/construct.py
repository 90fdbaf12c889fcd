"""Building and verifying constructions, against calling the model on the same inputs.

Peers: the same model called by JAX on all inputs at once (vmap, compiled), and input by input as one would write it
first. Both get all 2^T inputs. The adversarial search at T = 100,000 has no peer: its time is given as it is.
"""

import time

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from benchmarks._timing import best_seconds, show
from genscope.constructions import Construction, SparseFunction, any_function, construct, verify
from genscope.fourier import points
from genscope.models.edelman2022 import Transformer
from genscope.precision import float64

SHORT, LONG, SIZE, LARGE = 16, 100_000, 3, 12
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


def called(built: Construction, function: SparseFunction, *, one_by_one: bool) -> float:
    """The largest error by calling the model."""
    bits = points(function.context_length)
    with float64():
        if one_by_one:
            found = np.array([float(_one(built.model, jnp.asarray(row))) for row in bits])
        else:
            blocks = np.array_split(bits, max(1, len(bits) // 4096))
            found = np.concatenate([np.asarray(_many(built.model, jnp.asarray(block))) for block in blocks])
    patterns = bits[:, list(function.support)] @ (2 ** np.arange(function.support_size))
    return float(np.abs(found - function.values[patterns]).max())


def main() -> None:
    function = drawn(SHORT, SIZE)
    built = any_function(function)
    ours = best_seconds(lambda: verify(built, function, key=KEY))
    rows: dict[str, object] = {
        f"verify, all 2^{SHORT} inputs, ms": 1e3 * ours,
        "vmap of the model / verify": best_seconds(lambda: called(built, function, one_by_one=False), repeats=3) / ours,
        "one call per input / verify": best_seconds(lambda: called(built, function, one_by_one=True), repeats=1) / ours,
        "tracr": "not installed here: its ratio is left out",
    }
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
