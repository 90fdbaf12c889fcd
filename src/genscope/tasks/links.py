r"""Link functions: what a label is, given the q tokens that it depends on, and their two-layer ReLU forms.

Source: mousavi2025, Section 2 (`Average`; Assumption 2: two-layer forms), Propositions 4 and 21 (`SquaredNorm`) and
Appendix E (`Linear`, and `Hermite` for Figure 3). `Relu` is ours.
Departures: the vector mean of sparse averaging comes coordinate by coordinate, as `Average` along a coordinate vector.
Guarantee: labels are exact. `two_layer` is exact for `Linear`, `Average`, `Relu` and `TwoLayerLink`; for `Hermite` and
`SquaredNorm` it is within the error asked for, on tokens of the size asked for (proof in `tasks.two_layer`).
"""

import abc
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Key

from genscope.refusal import Refusal
from genscope.tasks.two_layer import TwoLayerForm, plus_minus, squares


class AbstractLink(eqx.Module):
    """A scalar function of `sparsity` tokens of dimension `dim`."""

    @property
    @abc.abstractmethod
    def shape(self) -> tuple[int, int]:
        """(q, d)."""

    @property
    def sparsity(self) -> int:
        """The number q of tokens."""
        return self.shape[0]

    @property
    def dim(self) -> int:
        """The dimension d of a token."""
        return self.shape[1]

    @abc.abstractmethod
    def __call__(self, x: Float[Array, "q d"]) -> Float[Array, ""]:
        """The label of the tokens."""

    @abc.abstractmethod
    def two_layer(self, *, radius: float, error: float, order: float = 2.0) -> TwoLayerForm:
        """A two-layer ReLU network within `error` of the link, while no token's norm exceeds `radius`.

        The norm is the Euclidean one, or of `order` infinity: the largest coordinate. Exact forms need neither.
        """


class _Directed(AbstractLink):
    directions: Float[Array, "q d"]

    @property
    def shape(self) -> tuple[int, int]:
        """(q, d)."""
        q, d = self.directions.shape[-2:]
        return q, d


class Linear(_Directed):
    r"""$\langle u,(x_1,\dots,x_q)\rangle$."""

    @classmethod
    def draw(cls, key: Key[Array, ""], *, sparsity: int, dim: int) -> "Linear":
        """A uniform direction of unit length."""
        return cls(_unit(key, sparsity * dim, 1).reshape(sparsity, dim))

    def __call__(self, x: Float[Array, "q d"]) -> Float[Array, ""]:
        """The label of the tokens."""
        return jnp.sum(self.directions * x)

    def two_layer(self, *, radius: float, error: float, order: float = 2.0) -> TwoLayerForm:
        r"""$v=\sigma(v)-\sigma(-v)$."""
        del radius, error, order
        return plus_minus(np.asarray(self.directions, float).reshape(-1))


class Average(AbstractLink):
    r"""$\frac1q\sum_j\langle u,x_j\rangle$: sparse averaging."""

    direction: Float[Array, " d"]
    count: int = eqx.field(static=True)

    @classmethod
    def draw(cls, key: Key[Array, ""], *, sparsity: int, dim: int) -> "Average":
        """A uniform direction of unit length."""
        return cls(_unit(key, dim, 1)[0], sparsity)

    @property
    def shape(self) -> tuple[int, int]:
        """(q, d)."""
        return self.count, self.direction.shape[-1]

    def __call__(self, x: Float[Array, "q d"]) -> Float[Array, ""]:
        """The label of the tokens."""
        return jnp.mean(x @ self.direction)

    def two_layer(self, *, radius: float, error: float, order: float = 2.0) -> TwoLayerForm:
        r"""$v=\sigma(v)-\sigma(-v)$."""
        del radius, error, order
        return plus_minus(np.tile(np.asarray(self.direction, float) / self.sparsity, self.sparsity))


_RELU_MEAN = 1 / math.sqrt(2 * math.pi)  # of relu(z), z standard normal
_RELU_DEVIATION = math.sqrt(1 / 2 - 1 / (2 * math.pi))


class Relu(_Directed):
    r"""$\frac1{\sqrt q}\sum_j(\sigma(\langle u_j,x_j\rangle)-\mu)/s$, with mean $\mu$ and deviation $s$ of $\sigma(z)$.

    Of variance 1 for standard normal tokens at q distinct positions.
    """

    @classmethod
    def draw(cls, key: Key[Array, ""], *, sparsity: int, dim: int) -> "Relu":
        """Independent uniform directions of unit length."""
        return cls(_unit(key, dim, sparsity))

    def __call__(self, x: Float[Array, "q d"]) -> Float[Array, ""]:
        """The label of the tokens."""
        along = jax.nn.relu(jnp.sum(self.directions * x, axis=1))
        return jnp.sum(along - _RELU_MEAN) / (math.sqrt(self.sparsity) * _RELU_DEVIATION)

    def two_layer(self, *, radius: float, error: float, order: float = 2.0) -> TwoLayerForm:
        """One unit for each token, and one for the constant."""
        del radius, error, order
        rows = _placed(self.directions)
        scale = 1 / (math.sqrt(self.sparsity) * _RELU_DEVIATION)
        return TwoLayerForm(
            weight=np.vstack([rows, np.zeros((1, rows.shape[1]))]),
            bias=np.append(np.zeros(self.sparsity), 1.0),
            outer=scale * np.append(np.ones(self.sparsity), -self.sparsity * _RELU_MEAN),
            lipschitz=scale * float(np.linalg.norm(rows)),
        )


