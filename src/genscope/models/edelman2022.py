r"""Bounded-norm attention: a head, the sum of heads, a layer, scalar and MLP read-outs, the deep network.

Source: edelman2022, Definitions 3.1 and 3.2 (tf-head, tf-layer, tf-scalar), Section 4 (tf-heads; the deep network of
Theorem 4.7) and Section 5 (tf+mlp).
Departures: value width and output dimension are free, where the paper has $k$ and $d$; padding smaller ones with zeros
gives its form with the same norms. $W_C$ may be left out, as the capacity results do. The deep network is recalled,
not quoted. The definitions fix no initialization; `draw` takes Gaussians of variance 1 / rows.
Guarantee: exact up to rounding while no square overflows. As in the paper, no score is divided by $\sqrt k$.

Shapes: T bits, d token, k query and key, v value, e output, n attended tokens (T, or T + 1 with CLS).
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Key, Shaped

from genscope.models.encoding import AbstractEncoding
from genscope.models.normalisation import Normalisation
from genscope.random import stream
from genscope.refusal import Refusal

Elementwise = Callable[[Array], Array]


def project(x: Float[Array, "*rows d"]) -> Float[Array, "*rows d"]:
    r"""$\Pi$: each row to the nearest point of the unit ball; a 1-Lipschitz stand-in for layer norm."""
    # The root is taken of something >= 1, so the gradient is finite at 0, where that of the norm is not.
    return x / jnp.sqrt(jnp.maximum(1, jnp.sum(x**2, axis=-1, keepdims=True)))


def _gaussian(key: Key[Array, ""], rows: int, columns: int) -> Float[Array, "rows columns"]:
    """Weights of variance 1 / rows, so that a unit vector keeps its length; a flat draw compiles faster."""
    if rows < 1 or columns < 1:
        raise Refusal(
            f"draw got weights of {rows} x {columns}: every dimension must be at least 1. Increase the one that is not."
        )
    return jr.normal(key, (rows * columns,)).reshape(rows, columns) / math.sqrt(rows)


# --- Attention -------------------------------------------------------------------------------------------------------


class HeadActivations(NamedTuple):
    """What one head computes for one context, or, with leading axes, for several."""

    scores: Float[Array, "... n"]
    attention: Float[Array, "... n"]
    mixture: Float[Array, "... v"]
    output: Float[Array, "... e"]


class Head(eqx.Module):
    r"""tf-head: $W_C^\top\sigma(\sum_t p_tW_V^\top x_t)$, where $p=\mathrm{softmax}_t(z^\top W_QW_K^\top x_t)$.

    `sigma` acts elementwise and sends 0 to 0. `projected` puts $\Pi$ before it, as inside the deep network. `normalise`
    may stand for softmax (`models.normalisation`).
    """

    w_q: Float[Array, "d k"]
    w_k: Float[Array, "d k"]
    w_v: Float[Array, "d v"]
    w_c: Float[Array, "v e"] | None = None
    sigma: Elementwise = eqx.field(static=True, default=jax.nn.relu)
    projected: bool = eqx.field(static=True, default=False)
    normalise: Normalisation = eqx.field(static=True, default=jax.nn.softmax)

    def __check_init__(self):
        q, k, v = self.w_q.shape, self.w_k.shape, self.w_v.shape
        c = None if self.w_c is None else self.w_c.shape
        agree = len(q) == len(v) == 2 and q == k and q[0] == v[0] and (c is None or (len(c) == 2 and c[0] == v[1]))
        if not agree:
            raise Refusal(
                f"Head got weights of shapes w_q {q}, w_k {k}, w_v {v}, w_c {c}: w_q and w_k must be [d, k], w_v [d, "
                "v], and w_c [v, e] or None. Make the dimensions of the same letter equal."
            )

    @classmethod
    def draw(cls, key: Key[Array, ""], *, dim: int, head_dim: int, **fields) -> Self:
        """A head with random weights in the paper's shapes, v = k and e = d; `fields` are `sigma` and `projected`."""
        w_q, w_k, w_v = (_gaussian(stream(key, name), dim, head_dim) for name in ("w_q", "w_k", "w_v"))
        return cls(w_q, w_k, w_v, _gaussian(stream(key, "w_c"), head_dim, dim), **fields)

    @property
    def dim(self) -> int:
        """Dimension d of the tokens."""
        return self.w_q.shape[0]

    @property
    def output_dim(self) -> int:
        """Dimension e of the output."""
        return self.w_v.shape[1] if self.w_c is None else self.w_c.shape[1]

    def query(self, context: Float[Array, " d"]) -> Float[Array, " d"]:
        r"""$W_KW_Q^\top z$: the direction along which tokens are scored."""
        _check_vector("Head", "a context", context, self.dim)
        return self.w_k @ (self.w_q.T @ context)

    def mix(self, scores: Float[Array, " n"], values: Float[Array, "n v"]) -> HeadActivations:
        """The head from scores and values on, for callers that get these without storing the tokens."""
        attention = self.normalise(scores)
        mixture = attention @ values
        active = self.sigma(project(mixture) if self.projected else mixture)
        return HeadActivations(scores, attention, mixture, active if self.w_c is None else active @ self.w_c)

    def activations(self, tokens: Float[Array, "n d"], context: Float[Array, " d"]) -> HeadActivations:
        """Scores, attention, their mixture of the values, and output, for one context."""
        _check_tokens(tokens, self.dim)
        return self.mix(tokens @ self.query(context), tokens @ self.w_v)

    def __call__(self, tokens: Float[Array, "n d"], context: Float[Array, " d"]) -> Float[Array, " e"]:
        """The output for one context."""
        return self.activations(tokens, context).output


