r"""q-sparse token regression: at each position of a prompt, a function of the tokens that the prompt points to.

Source: mousavi2025, Definition 2 (qSTR and simple-qSTR) and Appendix A.1 (encoded input).
Departures: indices are 0-based. Positions may be distinct (`replace=False`). A task can be padded to a larger shape,
so that tasks of several lengths share one compiled program; the law of the real tokens does not change.
Guarantee: exact; tokens are standard normal in float32, positions uniform to within $N/2^{23}$.

One input is a prompt [N, d + q]: each row holds a token $x_i$ and the q positions $t_i$ (whole numbers). Networks read
`encode(x, t)`, rows $z_i=(x_i,\omega_i,\omega_{t_{i1}},\dots,\omega_{t_{iq}})$ of dimension $D_e=d+(q+1)d_e$. Labels
come from the prompt and not from the encoding, whose rows may coincide.
"""

import dataclasses
import math
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, UInt32

from genscope.random import stream, words
from genscope.refusal import Refusal
from genscope.tasks._base import AbstractTask
from genscope.tasks.links import AbstractLink, draw_link
from genscope.tasks.token_encoding import default_encoding_dim, rademacher_encoding
from genscope.tasks.token_encoding import encoding_correlation as encoding_correlation
from genscope.tasks.token_encoding import encoding_gap as encoding_gap

Scale = Literal["none", "sqrt_d_over_q"]
_BLOCK = 2048  # numbers that are drawn at a time: they stay in the fastest cache


class TokenRegression(AbstractTask):
    r"""$y_i=g(x_{t_{i1}},\dots,x_{t_{iq}})$; with `shared_positions` all $t_i$ are equal (simple-qSTR).

    `scale` multiplies the encodings by $\sqrt{d/q}$ (the theory of the Transformer) or not (the RNN's, experiments).
    `length` is the number of real tokens of a padded task, and None otherwise.
    """

    encoding: Float[Array, "N d_e"]
    link: AbstractLink
    shared_positions: bool = eqx.field(static=True, default=False)
    scale: Scale = eqx.field(static=True, default="none")
    replace: bool = eqx.field(static=True, default=True)
    length: Int[Array, ""] | None = None

    def __check_init__(self):
        if self.scale not in ("none", "sqrt_d_over_q"):
            raise Refusal(
                f"TokenRegression got scale={self.scale!r}: scales are none and sqrt_d_over_q. Choose one of them."
            )
        if not self.replace and self.sparsity > self.context_length:
            raise Refusal(
                f"TokenRegression got {self.sparsity} distinct positions among {self.context_length} tokens: there "
                "cannot be more positions than tokens. Allow repeated positions (replace=True) or lengthen the context."
            )

    @classmethod
    def draw(
        cls,
        key: Key[Array, ""],
        *,
        context_length: int,
        dim: int = 10,
        sparsity: int = 1,
        link: str = "linear",
        encoding_dim: int | None = None,
        max_correlation: float | None = None,
        shared_positions: bool = False,
        scale: Scale = "none",
        replace: bool = True,
    ) -> "TokenRegression":
        r"""Random link and encodings; by default the experiments' $\lfloor5\ln N\rfloor$ signs, without a limit."""
        encoding_dim = default_encoding_dim(context_length) if encoding_dim is None else encoding_dim
        encoding = rademacher_encoding(
            stream(key, "encoding"), tokens=context_length, dim=encoding_dim, max_correlation=max_correlation
        )
        drawn = draw_link(link, stream(key, "link"), sparsity=sparsity, dim=dim)
        return cls(encoding, drawn, shared_positions, scale, replace)

    @property
    def context_length(self) -> int:
        """The number N of tokens, padding included."""
        return self.encoding.shape[-2]

    @property
    def sparsity(self) -> int:
        """The number q of positions that a label depends on."""
        return self.link.sparsity

    @property
    def dim(self) -> int:
        """The dimension d of a token."""
        return self.link.dim

    @property
    def embedding_dim(self) -> int:
        """The dimension D_e of an encoded token, padding included."""
        return self.dim + (self.sparsity + 1) * self.encoding.shape[-1]

    @property
    def real(self) -> Bool[Array, " N"] | None:
        """Which tokens of a padded task are real; None if all are."""
        return None if self.length is None else jnp.arange(self.context_length) < self.length

    def padded(self, context_length: int, encoding_dim: int) -> "TokenRegression":
        """The same task in larger arrays, filled with zeros."""
        rows, columns = self.encoding.shape
        if self.length is not None or context_length < rows or encoding_dim < columns:
            raise Refusal(
                f"TokenRegression.padded got {context_length=}, {encoding_dim=} for {rows} tokens with encodings of "
                f"{columns}: a task can only be padded once, and only to sizes at least as large. Pad the original "
                "task, or increase the sizes."
            )
        encoding = jnp.pad(self.encoding, ((0, context_length - rows), (0, encoding_dim - columns)))
        return dataclasses.replace(self, encoding=encoding, length=jnp.asarray(rows, dtype="int32"))

    def simple(self) -> "TokenRegression":
        """The same task with one t for all positions of a prompt."""
        return dataclasses.replace(self, shared_positions=True)

    def raw(self, key: Key[Array, ""], size: int) -> tuple[Float[Array, "size N d"], Int[Array, "size N q"]]:
        """Independent prompts as tokens and positions."""
        n, d, q = self.context_length, self.dim, self.sparsity
        rows = 1 if self.shared_positions else n
        count = q if self.replace else n
        normals, uniforms = _numbers(key, size * n * d, size * rows * count)
        x = normals.reshape(size, n, d)
        marks = (uniforms.reshape(size, rows, count) + 1) / 2
        t = jnp.broadcast_to(self._positions(marks), (size, n, q))
        return (x if self.real is None else jnp.where(self.real[None, :, None], x, 0)), t

    def _positions(self, marks: Float[Array, "size rows marks"]) -> Int[Array, "size rows q"]:
        """Uniform positions from uniform numbers: by the whole part, or, if distinct, those of the largest."""
        if self.replace:
            count = jnp.asarray(self.context_length if self.length is None else self.length, dtype=marks.dtype)
            return jnp.minimum(jnp.floor(marks * count), count - 1).astype("int32")
        marks = marks if self.real is None else jnp.where(self.real[None, None], marks, -1)
        return jax.lax.top_k(marks, self.sparsity)[1].astype("int32")

    def inputs(self, key: Key[Array, ""], size: int) -> Float[Array, "size N row"]:
        """Independent prompts."""
        x, t = self.raw(key, size)
        return jnp.concatenate([x, t.astype(x.dtype)], axis=2)

    def split(self, prompt: Float[Array, "N row"]) -> tuple[Float[Array, "N d"], Int[Array, "N q"]]:
        """Tokens and positions of one prompt."""
        if prompt.shape != (self.context_length, self.dim + self.sparsity):
            raise Refusal(
                f"TokenRegression got a prompt of shape {prompt.shape}: one prompt has {self.context_length} rows of "
                f"{self.dim} + {self.sparsity} numbers. Use jax.vmap for several prompts, or change the task."
            )
        return prompt[:, : self.dim], prompt[:, self.dim :].astype("int32")

    def labels(self, x: Float[Array, "N d"], t: Int[Array, "N q"]) -> Float[Array, " N"]:
        """The label at each position of one prompt."""
        return jax.vmap(self.link)(x[t])

    def target(self, x: Float[Array, "N row"]) -> Float[Array, " N"]:
        """The label at each position of one prompt."""
        return self.labels(*self.split(x))

    def guess(self, prompt: Float[Array, "N row"]) -> Float[Array, ""]:
        """The link at the mean token: what a network that cannot read positions yet can say about all labels."""
        x, _ = self.split(prompt)
        mean = jnp.sum(x, axis=0) / jnp.asarray(len(x) if self.length is None else self.length, x.dtype)
        return self.link(jnp.broadcast_to(mean, (self.sparsity, self.dim)))

    def encode(self, x: Float[Array, "N d"], t: Int[Array, "N q"]) -> Float[Array, "N D"]:
        """What a network reads of one prompt; padded rows are 0 if their tokens are."""
        factor = math.sqrt(self.dim / self.sparsity) if self.scale == "sqrt_d_over_q" else 1.0
        marks = factor * self.encoding
        if self.real is not None:  # the last row is one of zeros wherever one is padded
            t = jnp.where(self.real[:, None], t, len(x) - 1)
        return jnp.concatenate([x, marks, marks[t].reshape(len(x), -1)], axis=1)

    def encoded(self, prompt: Float[Array, "N row"]) -> Float[Array, "N D"]:
        """What a network reads of one prompt."""
        return self.encode(*self.split(prompt))


