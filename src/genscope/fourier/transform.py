r"""The Walsh-Hadamard transform $b_S=\sum_x a_x(-1)^{|S\cap x|}$ of arrays over the cube, and the Fourier coefficients.

Source: lintilhac2026, Equation (1) (Fourier-Walsh expansion); the algorithm is the Kronecker power of the 2 x 2
Hadamard matrix, taken a few factors at a time as a matrix product.
Guarantee: exact for integers while $\sum_x|a_x|\le2^{53}$ ($2^{24}$ in float32), since every partial sum is an integer
below that; otherwise the error is at most $4(n+6)u\sum_x|a_x|$ to first order in u = 2^-53 (2^-24 in float32) for
$2^n$ points: each of the at most (n+6)/4 products adds 16 terms. Inputs are never written to.

Index i of the last axis is the point, or the set S, whose bits are the binary digits of i, bit 0 varying fastest.
"""

import functools
from typing import Any

import numpy as np

from genscope.refusal import Refusal

BACKENDS = ("numpy", "jax", "pyfwht")

_FACTORS = 4  # of the Kronecker power in one product: 16 x 16 matrices are about the fastest on one core
_CACHED = 16  # bits of a piece that stays in the cache over several products
_LEAST_WIDTH = 4  # bits: 16 numbers side by side, a cache line or two


def fwht(a: Any, backend: str | None = None) -> Any:
    """The transform along the last axis, of length 2^n; applied twice it multiplies by 2^n.

    Backends: `numpy`, the default for NumPy arrays; `jax`, the default for JAX arrays: inside jit, vmap and grad;
    `pyfwht`, a compiled library under the GPL, used if it is installed. Booleans and integers are transformed as
    float64 (JAX: its default float). Memory in `numpy`: the result and some pieces of 2^16 points.

    >>> fwht(np.array([1.0, 0.0, 0.0, 1.0])).tolist()
    [2.0, 0.0, 0.0, 2.0]
    """
    chosen = backend or ("numpy" if isinstance(a, np.ndarray) else "jax")
    if chosen not in BACKENDS:
        raise Refusal(f"fwht got {backend=}: backends are {', '.join(BACKENDS)}. Choose one of them.")
    if chosen == "jax":
        import jax.numpy as jnp  # here, so that the commands which need no JAX do not wait for it

        a = jnp.asarray(a)
        a = a if np.issubdtype(a.dtype, np.floating) else a.astype(jnp.result_type(float))
    elif not isinstance(a, np.ndarray):
        raise Refusal(
            f"fwht got an array of type {type(a).__name__} with backend='{chosen}': this backend takes NumPy arrays. "
            "Convert it with numpy.asarray, or use backend='jax'."
        )
    elif a.dtype.kind in "biu":
        a = a.astype(np.float64)
    _check(a)
    if chosen == "jax":
        return _products_jax(a)
    return _products_numpy(a) if chosen == "numpy" else _pyfwht(a)


def walsh_coefficients(table: Any, backend: str | None = None) -> Any:
    r"""Fourier coefficients $\hat f(S)=\mathbb E[f\chi_S]$ of truth tables along the last axis.

    >>> walsh_coefficients(np.array([0.0, 1.0, 1.0, 0.0])).tolist()
    [0.5, 0.0, 0.0, -0.5]
    """
    transformed = fwht(table, backend)
    transformed *= 1 / transformed.shape[-1]  # a power of two: exact; in place where the array allows it
    return transformed


def _check(a: Any) -> None:
    size = a.shape[-1] if a.ndim else 0
    if size == 0 or size & (size - 1):
        raise Refusal(
            f"fwht got an array of shape {a.shape}: the last axis runs over the cube, so its length must be a power of "
            "two. Pad with zeros, or give values at all 2^n points."
        )
    if a.dtype not in (np.float32, np.float64):
        raise Refusal(
            f"fwht got values of type {a.dtype}: it transforms Booleans, integers, float32 and float64. Convert them "
            "first, and transform real and imaginary parts separately."
        )


