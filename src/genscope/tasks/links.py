r"""Link functions: what a label is, given the q tokens that it depends on, and their two-layer ReLU forms.

Source: mousavi2025, Section 2 (linear), Assumption 2 (two-layer form), Propositions 4 and 21 (`SquaredNorm`) and Figure
3 (`Hermite`).
Departures: the vector mean of sparse averaging comes coordinate by coordinate, as `Average` along a coordinate vector.
Guarantee: exact; `two_layer` is exact for `Linear`, `Average` and `TwoLayerLink`, and within the stated error for
`Hermite` on its range. `SquaredNorm` has no exact form, and says so.
"""

import abc
import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Key


class TwoLayerForm(NamedTuple):
    r"""$x\mapsto a^\top\sigma(Wx+b)$ on the q tokens written one after the other."""

    weight: Float[Array, "m qd"]
    bias: Float[Array, " m"]
    outer: Float[Array, " m"]


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
    def two_layer(self) -> TwoLayerForm:
        """Weights of a two-layer ReLU network that computes the link."""


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

    def two_layer(self) -> TwoLayerForm:
        r"""$v=\sigma(v)-\sigma(-v)$."""
        return _plus_minus(self.directions.reshape(-1))


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

    def two_layer(self) -> TwoLayerForm:
        r"""$v=\sigma(v)-\sigma(-v)$."""
        return _plus_minus(jnp.tile(self.direction / self.sparsity, self.sparsity))


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

    def two_layer(self, radius: float = 6.0, pieces: int = 64) -> TwoLayerForm:
        r"""Each square interpolated linearly between `pieces` + 1 equal knots on $[-r,r]$.

        With knots $h=2r/K$ apart the largest error is $h^2/4$ per square, $\sqrt q\,h^2/(4\sqrt2)$ in all, while every
        $|\langle u_j,x_j\rangle|\le r$.
        """
        if not (radius > 0 and pieces >= 1):
            raise ValueError(
                f"Hermite.two_layer got {radius=}, {pieces=}: the squares are interpolated on [-radius, radius] by at "
                "least one piece. Give a positive radius and 1 piece or more."
            )
        knots = jnp.linspace(-radius, radius, pieces + 1)
        slopes = knots[1:] + knots[:-1]  # of the chords of v^2
        bends = jnp.concatenate([slopes[:1], jnp.diff(slopes)])  # v^2 = r^2 + sum_k bend_k relu(v - knot_k)
        scale = 1 / math.sqrt(2 * self.sparsity)
        placed = jnp.einsum("jk,jd->jkd", jnp.eye(self.sparsity), self.directions).reshape(self.sparsity, -1)
        weight = jnp.concatenate([jnp.repeat(placed, pieces, axis=0), jnp.zeros((1, placed.shape[1]))])
        bias = jnp.concatenate([jnp.tile(-knots[:-1], self.sparsity), jnp.ones(1)])
        constant = self.sparsity * (radius**2 - 1) * scale
        return TwoLayerForm(weight, bias, jnp.append(jnp.tile(bends * scale, self.sparsity), constant))


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

    def two_layer(self) -> TwoLayerForm:
        """None is exact."""
        raise ValueError(
            "SquaredNorm has no exact two-layer ReLU form: a sum of squares is not piecewise linear. Use Hermite with "
            "its interpolation, or Linear, Average or TwoLayerLink, which are exact."
        )


class TwoLayerLink(AbstractLink):
    r"""$a^\top\sigma(Wx+b)$ with weights of the user's."""

    weight: Float[Array, "m qd"]
    bias: Float[Array, " m"]
    outer: Float[Array, " m"]
    count: int = eqx.field(static=True)

    def __check_init__(self):
        w, b, a = self.weight.shape, self.bias.shape, self.outer.shape
        if len(w) != 2 or b != w[:1] or a != w[:1] or self.count < 1 or w[1] % self.count:
            raise ValueError(
                f"TwoLayerLink got weight {w}, bias {b}, outer {a} and count={self.count}: they are [m, q*d], "
                "[m], [m] and q. Make the sizes fit."
            )

    @property
    def shape(self) -> tuple[int, int]:
        """(q, d)."""
        return self.count, self.weight.shape[-1] // self.count

    def __call__(self, x: Float[Array, "q d"]) -> Float[Array, ""]:
        """The label of the tokens."""
        return self.outer @ jax.nn.relu(self.weight @ x.reshape(-1) + self.bias)

    def two_layer(self) -> TwoLayerForm:
        """Itself."""
        return TwoLayerForm(self.weight, self.bias, self.outer)


# By the names of the command line and of studies.
LINKS = {"linear": Linear, "hermite2": Hermite, "average": Average, "norm2": SquaredNorm}


def draw_link(name: str, key: Key[Array, ""], *, sparsity: int, dim: int) -> AbstractLink:
    """A random link of a family."""
    if name not in LINKS or sparsity < 1 or dim < 1:
        raise ValueError(
            f"got the link {name!r} of {sparsity=}, {dim=}: links are {', '.join(LINKS)}, of at least one token of at "
            "least one dimension. Choose among these."
        )
    return LINKS[name].draw(key, sparsity=sparsity, dim=dim)


def _plus_minus(u: Float[Array, " qd"]) -> TwoLayerForm:
    return TwoLayerForm(jnp.stack([u, -u]), jnp.zeros(2), jnp.array([1.0, -1.0]))


def _unit(key: Key[Array, ""], dim: int, count: int) -> Float[Array, "count dim"]:
    """Independent uniform points of the sphere."""
    g = jr.normal(key, (count * dim,)).reshape(count, dim)
    return g / jnp.linalg.norm(g, axis=1, keepdims=True)