class HeadsActivations(NamedTuple):
    """What several heads compute; `output` is the sum of `head_outputs` over the heads."""

    attention: Float[Array, "heads ... n"]
    head_outputs: Float[Array, "heads ... e"]
    output: Float[Array, "... e"]


class Heads(eqx.Module):
    r"""tf-heads: the sum of several heads."""

    heads: tuple[Head, ...]

    def __check_init__(self):
        sizes = [(head.dim, head.output_dim) for head in self.heads]
        if len(set(sizes)) != 1:
            raise Refusal(
                f"Heads got (token, output) dimensions {sizes}: the outputs are added, so there must be at least one "
                "head, and all dimensions must agree. Give heads of the same shape."
            )

    @classmethod
    def draw(cls, key: Key[Array, ""], *, count: int, dim: int, head_dim: int, **fields) -> Self:
        """`count` heads drawn independently by `Head.draw`."""
        draws = (Head.draw(stream(key, f"head {i}"), dim=dim, head_dim=head_dim, **fields) for i in range(count))
        return cls(tuple(draws))

    @property
    def dim(self) -> int:
        """Dimension d of the tokens."""
        return self.heads[0].dim

    @property
    def output_dim(self) -> int:
        """Dimension e of the output."""
        return self.heads[0].output_dim

    def activations(self, tokens: Float[Array, "n d"], context: Float[Array, " d"]) -> HeadsActivations:
        """Attention and output of each head, and their sum, for one context."""
        return _sum_heads([head.activations(tokens, context) for head in self.heads])

    def __call__(self, tokens: Float[Array, "n d"], context: Float[Array, " d"]) -> Float[Array, " e"]:
        """The output for one context."""
        return self.activations(tokens, context).output


class Layer(eqx.Module):
    r"""tf-layer: $Y=\sigma(\mathrm{RowSoftmax}(XW_Q(XW_K)^\top)XW_V)W_C$, summed over the heads.

    Each position is the context of the same heads in turn.
    """

    heads: Heads

    def activations(self, tokens: Float[Array, "n d"]) -> HeadsActivations:
        """Attention [heads, n, n] (row: context), outputs of the heads [heads, n, e], and their sum."""
        _check_tokens(tokens, self.heads.dim)
        return _sum_heads(
            [
                jax.vmap(head.mix, (0, None))(tokens @ head.w_q @ (tokens @ head.w_k).T, tokens @ head.w_v)
                for head in self.heads.heads
            ]
        )

    def __call__(self, tokens: Float[Array, "n d"]) -> Float[Array, "n e"]:
        """The outputs at all positions."""
        return self.activations(tokens).output


def _sum_heads(parts: Sequence[HeadActivations]) -> HeadsActivations:
    outputs = jnp.stack([part.output for part in parts])
    return HeadsActivations(jnp.stack([part.attention for part in parts]), outputs, outputs.sum(axis=0))


def _check_tokens(tokens: Array, dim: int) -> None:
    if tokens.ndim != 2 or tokens.shape[0] < 1 or tokens.shape[1] != dim:
        raise Refusal(
            f"attention got tokens of shape {tokens.shape}: it must read at least one token of dimension {dim}, as [n, "
            f"{dim}]. Give the tokens of one example (use jax.vmap for several), in the dimension of the weights."
        )


