r"""Networks of the theory of token regression: unscaled multi-head attention, and the projected bidirectional RNN.

Source: mousavi2025, Section 3 and Appendix A.1 (Transformer, by the product of its query and key matrices), Section 4.1
and Appendix B.1 (bidirectional RNN with projected states and deep transitions).
Departures: padded prompts are allowed (`real` marks the tokens that exist), so that lengths share one program; the
RNN's projection and nets are as in the constraint set (B.2) of Appendix B.1, whose norms are measured and not enforced.
Guarantee: exact up to rounding. As in the paper no score is divided by a root, and there is no residual and no
normalization. The trained networks of the experiments are in `token_attention`, `token_recurrent`, `token_feedforward`.

Shapes: N tokens of dimension D, H heads, m hidden units, s state.
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from genscope.refusal import Refusal

Real = Bool[Array, " N"] | None


class TwoLayer(eqx.Module):
    r"""The head network $a^\top\sigma(Wf+b)$, with an output bias only where one is given."""

    weight: Float[Array, "m inputs"]
    bias: Float[Array, " m"]
    outer: Float[Array, " m"]
    offset: Float[Array, ""] | None = None

    def __check_init__(self):
        w, b, a = self.weight.shape, self.bias.shape, self.outer.shape
        if len(w) != 2 or b != w[:1] or a != w[:1]:
            raise Refusal(
                f"TwoLayer got weight {w}, bias {b}, outer {a}: the shapes must be [m, inputs], [m] and [m]. Give "
                "every hidden unit one row, one bias and one outer weight."
            )

    def hidden(self, f: Float[Array, "... inputs"]) -> Float[Array, "... m"]:
        """The hidden units after their ReLU."""
        before = f @ self.weight.T
        return jax.nn.relu(before + jnp.broadcast_to(self.bias, before.shape))

    def __call__(self, f: Float[Array, "... inputs"]) -> Float[Array, "..."]:
        """One number for each vector."""
        output = self.hidden(f) @ self.outer
        return output if self.offset is None else output + self.offset


class TokenActivations(NamedTuple):
    """Attention from each token to each, the heads' outputs side by side, the hidden units, the predictions."""

    attention: Float[Array, "H N N"]
    mixture: Float[Array, "N inputs"]
    hidden: Float[Array, "N m"]
    output: Float[Array, " N"]


class TokenTransformer(eqx.Module):
    r"""One layer, H heads: $f^{(h)}_i=\sum_j\mathrm{softmax}_j(\langle z_i,W^{(h)}_{QK}z_j\rangle)z_j$, then $\hat y_i$
    from all heads at i by the head network. The query is on the left.
    """

    w_qk: Float[Array, "H D D"]
    readout: TwoLayer

    def __check_init__(self):
        shape = self.w_qk.shape
        if len(shape) != 3 or shape[1] != shape[2] or self.readout.weight.shape[-1] != shape[0] * shape[1]:
            raise Refusal(
                f"TokenTransformer got w_qk {shape} and a head network with {self.readout.weight.shape[-1]} inputs: "
                "w_qk must be [H, D, D], and the network must have H * D inputs. Make the sizes agree."
            )

    def activations(self, z: Float[Array, "N D"], real: Real = None) -> TokenActivations:
        """All intermediates for one prompt."""
        attention = attend(jnp.einsum("id,hde,je->hij", z, self.w_qk, z), real)
        mixed = jnp.einsum("hij,hjv->ihv", attention, jnp.broadcast_to(z, (len(self.w_qk), *z.shape)))
        mixture = mixed.reshape(len(mixed), -1)  # head by head
        return TokenActivations(attention, mixture, self.readout.hidden(mixture), self.readout(mixture))

    def __call__(self, z: Float[Array, "N D"], real: Real = None) -> Float[Array, " N"]:
        """One prediction for each token."""
        return self.activations(z, real).output

    def query_key(self) -> Float[Array, "H D D"]:
        """The product of query and key matrices of each head: query rows, key columns."""
        return self.w_qk


