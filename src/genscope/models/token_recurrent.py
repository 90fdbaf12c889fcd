r"""Trained bidirectional recurrent networks: simple RNN, GRU and LSTM over tokens, with a prediction at each.

Source: mousavi2025, Appendix E; the public code trains the GRU, the text names the simple RNN.
Departures: where the states exclude the current token (the theory's form), the output net is a two-layer one.
Guarantee: exact up to rounding. Gates are ordered and applied as in the public code: reset gate after the recurrent
product. The fast form for batches, with a gradient of its own, is in `token_recurrent_fast`.

Shapes: B prompts of N tokens of dimension D, s state, g = gates * s.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from genscope.models import _drawing
from genscope.models.mousavi2025 import TwoLayer
from genscope.random import stream
from genscope.refusal import Refusal

Parts = tuple[
    Array, ...
]  # one array for each gate, or for each part of the carry: the state h, and the LSTM's memory c


class RecurrentCell(NamedTuple):
    """One step on gates $a=W_iz+b_i$ of the token and $u=W_hh+b_h$ of the state.

    `step(a, u, carry)` gives the new carry, and values on the way to it, of which gradients are made.
    """

    gates: int
    parts: int  # in the carry
    step: Callable[[Parts, Parts, Parts], tuple[Parts, Parts]]


def _rnn(a: Parts, u: Parts, carry: Parts) -> tuple[Parts, Parts]:
    r"""$h'=\sigma(a+u)$."""
    del carry
    new = jax.nn.relu(a[0] + u[0])
    return (new,), (new,)


def _gru(a: Parts, u: Parts, carry: Parts) -> tuple[Parts, Parts]:
    r"""$h'=(1-\zeta)n+\zeta h$, $n=\tanh(a_n+r\odot u_n)$."""
    reset, update = jax.nn.sigmoid(a[0] + u[0]), jax.nn.sigmoid(a[1] + u[1])
    new = jnp.tanh(a[2] + reset * u[2])
    return (new + update * (carry[0] - new),), (reset, update, new, u[2])


def _lstm(a: Parts, u: Parts, carry: Parts) -> tuple[Parts, Parts]:
    r"""$c'=f\odot c+i\odot g$, $h'=o\odot\tanh c'$."""
    admit, forget, show = (jax.nn.sigmoid(a[gate] + u[gate]) for gate in (0, 1, 3))
    new = jnp.tanh(a[2] + u[2])
    memory = forget * carry[1] + admit * new
    shown = jnp.tanh(memory)
    return (show * shown, memory), (admit, forget, new, show, shown)


KINDS = {"rnn": RecurrentCell(1, 1, _rnn), "gru": RecurrentCell(3, 1, _gru), "lstm": RecurrentCell(4, 2, _lstm)}


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

    def states(self, kind: str, z: Float[Array, "N D"], *, reverse: bool) -> Float[Array, "N s"]:
        """States after each token, from zero."""
        cell = KINDS[kind]

        def step(carry: Parts, token: Array) -> tuple[Parts, Array]:
            a = jnp.split(self.w_in @ token + self.b_in, cell.gates)
            u = jnp.split(self.w_state @ carry[0] + self.b_state, cell.gates)
            new, _ = cell.step(tuple(a), tuple(u), carry)
            return new, new[0]

        start = (jnp.zeros(self.w_state.shape[1], z.dtype),) * cell.parts
        return jax.lax.scan(step, start, z, reverse=reverse)[1]


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
            raise Refusal(
                f"TokenRecurrent.draw got {kind=}, {dim=}, {units=}, {hidden=}: the kind must be one of "
                f"{', '.join(KINDS)}, and sizes at least 1. Correct the one that is not."
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

    def __call__(self, z: Float[Array, "N D"]) -> Float[Array, " N"]:
        """Predictions for one prompt."""
        before = self.forward.states(self.kind, z, reverse=False)
        after = self.backward.states(self.kind, z, reverse=True)
        return self.read(before, after, z)

    def read(
        self, before: Float[Array, "N ... s"], after: Float[Array, "N ... s"], z: Float[Array, "N ... D"]
    ) -> Float[Array, "N ..."]:
        """Predictions from the states of both directions after each token, and the tokens."""
        if isinstance(self.readout, TwoLayer):
            nothing = jnp.zeros_like(before[:1])
            before, after = jnp.concatenate([nothing, before[:-1]]), jnp.concatenate([after[1:], nothing])
            return self.readout(jnp.concatenate([before, after, z], axis=-1))
        left, right = jnp.split(self.readout, 2)
        output = before @ left + after @ right
        return output if self.offset is None else output + self.offset

    def outputs(self, z: Float[Array, "B N D"], real: None = None) -> Float[Array, "B N"]:
        """Predictions for a batch of prompts, all of whose tokens are real, by the exact shortcut."""
        from genscope.models.token_recurrent_fast import outputs

        del real
        return outputs(self, z)
