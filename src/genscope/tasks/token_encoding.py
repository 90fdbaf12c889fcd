r"""Position encodings of token regression: random signs, how far apart their rows are, and how likely they collide.

Source: mousavi2025, Assumption 3 ($\|\omega_i\|=1$, $|\langle\omega_i,\omega_j\rangle|\le\frac12$) and Figure 1
($d_e=\lfloor5\ln N\rfloor$ random signs).
Departures: the assumption is an option (`max_correlation`), because the experiments' encodings almost never satisfy it;
the gap $\gamma$ takes the place of the paper's 1/2 everywhere.
Guarantee: exact; with `max_correlation` every pair of rows is within it.
"""

import math

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from genscope.random import biased_bits
from genscope.refusal import Refusal

_TRIES = 200  # candidates per row before a correlation is called out of reach


def default_encoding_dim(tokens: int) -> int:
    r"""$\lfloor5\ln N\rfloor$, and 1 for a single token.

    >>> [default_encoding_dim(tokens) for tokens in (1, 2, 4, 8, 12, 25, 100)]
    [1, 3, 6, 10, 12, 16, 23]
    """
    return max(1, math.floor(5 * math.log(tokens)))


def rademacher_encoding(
    key: Key[Array, ""], *, tokens: int, dim: int, max_correlation: float | None = None
) -> Float[Array, "N d_e"]:
    r"""Rows uniform on $\{\pm1/\sqrt{d_e}\}^{d_e}$; with `max_correlation`, rows that come too near others are refused.

    By Hoeffding, $P(\text{some }|\langle\omega_i,\omega_j\rangle|>\frac12)\le N^2e^{-d_e/8}$.
    """
    if tokens < 1 or dim < 1:
        raise Refusal(
            f"rademacher_encoding got {tokens=}, {dim=}: both must be at least 1. Increase the one that is not."
        )
    if max_correlation is None:
        return _signs(key, tokens, dim)
    rows: list[np.ndarray] = []
    for candidate in np.asarray(_signs(key, _TRIES * tokens, dim)):
        if all(abs(candidate @ row) <= max_correlation + 1e-6 for row in rows):
            rows.append(candidate)
            if len(rows) == tokens:
                return jnp.asarray(np.stack(rows))
    raise Refusal(
        f"rademacher_encoding got {tokens=}, {dim=}, {max_correlation=}: only {len(rows)} rows that far apart were "
        f"found in {_TRIES * tokens} tries. Increase the dimension ({math.ceil(8 * math.log(2 * tokens**2))} is enough "
        "for 1/2 with probability 1/2) or the correlation."
    )


def _signs(key: Key[Array, ""], rows: int, dim: int) -> Float[Array, "rows dim"]:
    return jnp.where(biased_bits(key, (rows, dim), 0.5), 1.0, -1.0) / math.sqrt(dim)


def encoding_gap(encoding: Float[Array, "N d_e"]) -> Float[Array, ""]:
    r"""$\gamma=1-\max_{i\ne j}\langle\omega_i,\omega_j\rangle$, signed; 0 if two rows are equal, 2 for a single row."""
    products = encoding @ encoding.T
    return 1 - jnp.max(jnp.where(jnp.eye(len(encoding), dtype=bool), -1.0, products))


def encoding_correlation(encoding: Float[Array, "N d_e"]) -> Float[Array, ""]:
    r"""$\max_{i\ne j}|\langle\omega_i,\omega_j\rangle|$: at most 1/2 under Assumption 3."""
    products = jnp.abs(encoding @ encoding.T)
    return jnp.max(jnp.where(jnp.eye(len(encoding), dtype=bool), 0.0, products))
