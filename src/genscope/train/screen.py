r"""Whether the mean loss over a fixed test set is below a threshold, decided from as few of its examples as possible.

Source: mousavi2025, Figure 1 (samples until the test error is below a threshold).
Departures: the paper evaluates every example at every check; what is measured is the same.
Guarantee: a model passes if and only if its mean over all examples is below the threshold, except that a passing one is
refused with a small probability (see `MARGIN`); nothing passes wrongly, ever. NaN losses never pass.

After n of M examples, drawn in random order, the mean over all M is estimated by regression on controls $v_k$, numbers
of each example whose means over all M are known: the intercept of the losses on 1 and $v_k-\bar v_k$, with the squared
standard error $s^2(g-1/M)$, where $s^2$ is the residual variance and $g\approx1/n$ the intercept's entry of the
inverse Gram matrix. The model is refused once the estimate exceeds the threshold by `MARGIN` errors. Losses of guesses
that need no network are free controls, and the better they resemble what it has learned, the fewer examples suffice.
The losses of an earlier model on all examples are a control as well, the best one for a model that learns slowly:
whoever checks again passes on those of the last check that saw everything.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from genscope.refusal import Refusal

MARGIN = 4.75
"""Standard errors. Of 640,000 simulated test sets of 5,000 whose mean lay just below the threshold, in chunks of 125
and with four controls, 18 were refused (of 80,000 with one kind of predictor at most 5)."""
COLLINEAR = 1e-4  # share of a control's square: if the others leave less of it, it is not taken in


class ScreenedMean(NamedTuple):
    """The verdict on one model."""

    passed: Bool[Array, ""]
    mean: Float[Array, ""]  # over all examples, or its estimate at the look that refused
    seen: Int[Array, ""]  # examples that were evaluated
    losses: Float[Array, " M"]  # of these; those of the others are 0


def screened(
    losses: Callable[[Int[Array, ""]], Float[Array, " chunk"]],
    controls: Float[Array, "K M"],
    *,
    chunk: int,
    threshold: Float[Array, ""],
    margin: Float[Array, ""],
    patience: float = 1.0,
) -> ScreenedMean:
    """Check a model whose losses on the examples from `start` on, `chunk` of them, are `losses(start)`.

    A check that needs more than the share `patience` of the examples sees them all, so that its losses can be the next
    one's control. A huge margin sees all examples. Controls may be constant or repeat each other. Traceable.
    """
    count, size = controls.shape
    if not count + 1 < chunk <= size or size % chunk:
        raise Refusal(
            f"screened got {size} examples in chunks of {chunk}, {count} controls: a standard error needs at least two "
            "more examples than controls, and the examples must fill whole chunks. Make the size a multiple of the "
            "chunk."
        )
    centred = controls - jnp.mean(controls, axis=1, keepdims=True)

    def look(state):
        seen, _, _, moments, kept = state
        now = losses(seen)
        # All are centered before they are squared, so that float32 sums lose nothing.
        known = jax.lax.dynamic_slice(centred, (0, seen), (count, chunk))
        rows = jnp.concatenate([jnp.ones((1, chunk), now.dtype), known, (now - threshold)[None]])
        moments, kept = moments + rows @ rows.T, jax.lax.dynamic_update_slice(kept, now, (seen,))
        seen = seen + chunk
        mean, error = _estimate(moments, seen.astype(now.dtype), size)
        return seen, mean - margin * error > 0, mean, moments, kept

    def undecided(state):
        seen, refused, *_ = state
        return (seen < size) & ~(refused & (seen <= int(patience * size)))

    nothing = jnp.zeros((), controls.dtype)
    moments, kept = (jnp.zeros(shape, controls.dtype) for shape in ((count + 2, count + 2), size))
    seen, _, mean, _, kept = jax.lax.while_loop(
        undecided, look, (jnp.int32(0), jnp.bool_(False), nothing, moments, kept)
    )
    return ScreenedMean((seen == size) & (mean < 0), mean + threshold, seen, kept)


def _estimate(
    moments: Float[Array, "rows rows"], n: Float[Array, ""], size: int
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """The mean above the threshold and its standard error, from the sums of products of 1, controls and loss."""
    known, diagonal = len(moments) - 1, jnp.diagonal(moments)

    def take_in(k, swept):
        return jnp.where(swept[k, k] > COLLINEAR * diagonal[k], _swept(swept, k), swept)

    # A loop, although short: its body is compiled once.
    swept = jax.lax.fori_loop(0, known, take_in, moments)
    residual = jnp.maximum(swept[-1, -1], 0) / (n - known)
    # All examples seen: the controls' means are the known ones, and what is left of their difference is rounding.
    mean = jnp.where(n < size, swept[0, -1], moments[0, -1] / n)
    return mean, jnp.sqrt(residual * jnp.maximum(-swept[0, 0] - 1 / size, 0))


def _swept(moments: Float[Array, "rows rows"], k: Int[Array, ""]) -> Float[Array, "rows rows"]:
    """Least squares takes in regressor k, by the sweep operator.

    Among the regressors taken in stands minus the inverse Gram matrix, beside them the coefficients of the others, and
    among the others what the regression leaves of their products.
    """
    row, here = moments[k], jnp.arange(len(moments)) == k
    pivot = row[k]
    rest = jnp.where(here[None], (row / pivot)[:, None], moments - jnp.outer(row, row / pivot))
    return jnp.where(here[:, None], jnp.where(here, -1 / pivot, row / pivot)[None], rest)
