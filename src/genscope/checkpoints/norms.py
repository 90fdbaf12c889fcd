r"""Spectral, Frobenius and (2,1)-norms of the value and query-key maps of attention heads.

The map $W_{QK} = W_Q W_K^\top$ is d x d of rank k and is never formed. With $W_Q = U_Q R_Q$ and $W_K = U_K R_K$ by QR,
its singular values are those of the k x k matrix $R_Q R_K^\top$, its column j has the norm $\|R_Q (W_K)_j\|$, and
its row i the norm $\|R_K (W_Q)_i\|$, since $U_Q$ and $U_K$ have orthonormal columns.

Source: edelman2022, Section 2 (norms): $\|M\|_{2,1}$ is the sum of the norms of the columns of M; Corollary 4.5 bounds
$\|W_V\|_{2,1}$ and $\|W_{QK}^\top\|_{2,1}$.
As in the paper, $W_{QK}$ has no factor $1/\sqrt k$.
Guarantee: exact up to rounding in float64, for weights of any size that float64 holds. Memory is that of a few blocks
of heads, `BLOCK_BYTES` each or a single head.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Float64

from genscope.checkpoints._layout import HeadWeights
from genscope.refusal import Refusal

BLOCK_BYTES = 48 * 2**20


class MapNorms(NamedTuple):
    """Norms of one map per head; `two_one_transposed` sums over rows, where `two_one` sums over columns."""

    spectral: Float64[np.ndarray, " heads"]
    frobenius: Float64[np.ndarray, " heads"]
    two_one: Float64[np.ndarray, " heads"]
    two_one_transposed: Float64[np.ndarray, " heads"]


class LayerNorms(NamedTuple):
    """Norms of both maps of a layer's heads."""

    value: MapNorms
    query_key: MapNorms


def value_norms(heads: HeadWeights, where: str = "the layer") -> MapNorms:
    """Norms of $W_V$; heads that share values have the same."""
    parts = []
    for block in _blocks(*heads.value.shape):
        value, scale = _scaled(heads.value[block], f"the values of {where}")
        rows, columns = (np.linalg.norm(value, axis=axis).sum(axis=-1) for axis in (2, 1))
        parts.append(_unscaled([_spectral(value), _frobenius(value), columns, rows], scale))
    shared = np.arange(len(heads.query)) * len(heads.value) // len(heads.query)
    return MapNorms(*np.concatenate(parts, axis=1)[:, shared])


def query_key_norms(heads: HeadWeights, where: str = "the layer") -> MapNorms:
    r"""Norms of $W_Q W_K^\top$."""
    shared = np.arange(len(heads.query)) * len(heads.key) // len(heads.query)
    parts = []
    for block in _blocks(*heads.query.shape):
        first, last = shared[block][0], shared[block][-1]
        query, query_scale = _scaled(heads.query[block], f"the queries of {where}")
        key, key_scale = _scaled(heads.key[first : last + 1], f"the keys of {where}")
        mine = shared[block] - first
        query_root, key_root = _root(query), _root(key)[mine]
        core = query_root @ key_root.mT
        columns = np.linalg.norm(key[mine] @ query_root.mT, axis=2).sum(axis=-1)
        rows = np.linalg.norm(query @ key_root.mT, axis=2).sum(axis=-1)
        parts.append(_unscaled([_spectral(core), _frobenius(core), columns, rows], query_scale, key_scale[mine]))
    return MapNorms(*np.concatenate(parts, axis=1))


def layer_norms(heads: HeadWeights, where: str = "the layer") -> LayerNorms:
    """Norms of both maps."""
    return LayerNorms(value_norms(heads, where), query_key_norms(heads, where))


def largest_row_norm(table: Float[np.ndarray, "rows d"], where: str = "the table") -> float:
    """The longest row of a table."""
    largest = 0.0
    for block in _blocks(len(table), 1, table.shape[1]):
        rows, scale = _scaled(table[block, np.newaxis], where)
        largest = max(largest, float((np.linalg.norm(rows[:, 0], axis=1) * scale).max()))
    return largest


def _blocks(heads: int, *shape: int) -> Iterator[slice]:
    """Cuts of the first axis, of which each takes `BLOCK_BYTES` at most, or one entry."""
    size = max(1, BLOCK_BYTES // (8 * int(np.prod(shape))))
    return (slice(start, min(start + size, heads)) for start in range(0, heads, size))


def _scaled(
    maps: Float[np.ndarray, "heads d k"], what: str
) -> tuple[Float64[np.ndarray, "heads d k"], Float64[np.ndarray, " heads"]]:
    """The maps with entries up to 1, so that no square overflows or vanishes, and what they were divided by."""
    made = maps.astype(np.float64)
    scale = np.maximum(made.max(axis=(1, 2)), -made.min(axis=(1, 2)))
    if not np.isfinite(scale).all():
        raise Refusal(
            f"{what} contain NaN or infinity: the outputs of such a model mean nothing. Use a checkpoint from before "
            "it diverged."
        )
    scale[scale == 0] = 1.0
    made /= scale[:, np.newaxis, np.newaxis]
    return made, scale


def _root(maps: Float64[np.ndarray, "heads d k"]) -> Float64[np.ndarray, "heads rank k"]:
    """R of the QR decomposition; of the same norms as the map."""
    return np.asarray(np.linalg.qr(maps, mode="r"))


def _spectral(maps: Float64[np.ndarray, "heads m n"]) -> Float64[np.ndarray, " heads"]:
    return np.linalg.norm(maps, ord=2, axis=(1, 2))


def _frobenius(maps: Float64[np.ndarray, "heads m n"]) -> Float64[np.ndarray, " heads"]:
    return np.linalg.norm(maps, axis=(1, 2))


def _unscaled(
    norms: Sequence[Float64[np.ndarray, " heads"]], *scales: Float64[np.ndarray, " heads"]
) -> Float64[np.ndarray, "norms heads"]:
    made = np.stack(norms)
    with np.errstate(over="ignore"):
        for scale in scales:
            made *= scale
    if not np.isfinite(made).all():
        raise Refusal(
            "got weights whose norms exceed 1e308, the limit of float64: no working model has such weights. Use "
            "another checkpoint."
        )
    return made
