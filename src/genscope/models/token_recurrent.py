r"""Trained bidirectional recurrent networks: simple RNN, GRU and LSTM over tokens, with a prediction at each.

Source: mousavi2025, Section 5 and Appendix E; the public code trains the GRU, the text names the simple RNN.
Departures: where the states exclude the current token (the theory's form), the output net is a two-layer one.
Guarantee: exact up to rounding, value and gradient. The gradient is our own: JAX would add up the gradient of the
recurrent matrix step by step, which costs as much memory traffic as the products themselves; here all steps' shares
are one product. Gates are ordered and applied as in the public code: reset gate after the recurrent product.

Shapes: B prompts of N tokens of dimension D, s state, g = gates * s.
"""

import functools
import math
import operator
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from genscope.models import _drawing
from genscope.models.mousavi2025 import TwoLayer
from genscope.random import stream

Parts = tuple[
    Array, ...
]  # one array for each gate, or for each part of the carry: the state h, and the LSTM's memory c


class _Cell(NamedTuple):
    """One step on gates $a=W_iz+b_i$ of the token and $u=W_hh+b_h$ of the state, and its gradient.

    `forward(a, u, carry)` gives the new carry and what `backward(kept, carry, toward_new)` needs to give the gradients
    with respect to a, u and the carry.
    """

    gates: int
    parts: int  # in the carry
    forward: Callable[[Parts, Parts, Parts], tuple[Parts, Parts]]
    backward: Callable[[Parts, Parts, Parts], tuple[Parts, Parts, Parts]]


def _rnn_forward(a: Parts, u: Parts, carry: Parts) -> tuple[Parts, Parts]:
    r"""$h'=\sigma(a+u)$."""
    del carry
    new = jax.nn.relu(a[0] + u[0])
    return (new,), (new,)


def _rnn_backward(kept: Parts, carry: Parts, toward: Parts) -> tuple[Parts, Parts, Parts]:
    into = (jnp.where(kept[0] > 0, toward[0], 0),)
    return into, into, (jnp.zeros_like(carry[0]),)


def _gru_forward(a: Parts, u: Parts, carry: Parts) -> tuple[Parts, Parts]:
    r"""$h'=(1-\zeta)n+\zeta h$, $n=\tanh(a_n+r\odot u_n)$."""
    reset, update = jax.nn.sigmoid(a[0] + u[0]), jax.nn.sigmoid(a[1] + u[1])
    new = jnp.tanh(a[2] + reset * u[2])
    return (new + update * (carry[0] - new),), (reset, update, new, u[2])


def _gru_backward(kept: Parts, carry: Parts, toward: Parts) -> tuple[Parts, Parts, Parts]:
    reset, update, new, u_new = kept
    toward_new = toward[0] * (1 - update) * (1 - new**2)
    toward_update = toward[0] * (carry[0] - new) * update * (1 - update)
    toward_reset = toward_new * u_new * reset * (1 - reset)
    into_a = (toward_reset, toward_update, toward_new)
    return into_a, (*into_a[:2], toward_new * reset), (toward[0] * update,)


def _lstm_forward(a: Parts, u: Parts, carry: Parts) -> tuple[Parts, Parts]:
    r"""$c'=f\odot c+i\odot g$, $h'=o\odot\tanh c'$."""
    admit, forget, show = (jax.nn.sigmoid(a[gate] + u[gate]) for gate in (0, 1, 3))
    new = jnp.tanh(a[2] + u[2])
    memory = forget * carry[1] + admit * new
    shown = jnp.tanh(memory)
    return (show * shown, memory), (admit, forget, new, show, shown)


def _lstm_backward(kept: Parts, carry: Parts, toward: Parts) -> tuple[Parts, Parts, Parts]:
    admit, forget, new, show, shown = kept
    toward_memory = toward[1] + toward[0] * show * (1 - shown**2)
    into = (
        toward_memory * new * admit * (1 - admit),
        toward_memory * carry[1] * forget * (1 - forget),
        toward_memory * admit * (1 - new**2),
        toward[0] * shown * show * (1 - show),
    )
    return into, into, (jnp.zeros_like(carry[0]), toward_memory * forget)


KINDS = {
    "rnn": _Cell(1, 1, _rnn_forward, _rnn_backward),
    "gru": _Cell(3, 1, _gru_forward, _gru_backward),
    "lstm": _Cell(4, 2, _lstm_forward, _lstm_backward),
}


class Direction(eqx.Module):
    """The weights of one direction: what the gates take from a token and from the state."""

    w_in: Float[Array, "g D"]
    b_in: Float[Array, " g"]
    w_state: Float[Array, "g s"]
    b_state: Float[Array, " g"]

    @classmethod
    def draw(cls, key: Key[Array, ""], *, kind: str, dim: int, units: int) -> "Direction":
        r"""All weights uniform within $\pm1/\sqrt s$."""
        gates, bound = KINDS[kind].gates * units, 1 / math.sqrt(units)
        shapes = {"w_in": (gates, dim), "b_in": (gates,), "w_state": (gates, units), "b_state": (gates,)}
        return cls(**{name: bound * part for name, part in _drawing.uniforms(key, **shapes).items()})

    def states(self, kind: str, z: Float[Array, "N B D"], *, reverse: bool) -> Float[Array, "N B s"]:
        """States after each token."""
        return unroll(kind, reverse, self, z)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def unroll(kind: str, reverse: bool, weights: Direction, z: Float[Array, "N B D"]) -> Float[Array, "N B s"]:
    """States after each token, from zero."""
    return _unroll_forward(kind, reverse, weights, z)[0]