class Hermite(_Directed):
    r"""$\frac1{\sqrt q}\sum_j\mathrm{He}_2(\langle u_j,x_j\rangle)$, $\mathrm{He}_2(v)=(v^2-1)/\sqrt2$.

    Of variance 1 for standard normal tokens at q distinct positions.
    """

    @classmethod
    def draw(cls, key: Key[Array, ""], *, sparsity: int, dim: int) -> "Hermite":
        """Independent uniform directions of unit length."""
        return cls(_unit(key, dim, sparsity))

    def __call__(self, x: Float[Array, "q d"]) -> Float[Array, ""]:
        """The label of the tokens."""
        along = jnp.sum(self.directions * x, axis=1)
        return jnp.sum(along**2 - 1) / math.sqrt(2 * self.sparsity)

    def two_layer(self, *, radius: float, error: float, order: float = 2.0) -> TwoLayerForm:
        """Each square by chords: see `squares`."""
        given = {"sparsity": self.sparsity, "radius": radius, "error": error, "order": order}
        return squares(_placed(self.directions), 1 / math.sqrt(2 * self.sparsity), **given)


class SquaredNorm(AbstractLink):
    r"""$\frac1{\sqrt{qd}}\sum_j(\|x_j\|^2-d)$: of variance 2 for standard normal tokens at distinct positions."""

    count: int = eqx.field(static=True)
    width: int = eqx.field(static=True)

    @property
    def shape(self) -> tuple[int, int]:
        """(q, d)."""
        return self.count, self.width

    @classmethod
    def draw(cls, key: Key[Array, ""], *, sparsity: int, dim: int) -> "SquaredNorm":
        """There is only one; the key is for uniformity."""
        del key
        return cls(sparsity, dim)

    def __call__(self, x: Float[Array, "q d"]) -> Float[Array, ""]:
        """The label of the tokens."""
        return (jnp.sum(x**2) - self.sparsity * self.dim) / math.sqrt(self.sparsity * self.dim)

    def two_layer(self, *, radius: float, error: float, order: float = 2.0) -> TwoLayerForm:
        """The square of each coordinate by chords: see `squares`."""
        given = {"sparsity": self.sparsity, "radius": radius, "error": error, "order": order}
        return squares(np.eye(self.sparsity * self.dim), 1 / math.sqrt(self.sparsity * self.dim), **given)


class TwoLayerLink(AbstractLink):
    r"""$a^\top\sigma(Wx+b)$ with weights of the user's."""

    weight: Float[Array, "m qd"]
    bias: Float[Array, " m"]
    outer: Float[Array, " m"]
    count: int = eqx.field(static=True)

    def __check_init__(self):
        w, b, a = self.weight.shape, self.bias.shape, self.outer.shape
        if len(w) != 2 or b != w[:1] or a != w[:1] or self.count < 1 or w[1] % self.count:
            raise Refusal(
                f"TwoLayerLink got weight {w}, bias {b}, outer {a} and count={self.count}: the shapes must be [m, "
                "q*d], [m] and [m], for q tokens. Make the sizes agree."
            )

    @property
    def shape(self) -> tuple[int, int]:
        """(q, d)."""
        return self.count, self.weight.shape[-1] // self.count

    def __call__(self, x: Float[Array, "q d"]) -> Float[Array, ""]:
        """The label of the tokens."""
        return self.outer @ jax.nn.relu(self.weight @ x.reshape(-1) + self.bias)

    def two_layer(self, *, radius: float, error: float, order: float = 2.0) -> TwoLayerForm:
        r"""Itself; $W^\top(a\circ1_{>0})$, its gradient, is at most $\min(\|a\|\|W\|_2,\sum_k|a_k|\|w_k\|)$ long."""
        del radius, error, order
        weight, bias, outer = (np.asarray(part, float) for part in (self.weight, self.bias, self.outer))
        lipschitz = min(
            float(np.linalg.norm(outer) * np.linalg.norm(weight, 2)),
            float(np.abs(outer) @ np.linalg.norm(weight, axis=1)),
        )
        return TwoLayerForm(weight, bias, outer, lipschitz)


# By the names of the command line and of studies.
LINKS = {"linear": Linear, "relu": Relu, "hermite2": Hermite, "average": Average, "norm2": SquaredNorm}


def draw_link(name: str, key: Key[Array, ""], *, sparsity: int, dim: int) -> AbstractLink:
    """A random link of a family."""
    if name not in LINKS or sparsity < 1 or dim < 1:
        raise Refusal(
            f"got the link {name!r} with {sparsity=}, {dim=}: links are {', '.join(LINKS)}, and both sizes must be at "
            "least 1. Correct the one that is not."
        )
    return LINKS[name].draw(key, sparsity=sparsity, dim=dim)


def _placed(directions: Float[Array, "q d"]) -> Float[np.ndarray, "q qd"]:
    """Row j reads token j alone, along direction j."""
    rows = np.asarray(directions, float)
    return np.einsum("jk,jd->jkd", np.eye(len(rows)), rows).reshape(len(rows), -1)


def _unit(key: Key[Array, ""], dim: int, count: int) -> Float[Array, "count dim"]:
    """Independent uniform points of the sphere."""
    g = jr.normal(key, (count * dim,)).reshape(count, dim)
    return g / jnp.linalg.norm(g, axis=1, keepdims=True)
