r"""A recurrent network that reads bits one by one, from the first to the last: simple RNN, GRU or LSTM.

Source: the cells of mousavi2025's public code (`token_recurrent`), in one direction, read at the end.
Departures: a token is the sign of its bit beside a learned vector of its position, without which a network would have
to count; the forget gate of the LSTM starts open (bias 1), as is customary, and the simple RNN's recurrent matrix at
the identity, after Le, Jaitly and Hinton (2015), since ReLU states vanish or explode over long inputs otherwise.
Guarantee: exact up to rounding. `outputs` takes a batch by the shortcut of `token_recurrent_fast`.
"""

import dataclasses
import math
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, Key, Num

from genscope.fourier import signs
from genscope.models.token_recurrent import KINDS, Direction
from genscope.random import stream
from genscope.refusal import Refusal


class BitRecurrent(eqx.Module):
    """One direction over T tokens, and a linear read-out of the last state."""

    position: Float[Array, "T e"]
    direction: Direction
    w_read: Float[Array, " s"]
    b_read: Float[Array, ""]
    kind: str = eqx.field(static=True)

    def __init__(
        self, context_length: int, *, kind: str = "gru", units: int = 64, embedding: int = 16, key: Key[Array, ""]
    ):
        if kind not in KINDS or min(context_length, units, embedding) < 1:
            raise Refusal(
                f"BitRecurrent got context_length={context_length!r}, kind={kind!r}, units={units!r}, "
                f"embedding={embedding!r}: the kind must be one of {', '.join(KINDS)}, and sizes at least 1. "
                "Correct the one that is not."
            )
        self.position = jr.normal(stream(key, "position"), (context_length * embedding,)).reshape(context_length, -1)
        direction = Direction.draw(stream(key, "direction"), kind=kind, dim=1 + embedding, units=units)
        if kind == "rnn":
            changed = {"w_state": jnp.eye(units), "b_in": jnp.zeros(units), "b_state": jnp.zeros(units)}
            direction = dataclasses.replace(direction, w_in=0.1 * direction.w_in, **changed)
        elif kind == "lstm":  # gates: admit, forget, new, show
            direction = dataclasses.replace(direction, b_in=direction.b_in.at[units : 2 * units].set(1.0))
        self.direction = direction
        self.w_read = jr.normal(stream(key, "read"), (units,)) / math.sqrt(units)
        self.b_read = jnp.zeros(())
        self.kind = kind

    def __call__(self, x: Num[Array, " T"] | Bool[Array, " T"]) -> Float[Array, ""]:
        """Logit of one example."""
        tokens = jnp.concatenate([signs(x, self.w_read.dtype)[:, None], self.position], axis=1)
        return self.direction.states(self.kind, tokens, reverse=False)[-1] @ self.w_read + self.b_read

    def outputs(self, x: Num[Array, "m T"] | Bool[Array, "m T"]) -> Float[Array, " m"]:
        """Logits of a batch, by the exact shortcut."""
        from genscope.models.token_recurrent_fast import unroll

        bits = signs(x, self.w_read.dtype).T[..., None]
        places = jnp.broadcast_to(self.position[:, None], (*bits.shape[:2], self.position.shape[1]))
        states: Any = unroll(self.kind, False, self.direction, jnp.concatenate([bits, places], axis=2))
        return states[-1] @ self.w_read + self.b_read