def _unroll_forward(kind: str, reverse: bool, weights: Direction, z: Array):
    cell = KINDS[kind]

    def gates(matrix: Array, bias: Array, x: Array) -> Parts:
        image = x @ matrix.T
        return tuple(jnp.split(image + jnp.broadcast_to(bias, image.shape), cell.gates, axis=-1))

    def step(carry, z):
        # The tokens' share here, not for all steps at once: that would leave the caches, and the memory be new to us.
        a = gates(weights.w_in, weights.b_in, z)
        new, kept = cell.forward(a, gates(weights.w_state, weights.b_state, carry[0]), carry)
        return new, (new[0], kept, carry)

    start = (jnp.zeros((z.shape[1], weights.w_state.shape[1]), z.dtype),) * cell.parts
    _, (states, kept, before) = jax.lax.scan(step, start, z, reverse=reverse)
    return states, (kept, before, weights, z)


def _unroll_backward(kind: str, reverse: bool, saved, toward: Array):
    kept, before, weights, z = saved
    cell = KINDS[kind]

    def back(parts: Parts, matrix: Array) -> Array:
        images = (part @ block for part, block in zip(parts, jnp.split(matrix, cell.gates), strict=True))
        return functools.reduce(operator.add, images)

    def step(toward_after, now):
        kept, carry, toward = now
        into_a, into_u, into_carry = cell.backward(kept, carry, (toward_after[0] + toward, *toward_after[1:]))
        return (into_carry[0] + back(into_u, weights.w_state), *into_carry[1:]), (into_a, into_u)

    end = tuple(jnp.zeros_like(part[0]) for part in before)
    _, (into_a, into_u) = jax.lax.scan(step, end, (kept, before, toward), reverse=not reverse)

    def share(parts: Parts, read: Array) -> tuple[Array, Array]:
        """Gradients of matrix and bias: all steps in one product per gate."""
        rows = read.reshape(-1, read.shape[2])
        columns = [part.reshape(len(rows), -1) for part in parts]
        return jnp.concatenate([c.T @ rows for c in columns]), jnp.concatenate([jnp.sum(c, axis=0) for c in columns])

    return Direction(*share(into_a, z), *share(into_u, before[0])), back(into_a, weights.w_in)


unroll.defvjp(_unroll_forward, _unroll_backward)


class TokenRecurrent(eqx.Module):
    """Two directions and a read-out of both states at each token.

    With `include_token` (the experiments) the states have seen the token and the read-out is linear; without (the
    theory) they have not, and a two-layer net reads the states and the token.
    """

    forward: Direction
    backward: Direction
    readout: Float[Array, " outputs"] | TwoLayer
    offset: Float[Array, ""] | None
    kind: str = eqx.field(static=True)
    include_token: bool = eqx.field(static=True, default=True)

    @classmethod
    def draw(
        cls,
        key: Key[Array, ""],
        *,
        kind: str,
        dim: int,
        units: int = 500,
        include_token: bool = True,
        hidden: int = 100,
        output_bias: bool = True,
    ) -> "TokenRecurrent":
        """Weights of the public code's laws; `hidden` is the width of the two-layer read-out."""
        if kind not in KINDS or min(dim, units, hidden) < 1:
            raise ValueError(
                f"TokenRecurrent.draw got {kind=}, {dim=}, {units=}, {hidden=}: kinds are {', '.join(KINDS)} and sizes "
                "are at least 1. Choose among these."
            )
        forward, backward = (
            Direction.draw(stream(key, name), kind=kind, dim=dim, units=units) for name in ("forward", "backward")
        )
        if not include_token:
            drawn = _drawing.uniforms(stream(key, "readout"), **_drawing.two_layer_shapes(2 * units + dim, hidden))
            return cls(forward, backward, _drawing.two_layer(drawn, output_bias=output_bias), None, kind, include_token)
        drawn, bound = (
            _drawing.uniforms(stream(key, "readout"), readout=(2 * units,), offset=()),
            1 / math.sqrt(2 * units),
        )
        offset = bound * drawn["offset"] if output_bias else None
        return cls(forward, backward, bound * drawn["readout"], offset, kind, include_token)

    def batch(self, z: Float[Array, "B N D"], real: None = None) -> Float[Array, "B N"]:
        """Predictions for a batch of prompts, all of whose tokens are real."""
        del real
        time_first = z.swapaxes(0, 1)
        before = self.forward.states(self.kind, time_first, reverse=False)
        after = self.backward.states(self.kind, time_first, reverse=True)
        if isinstance(self.readout, TwoLayer):
            nothing = jnp.zeros_like(before[:1])
            before, after = jnp.concatenate([nothing, before[:-1]]), jnp.concatenate([after[1:], nothing])
            return self.readout(jnp.concatenate([before, after, time_first], axis=2)).swapaxes(0, 1)
        left, right = jnp.split(self.readout, 2)
        output = (before @ left + after @ right).swapaxes(0, 1)
        return output if self.offset is None else output + self.offset

    def __call__(self, z: Float[Array, "N D"]) -> Float[Array, " N"]:
        """Predictions for one prompt."""
        return self.batch(z[None])[0]
