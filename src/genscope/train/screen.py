r"""Whether the mean loss over a fixed test set is below a threshold, decided from as few of its examples as possible.

Source: mousavi2025, Section 5 (samples until the test error is below a threshold).
Departures: None in what is measured; the paper evaluates every example at every check.
Guarantee: a model passes if and only if its mean over all examples is below the threshold, except that a passing one is
refused with a small probability (see `MARGIN`); nothing passes wrongly, ever. NaN losses never pass.

After n of M examples, drawn in random order, the mean over all M is estimated by regression on a control $v$ whose mean
over all M is known (the loss of predicting 0): $\bar L_n-b(\bar v_n-\bar v_M)$, with standard error
$\sqrt{(1/n-1/M)\,s^2}$, $s^2$ the residual variance. Far from the threshold few examples suffice, because an untrained
network's loss is nearly the control. The model is refused once the estimate exceeds the threshold by `MARGIN` errors.
The losses of an earlier model on all examples are a control as well, and a far better one for a model that learns
slowly: whoever checks again passes on those of the last check that saw everything.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

MARGIN = 4.5
"""Standard errors. Of 80,000 simulated test sets of 5,000 whose mean lay just below the threshold, in chunks of 250, 3
were refused (at most 2 of 20,000 for one kind of predictor); with the losses of an earlier model as control, 3 of
40,000 (at most 1 of 10,000)."""


class Check(NamedTuple):
    """The verdict on one model."""

    passed: Bool[Array, ""]
    mean: Float[Array, ""]  # over all examples, or its estimate at the look that refused
    seen: Int[Array, ""]  # examples that were evaluated
    losses: Float[Array, " M"]  # of these; those of the others are 0


def screened(
    losses: Callable[[Int[Array, ""]], Float[Array, " chunk"]],
    control: Float[Array, " M"],
    *,
    chunk: int,
    threshold: Float[Array, ""],
    margin: Float[Array, ""],
    patience: float = 1.0,
) -> Check:
    """Check a model whose losses on the examples from `start` on, `chunk` of them, are `losses(start)`.

    A check that needs more than the share `patience` of the examples sees them all, so that its losses can be the next
    one's control. A huge margin sees all examples. Traceable.
    """
    size = len(control)
    if not 2 < chunk <= size or size % chunk:
        raise ValueError(
            f"screened got {size} examples in chunks of {chunk}: a standard error needs at least three, and chunks are "
            "whole. Make the size a multiple of the chunk."
        )
    known = jnp.mean(control)

    def look(state):
        seen, _, _, moments, kept = state
        now = losses(seen)
        # Both are centred before they are squared, so that float32 sums lose nothing.
        loss, free = now - threshold, jax.lax.dynamic_slice(control, (seen,), (chunk,)) - known
        columns = jnp.stack([jnp.ones_like(loss), loss, free])
        moments, kept = moments + columns @ columns.T, jax.lax.dynamic_update_slice(kept, now, (seen,))
        seen = seen + chunk
        mean, error = _estimate(moments, seen.astype(now.dtype), size)
        return seen, mean - margin * error > 0, mean, moments, kept

    def undecided(state):
        seen, refused, *_ = state
        return (seen < size) & ~(refused & (seen <= int(patience * size)))

    nothing = jnp.zeros((), control.dtype)
    start = (jnp.int32(0), jnp.bool_(False), nothing, jnp.zeros((3, 3), control.dtype), jnp.zeros_like(control))
    seen, _, mean, _, kept = jax.lax.while_loop(undecided, look, start)
    return Check((seen == size) & (mean < 0), mean + threshold, seen, kept)


def _estimate(
    moments: Float[Array, "3 3"], n: Float[Array, ""], size: int
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """The mean above the threshold and its standard error, from the sums of products of 1, loss and control."""
    (_, loss, free), (_, loss_loss, loss_free), (_, _, free_free) = moments
    cross = loss_free - loss * free / n
    spread = free_free - free * free / n
    slope = jnp.where(spread > 0, cross / jnp.where(spread > 0, spread, 1), 0)
    residual = jnp.maximum(loss_loss - loss * loss / n - slope * cross, 0) / (n - 2)
    # All examples seen: the control's mean is its known one, and what is left of their difference is rounding.
    mean = jnp.where(n < size, loss - slope * free, loss) / n
    return mean, jnp.sqrt(residual * jnp.maximum(1 / n - 1 / size, 0))
