r"""How bits become tokens: additive positional embeddings, fixed or trained, and the bag of vectors.

Source: edelman2022, Section 5 (input encodings).
Departures: the vectors of an encoding are the rows of one matrix, CLS first. The bag is $\mathrm{diag}(b)V$: the
lecture notes print a product that does not type-check (docs/errata.md).
Guarantee: exact; `Coordinates` are exactly orthonormal, `sign_vectors` nearly, and `coherence` says how nearly.

Shapes: T bits, d token, c any number of columns.
"""

import abc
import math
from typing import ClassVar, Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key, Shaped

from genscope.random import biased_bits
from genscope.refusal import Refusal


class Coordinates(eqx.Module):
    """The coordinate vectors e_0, e_1, ... of a space as rows of a matrix that is never stored: exactly orthonormal."""

    count: int = eqx.field(static=True)
    dim: int = eqx.field(static=True)

    def __check_init__(self):
        if not 1 <= self.count <= self.dim:
            raise Refusal(
                f"Coordinates got count={self.count}, dim={self.dim}: a space cannot have more orthonormal vectors "
                "than dimensions, so 1 <= count <= dim. Increase dim, or draw random signs, which are nearly "
                "orthonormal."
            )

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the matrix."""
        return self.count, self.dim

    @property
    def dtype(self) -> jnp.dtype:
        """JAX's default."""
        return jnp.result_type(float)

    def __getitem__(self, row: int) -> Float[Array, " dim"]:
        return jax.nn.one_hot(row, self.dim)

    def __matmul__(self, weights: Float[Array, "dim c"]) -> Float[Array, "count c"]:
        return weights[: self.count]


Vectors = Float[Array, "rows d"] | Coordinates


def sign_vectors(key: Key[Array, ""], *, count: int, dim: int) -> Float[Array, "count dim"]:
    r"""Rows of independent signs $\pm1/\sqrt d$: unit vectors, nearly orthonormal once $d\gg\log$ `count`.

    The coherence exceeds $\rho$ with probability at most `count`$^2e^{-d\rho^2/2}$ (Hoeffding and a union bound).
    """
    if count < 1 or dim < 1:
        raise Refusal(f"sign_vectors got {count=}, {dim=}: both must be at least 1. Increase the one that is not.")
    return jnp.where(biased_bits(key, (count, dim), 0.5), 1.0, -1.0) / math.sqrt(dim)


def coherence(vectors: Vectors) -> Float[Array, ""]:
    r"""$\max_{u\ne v}|\langle u,v\rangle|$ over the rows; 0 for a single row."""
    if isinstance(vectors, Coordinates):
        return jnp.zeros(())
    inner = jnp.abs(vectors @ vectors.T)
    return jnp.max(jnp.where(jnp.eye(len(inner), dtype=bool), 0, inner))


class AbstractEncoding(eqx.Module):
    """How T bits become T tokens and CLS. Fixed `vectors` are constants to the gradient; `trained` ones are not.

    An optimizer that also decays weights must be kept away from fixed vectors by the caller.
    """

    vectors: Vectors
    trained: bool = eqx.field(static=True, default=False)
    specials: ClassVar[int]  # rows of `vectors` before those of the positions; the first is CLS

    def __check_init__(self):
        if len(self.vectors.shape) != 2 or self.vectors.shape[0] <= self.specials:
            raise Refusal(
                f"{type(self).__name__} got vectors of shape {self.vectors.shape}: they must be [rows, d] with "
                f"{self.specials} rows before those of the T >= 1 positions. Give at least {self.specials + 1} rows."
            )
        if self.trained and isinstance(self.vectors, Coordinates):
            raise Refusal(
                f"{type(self).__name__} got trained=True with Coordinates, which are not stored: only arrays can be "
                "trained. Give an array of vectors, or leave trained=False."
            )

    @classmethod
    def draw(cls, key: Key[Array, ""], *, context_length: int, dim: int, trained: bool = False) -> Self:
        """The encoding by random signs."""
        return cls(sign_vectors(key, count=context_length + cls.specials, dim=dim), trained)

    @classmethod
    def orthonormal(cls, *, context_length: int) -> Self:
        """The encoding by coordinate vectors, in the smallest dimension that holds them."""
        count = context_length + cls.specials
        return cls(Coordinates(count, count))

    @property
    def context_length(self) -> int:
        """Number T of bits."""
        return self.vectors.shape[0] - self.specials

    @property
    def dim(self) -> int:
        """Dimension d of the tokens."""
        return self.vectors.shape[1]

    @property
    def cls(self) -> Float[Array, " d"]:
        """The CLS token."""
        return self._constant_unless_trained()[0]

    def read(self, bits: Shaped[Array, " T"], weights: Float[Array, "d c"]) -> Float[Array, "T+1 c"]:
        """Tokens times weights, CLS last: all that attention needs of the tokens, which are not stored.

        The product is taken with the vectors, so a vmap over examples takes it once for all of them.
        """
        if bits.shape != (self.context_length,):
            raise Refusal(
                f"{type(self).__name__} got bits of shape {bits.shape}: it encodes {self.context_length} bits, as "
                f"[{self.context_length}]. Give one example of that length (use jax.vmap for several)."
            )
        rows = self._constant_unless_trained() @ weights
        return jnp.concatenate([self.place(rows[1:], bits), rows[:1]])

    def tokens(self, bits: Shaped[Array, " T"]) -> Float[Array, "T+1 d"]:
        """The tokens themselves, CLS last."""
        return self.read(bits, jnp.eye(self.dim, dtype=self.vectors.dtype))

    @abc.abstractmethod
    def place(self, rows: Float[Array, "rows c"], bits: Shaped[Array, " T"]) -> Float[Array, "T c"]:
        """The tokens, given what stands for each vector except CLS."""

    def _constant_unless_trained(self) -> Vectors:
        return self.vectors if self.trained else jax.lax.stop_gradient(self.vectors)


def _choose(bits: Array, one: Array, zero: Array) -> Array:
    # What is no bit (a sign, say) becomes NaN: loud, and unlike a runtime check free inside jit.
    bit = bits.astype(one.dtype)[:, None]
    return jnp.where(bit == 1, one, jnp.where(bit == 0, zero, jnp.nan))


class Positional(AbstractEncoding):
    r"""Additive: $x_t=E_{b_t}+P_t$ and $x_{CLS}=v_{CLS}$, with rows $v_{CLS},E_0,E_1,P_1,\dots,P_T$ of `vectors`.

    The paper's deterministic positional embeddings, and with `trained` its trainable ones.
    """

    specials = 3

    def place(self, rows: Float[Array, "rows c"], bits: Shaped[Array, " T"]) -> Float[Array, "T c"]:
        """The vector of the bit plus that of its position."""
        return _choose(bits, rows[1:2], rows[:1]) + rows[2:]


class Bag(AbstractEncoding):
    r"""Bag of vectors: $x_t=b_tv_t$ and $x_{CLS}=v_{CLS}$, with rows $v_{CLS},v_1,\dots,v_T$ of `vectors`."""

    specials = 1

    def place(self, rows: Float[Array, "rows c"], bits: Shaped[Array, " T"]) -> Float[Array, "T c"]:
        """The vector of the position where the bit is 1, else zero."""
        return _choose(bits, rows, jnp.zeros_like(rows))