def _numbers(key: Key[Array, ""], normals: int, uniforms: int) -> tuple[Float[Array, " a"], Float[Array, " b"]]:
    r"""Standard normal numbers, and others uniform on $(-1,1)$, from one stream."""
    if jnp.zeros(()).dtype == jnp.float64:
        drawn = jr.uniform(key, (normals + uniforms,), minval=math.nextafter(-1, 0), maxval=1)
        return math.sqrt(2) * jax.lax.erf_inv(drawn[:normals]), drawn[normals:]
    block = max(1, min(normals, _BLOCK))
    # A loop, because XLA computes whatever is not kept in memory again, number by number, for each of its readers.
    drawn = jax.lax.map(
        lambda start: math.sqrt(2) * jax.lax.erf_inv(_signed_uniform(key, block, start)),
        jnp.arange(0, normals, block, dtype="uint32"),
    )
    return drawn.reshape(-1)[:normals], _signed_uniform(key, uniforms, normals)


def _signed_uniform(key: Key[Array, ""], size: int, start: UInt32[Array, ""] | int) -> Float[Array, " size"]:
    r"""Uniform on $(-1,1)$, as by `jax.random.uniform`: the inverse error function, times $\sqrt2$, makes it normal."""
    mantissa = words(key, size, start) >> jnp.uint32(9)
    unit = jax.lax.bitcast_convert_type(mantissa | jnp.uint32(0x3F800000), jnp.float32) - jnp.float32(1)
    least = np.nextafter(np.float32(-1), np.float32(0))
    return jnp.maximum(unit * (np.float32(1) - least) + least, least)