def _check_vector(name: str, what: str, vector: Array, dim: int) -> None:
    if vector.shape != (dim,):
        raise Refusal(
            f"{name} got {what} of shape {vector.shape}: its weights need shape [{dim}]. Give one vector of that "
            "dimension (use jax.vmap for several)."
        )


# --- Read-outs -------------------------------------------------------------------------------------------------------


class Hidden(eqx.Module):
    """One hidden layer of a read-out, before its ReLU."""

    weight: Float[Array, "a b"]
    bias: Float[Array, " b"] | None = None


class ReadoutActivations(NamedTuple):
    """The hidden layers after their ReLU, and the output."""

    hidden: tuple[Float[Array, " width"], ...]
    output: Float[Array, ""]


class Readout(eqx.Module):
    r"""A scalar from a vector: $w^\top y$ (tf-scalar), or, through ReLU layers, a multi-layer perceptron.

    tf+mlp has two hidden layers, $w^\top\mathrm{relu}(W_2^\top\mathrm{relu}(W_1^\top y))$; any number is allowed.
    """

    w: Float[Array, " b"]
    hidden: tuple[Hidden, ...] = ()

    def __check_init__(self):
        weights = [layer.weight.shape for layer in self.hidden]
        biases = [None if layer.bias is None else layer.bias.shape for layer in self.hidden]
        following = [*weights, self.w.shape][1:]
        agree = self.w.ndim == 1 and all(
            len(weight) == 2 and bias in (None, weight[1:]) and weight[1:] == after[:1]
            for weight, bias, after in zip(weights, biases, following, strict=True)
        )
        if not agree:
            raise Refusal(
                f"Readout got weights {weights}, biases {biases}, w {self.w.shape}: a weight must be [inputs, units] "
                "and its bias [units] or None, and the units of a layer must be the inputs of the next one, or of w "
                "after the last. Make the sizes of neighboring layers agree."
            )

    @classmethod
    def draw(cls, key: Key[Array, ""], *, dim: int, widths: Sequence[int] = (), biased: bool = False) -> Self:
        """Random weights, hidden layers of the given widths, biases zero or absent."""
        sizes = [dim, *widths]
        hidden = [
            Hidden(_gaussian(stream(key, f"hidden {i}"), sizes[i], width), jnp.zeros(width) if biased else None)
            for i, width in enumerate(widths)
        ]
        return cls(_gaussian(stream(key, "w"), sizes[-1], 1)[:, 0], tuple(hidden))

    @property
    def dim(self) -> int:
        """Dimension of the vector that is read."""
        return self.hidden[0].weight.shape[0] if self.hidden else self.w.shape[0]

    def activations(self, y: Float[Array, " e"]) -> ReadoutActivations:
        """The hidden layers and the scalar."""
        _check_vector("Readout", "a vector", y, self.dim)
        hidden = []
        for layer in self.hidden:
            y = y @ layer.weight
            y = jax.nn.relu(y if layer.bias is None else y + layer.bias)
            hidden.append(y)
        return ReadoutActivations(tuple(hidden), y @ self.w)

    def __call__(self, y: Float[Array, " e"]) -> Float[Array, ""]:
        """The scalar."""
        return self.activations(y).output


# --- Networks --------------------------------------------------------------------------------------------------------


class TransformerActivations(NamedTuple):
    """Attention of CLS (bits first, CLS last if it is a key), the heads' outputs, their sum, the read-out's layers."""

    attention: Float[Array, "heads n"]
    head_outputs: Float[Array, "heads e"]
    summary: Float[Array, " e"]
    hidden: tuple[Float[Array, " width"], ...]
    output: Float[Array, ""]