def _factors(n: int) -> list[int]:
    """How many of n factors each product takes: as equal as possible; no product where n = 0."""
    products = -(-n // _FACTORS)
    return [n // products + (i < n % products) for i in range(products)]


@functools.cache
def _hadamard(factors: int, dtype: str) -> np.ndarray:
    two = np.array([[1, 1], [1, -1]])
    return functools.reduce(np.kron, [two] * factors, np.ones((1, 1), int)).astype(dtype)


def _products_numpy(a: np.ndarray) -> np.ndarray:
    """First the fast bits, by pieces that stay in the cache; then the slow ones in place, by stripes that do."""
    n = a.shape[-1].bit_length() - 1
    fast = min(n, _CACHED)
    rows = a.reshape(-1, 2**fast)
    found = np.empty_like(rows)
    together = 2 ** (_CACHED - fast)
    for start in range(0, len(rows), together):
        _rotate(rows[start : start + together], found[start : start + together])
    if n > fast:
        width = 2 ** max(_CACHED - (n - fast), _LEAST_WIDTH)
        for table in found.reshape(-1, 2 ** (n - fast), 2**fast):
            for start in range(0, 2**fast, width):
                _transform_columns(table[:, start : start + width])
    return found.reshape(a.shape)


def _transform_columns(stripe: np.ndarray) -> None:
    """In place. Every product but the last writes into memory of the stripe's size, which is not strided."""
    steps = _factors(len(stripe).bit_length() - 1)
    rest, done = stripe, 0
    for left, factors in zip(reversed(range(len(steps))), steps, strict=True):
        shape = (-1, 2**factors, 2**done, stripe.shape[1])
        target = stripe if rest is not stripe and not left else np.empty(stripe.shape, stripe.dtype)
        np.matmul(
            _hadamard(factors, stripe.dtype.char),
            rest.reshape(shape).transpose(0, 2, 1, 3),
            out=target.reshape(shape).transpose(0, 2, 1, 3),
        )
        rest, done = target, done + factors
    if rest is not stripe:  # a single product cannot write where it reads
        stripe[...] = rest


def _rotate(rows: np.ndarray, out: np.ndarray) -> None:
    """Transform each row: a product takes the slowest bits and leaves them as the fastest, so the order comes back."""
    rest = rows.T.reshape(-1)  # several rows are the fastest axis at first, and the slowest in the end
    steps = _factors(rows.shape[1].bit_length() - 1)
    if not steps:
        out[...] = rows
    for left, factors in zip(reversed(range(len(steps))), steps, strict=True):
        target = np.empty_like(rest) if left else out
        np.matmul(
            rest.reshape(2**factors, -1).T, _hadamard(factors, rest.dtype.char), out=target.reshape(-1, 2**factors)
        )
        rest = target


def _products_jax(a: Any) -> Any:
    import jax
    import jax.numpy as jnp

    rest = a.reshape(-1, a.shape[-1]).T
    for factors in _factors(a.shape[-1].bit_length() - 1):
        matrix = jnp.asarray(_hadamard(factors, a.dtype.char))
        rest = jnp.matmul(rest.reshape(2**factors, -1).T, matrix, precision=jax.lax.Precision.HIGHEST)
    return rest.reshape(a.shape)


def _pyfwht(a: np.ndarray) -> np.ndarray:
    try:
        import pyfwht  # pyright: ignore[reportMissingImports] -- optional, and under another licence
    except ImportError:
        raise Refusal(
            "fwht got backend='pyfwht', which is not installed: it is an optional library. Install pyfwht, or use "
            "backend='numpy', which is about as fast."
        ) from None
    rows = [pyfwht.fwht(row, backend=pyfwht.Backend.CPU) for row in a.reshape(-1, a.shape[-1])]
    return np.stack(rows).reshape(a.shape)
