r"""The exact shortcut of recurrent networks over tokens: a batch of prompts, with a gradient of its own.

JAX would add up the gradient of the recurrent matrix step by step, which costs as much memory traffic as the products
themselves; here all steps' shares are one product.

Guarantee: exact; `outputs` equals `jax.vmap(model)` in value and gradient up to rounding.
"""

import functools
import operator
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from genscope.models.token_recurrent import KINDS, Direction, Parts, TokenRecurrent


def outputs(model: TokenRecurrent, z: Float[Array, "B N D"]) -> Float[Array, "B N"]:
    """Predictions for a batch of prompts."""
    time_first = z.swapaxes(0, 1)
    before: Any = unroll(model.kind, False, model.forward, time_first)
    after: Any = unroll(model.kind, True, model.backward, time_first)
    return model.read(before, after, time_first).swapaxes(0, 1)


# The gradients with respect to a, u and the carry, from what `RecurrentCell.step` kept, the carry before it, and the
# gradient with respect to the carry after it.


def _rnn_backward(kept: Parts, carry: Parts, toward: Parts) -> tuple[Parts, Parts, Parts]:
    into = (jnp.where(kept[0] > 0, toward[0], 0),)
    return into, into, (jnp.zeros_like(carry[0]),)


def _gru_backward(kept: Parts, carry: Parts, toward: Parts) -> tuple[Parts, Parts, Parts]:
    reset, update, new, u_new = kept
    toward_new = toward[0] * (1 - update) * (1 - new**2)
    toward_update = toward[0] * (carry[0] - new) * update * (1 - update)
    toward_reset = toward_new * u_new * reset * (1 - reset)
    into_a = (toward_reset, toward_update, toward_new)
    return into_a, (*into_a[:2], toward_new * reset), (toward[0] * update,)


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


BACKWARD = {"rnn": _rnn_backward, "gru": _gru_backward, "lstm": _lstm_backward}


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
        new, kept = cell.step(a, gates(weights.w_state, weights.b_state, carry[0]), carry)
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
        into_a, into_u, into_carry = BACKWARD[kind](kept, carry, (toward_after[0] + toward, *toward_after[1:]))
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