class Transformer(eqx.Module):
    """tf-scalar, or with hidden layers in the read-out tf+mlp: bits, their tokens, attention of CLS, a scalar."""

    encoding: AbstractEncoding
    heads: Heads
    readout: Readout
    cls_is_key: bool = eqx.field(static=True, default=True)

    def __check_init__(self):
        _check_fit("Transformer", self.encoding, [self.heads], self.readout)

    @classmethod
    def draw(
        cls,
        key: Key[Array, ""],
        *,
        encoding: AbstractEncoding,
        head_dim: int,
        heads: int = 1,
        widths: Sequence[int] = (),
        biased: bool = False,
        cls_is_key: bool = True,
        sigma: Elementwise = jax.nn.relu,
    ) -> Self:
        """Random weights on a given encoding; `widths` and `biased` are those of the read-out."""
        dim = encoding.dim
        drawn = Heads.draw(stream(key, "heads"), count=heads, dim=dim, head_dim=head_dim, sigma=sigma)
        readout = Readout.draw(stream(key, "readout"), dim=dim, widths=widths, biased=biased)
        return cls(encoding, drawn, readout, cls_is_key)

    def activations(self, bits: Shaped[Array, " T"]) -> TransformerActivations:
        """All intermediates for one bit string."""
        parts = []
        for head in self.heads.heads:
            weights = jnp.column_stack([head.query(self.encoding.cls), head.w_v])
            read = self.encoding.read(bits, weights)
            keys = read if self.cls_is_key else read[:-1]
            parts.append(head.mix(keys[:, 0], keys[:, 1:]))
        attention, head_outputs, summary = _sum_heads(parts)
        return TransformerActivations(attention, head_outputs, summary, *self.readout.activations(summary))

    def __call__(self, bits: Shaped[Array, " T"]) -> Float[Array, ""]:
        """The scalar for one bit string."""
        return self.activations(bits).output


class DeepActivations(NamedTuple):
    """Attention of each layer, the tokens before the first layer and after each, and the output."""

    attention: tuple[Float[Array, "heads n n"], ...]
    tokens: Float[Array, "layers+1 n d"]
    output: Float[Array, ""]


class DeepTransformer(eqx.Module):
    r"""Several layers with projections: $X^{(i+1)}=\Pi(g_i(X^{(i)}))$, where $g_i$ is a layer of `projected` heads,
    $g(X)=\sigma(\Pi(\mathrm{RowSoftmax}(XW_Q(XW_K)^\top)XW_V))W_C$.

    The read-out takes the last row, CLS, which is a key in every layer.
    """

    encoding: AbstractEncoding
    layers: tuple[Layer, ...]
    readout: Readout

    def __check_init__(self):
        _check_fit("DeepTransformer", self.encoding, [layer.heads for layer in self.layers], self.readout)
        projected = [head.projected for layer in self.layers for head in layer.heads.heads]
        if not all(projected):
            raise Refusal(
                f"DeepTransformer got heads with projected={projected}: the network of Theorem 4.7 projects inside "
                "every head. Create each head with projected=True."
            )

    @classmethod
    def draw(
        cls,
        key: Key[Array, ""],
        *,
        encoding: AbstractEncoding,
        head_dim: int,
        layers: int,
        heads: int = 1,
        sigma: Elementwise = jax.nn.relu,
    ) -> Self:
        """Random weights on a given encoding, with the linear read-out of the paper."""
        dim = encoding.dim
        fields = {"count": heads, "dim": dim, "head_dim": head_dim, "sigma": sigma, "projected": True}
        drawn = (Layer(Heads.draw(stream(key, f"layer {i}"), **fields)) for i in range(layers))
        return cls(encoding, tuple(drawn), Readout.draw(stream(key, "readout"), dim=dim))

    def from_tokens(self, tokens: Float[Array, "n d"]) -> DeepActivations:
        """All intermediates for one sequence of tokens, CLS last."""
        attention, after = [], [tokens]
        for layer in self.layers:
            computed = layer.activations(after[-1])
            attention.append(computed.attention)
            after.append(project(computed.output))
        return DeepActivations(tuple(attention), jnp.stack(after), self.readout(after[-1][-1]))

    def activations(self, bits: Shaped[Array, " T"]) -> DeepActivations:
        """All intermediates for one bit string."""
        return self.from_tokens(self.encoding.tokens(bits))

    def __call__(self, bits: Shaped[Array, " T"]) -> Float[Array, ""]:
        """The scalar for one bit string."""
        return self.activations(bits).output


def _check_fit(name: str, encoding: AbstractEncoding, heads: Sequence[Heads], readout: Readout) -> None:
    inputs = [*(part.dim for part in heads), readout.dim]
    outputs = [encoding.dim, *(part.output_dim for part in heads)]
    if inputs != outputs:
        raise Refusal(
            f"{name} got parts with input dimensions {inputs} after parts with output dimensions {outputs} (encoding, "
            "heads, readout): each part must read what the previous one returns. Make the two lists equal."
        )
