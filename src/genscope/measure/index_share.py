r"""How much of what a network over tokens predicts depends on the positions that it is asked for.

Source: mousavi2025, Definition 2 (labels depend on the prompt's index t).
Departures: ours; the paper reports test errors alone, which a predictor that ignores t can lower to 1 - 1/N.
Guarantee: the mean over pairs of prompts that share their tokens; 0 for a predictor that ignores t, and for a constant.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Key

from genscope.tasks.token_regression import TokenRegression


def index_share(
    predict: Callable[[Float[Array, "size N row"]], Float[Array, "size N"]],
    task: TokenRegression,
    key: Key[Array, ""],
    *,
    size: int = 1_000,
    chunk: int = 125,
) -> Float[Array, ""]:
    r"""$\mathbb E\,\mathrm{Var}(\hat y_i\mid x)/\mathrm{Var}(\hat y_i)$, averaged over the positions i.

    Of `size` prompts each is asked twice, with independent positions and the same tokens; `chunk` at a time. Traceable.
    """

    def pair(key: Key[Array, ""]) -> tuple[Array, Array]:
        once, again = jr.split(key)
        x, t = task.raw(once, chunk)
        marks = t, task.raw(again, chunk)[1]
        first, second = (predict(jnp.concatenate([x, mark.astype(x.dtype)], axis=2)) for mark in marks)
        return first, second

    first, second = (part.reshape(size, -1) for part in jax.lax.map(pair, jr.split(key, size // chunk)))
    within = jnp.mean((first - second) ** 2, axis=0) / 2
    total = (jnp.var(first, axis=0) + jnp.var(second, axis=0)) / 2
    if task.real is not None:
        within, total = (jnp.where(task.real, part, 0) for part in (within, total))
    total = jnp.sum(total)
    return jnp.where(total > 0, jnp.sum(within) / jnp.where(total > 0, total, 1), 0.0)