def attend(scores: Float[Array, "... queries N"], real: Real) -> Float[Array, "... queries N"]:
    """Softmax over the keys; tokens that are not real get no mass."""
    if real is None:
        return jax.nn.softmax(scores, axis=-1)
    return jax.nn.softmax(jnp.where(jnp.broadcast_to(real, scores.shape), scores, -jnp.inf), axis=-1)


class Affine(eqx.Module):
    """One layer of a net; the last layer of a net has no bias."""

    weight: Float[Array, "outputs inputs"]
    bias: Float[Array, " outputs"] | None = None

    def __call__(self, x: Float[Array, " inputs"]) -> Float[Array, " outputs"]:
        """The layer before its ReLU."""
        image = self.weight @ x
        return image if self.bias is None else image + self.bias


def relu_net(layers: Sequence[Affine], x: Float[Array, " inputs"]) -> Float[Array, " outputs"]:
    r"""$W_L\sigma(W_{L-1}\cdots\sigma(W_1x+b_1)\cdots+b_{L-1})$; the last layer is linear."""
    for layer in layers[:-1]:
        x = jax.nn.relu(layer(x))
    return layers[-1](x)


def project(h: Float[Array, " s"], radius: float | Float[Array, ""]) -> Float[Array, " s"]:
    r"""$\Pi_rh=(1\wedge r/\|h\|)h$."""
    # The root is of something >= 1, so the gradient is finite at h = 0, where that of the norm is not.
    return h / jnp.sqrt(jnp.maximum(1, jnp.sum((h / radius) ** 2)))


class RecurrentActivations(NamedTuple):
    """States from the tokens before each position, and from those after it, and the predictions."""

    forward: Float[Array, "N s"]
    backward: Float[Array, "N s"]
    output: Float[Array, " N"]


class BidirectionalRNN(eqx.Module):
    r"""$h^\to_i=\Pi_r(h^\to_{i-1}+f^\to(h^\to_{i-1},z_{i-1}))$, likewise backwards, and
    $\hat y_i=f_y(h^\to_i,h^\leftarrow_i,z_i)$: the states at i exclude token i. Nets read the state, then
    the token.
    """

    forward: tuple[Affine, ...]
    backward: tuple[Affine, ...]
    output: tuple[Affine, ...]
    radius: float = eqx.field(static=True)

    def __check_init__(self):
        sizes = {
            name: [layer.weight.shape for layer in net]
            for name, net in (("forward", self.forward), ("backward", self.backward), ("output", self.output))
        }
        chained = all(
            net and all(after[1] == before[0] for before, after in itertools.pairwise(net)) for net in sizes.values()
        )
        states = {sizes[name][-1][0] for name in ("forward", "backward")} if chained else set()
        reads = {sizes[name][0][1] for name in ("forward", "backward")} if chained else set()
        fits = len(states) == len(reads) == 1 and sizes["output"][0][1] == max(states) + max(reads)
        if not fits or sizes["output"][-1][0] != 1 or not self.radius > 0:
            raise Refusal(
                f"BidirectionalRNN got layers {sizes} and radius {self.radius}: both transitions must map (state, "
                "token) to a state, the output network must map (state, state, token) to one number, each layer must "
                "read what the previous one returns, and the radius must be positive. Make the sizes agree."
            )

    def activations(self, z: Float[Array, "N D"]) -> RecurrentActivations:
        """States and predictions for one prompt."""
        before = self._states(self.forward, z, reverse=False)
        after = self._states(self.backward, z, reverse=True)
        output = jax.vmap(lambda x: relu_net(self.output, x)[0])(jnp.concatenate([before, after, z], axis=1))
        return RecurrentActivations(before, after, output)

    def _states(self, net: tuple[Affine, ...], z: Float[Array, "N D"], *, reverse: bool) -> Float[Array, "N s"]:
        def step(h, token):
            return project(h + relu_net(net, jnp.concatenate([h, token])), self.radius), h

        return jax.lax.scan(step, jnp.zeros(net[-1].weight.shape[0], z.dtype), z, reverse=reverse)[1]

    def __call__(self, z: Float[Array, "N D"]) -> Float[Array, " N"]:
        """One prediction for each token."""
        return self.activations(z).output
