r"""From scores to attention, beside softmax: entmax, which ignores low scores, and a clipped exponential.

How far attention moves, $\|p-\hat p\|_1\le C\|s-\hat s\|_\infty$ for T scores, is all that the capacity of a head
knows of it (the constant $C_{\mathrm{Norm}}$):

`entmax(alpha)`, $p_t=((\alpha-1)s_t-\tau)_+^{1/(\alpha-1)}$ with $\sum p=1$, $1<\alpha\le2$: $C=T^{\alpha-1}$. Its
derivative where it has one is $\mathrm{diag}(w)-ww^\top/W$ with $w=p^{2-\alpha}$ on the support and $W=\sum w$, that
is $W$ times the covariance under $w/W$, which for signs $a,b$ is at most 1; and $W\le k^{\alpha-1}$ for a support of
k (Hölder). Entmax is Lipschitz (its entropy is strongly concave), so that along the line between two scores the
derivative exists almost everywhere and integrates. For even T the constant is attained, at equal scores; $\alpha=2$ is
sparsemax, $\alpha\to1$ softmax, $C=1$. Bounds on capacity then grow like $T^{2(\alpha-1)}$, no longer like $\log T$.

`clipped(c)`, softmax of scores cut to $[-c,c]$: $C=1$, since cutting brings no two scores further apart. Attention is
at least $e^{-2c}/T$ everywhere.

Source: edelman2022, Section 3 (any normalization that is Lipschitz in these norms); the constants are ours.
Guarantee: exact up to rounding; tests/models/test_normalisation.py searches for ratios above C.
"""

import functools
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from genscope.refusal import Refusal

Normalisation = Callable[[Array], Array]
_HALVINGS = 60


@functools.cache  # one object for equal settings: modules hold it as a static field
def entmax(alpha: float) -> Normalisation:
    """The normalization of Tsallis entropies, over the last axis; 2 is sparsemax."""
    if not 1 < alpha <= 2:
        raise Refusal(
            f"entmax got alpha={alpha!r}: it must be above 1 (1 is softmax) and at most 2. Correct it, or use "
            "jax.nn.softmax."
        )

    @jax.custom_jvp
    def normalise(scores: Float[Array, "... T"]) -> Float[Array, "... T"]:
        scaled = (alpha - 1) * scores
        high = jnp.max(scaled, axis=-1, keepdims=True)

        def halve(_: object, ends: tuple[Array, Array]) -> tuple[Array, Array]:
            low, high = ends
            middle = (low + high) / 2
            enough = jnp.sum(_power(scaled - middle, alpha), axis=-1, keepdims=True) >= 1
            return jnp.where(enough, middle, low), jnp.where(enough, high, middle)

        low, _ = jax.lax.fori_loop(0, _HALVINGS, halve, (high - 1, high))
        found = _power(scaled - low, alpha)
        return found / jnp.sum(found, axis=-1, keepdims=True)

    @normalise.defjvp
    def _(primals, tangents):
        (scores,), (moved,) = primals, tangents
        p = normalise(scores)
        weight = jnp.where(p > 0, jnp.where(p > 0, p, 1.0) ** (2 - alpha), 0.0)
        mean = jnp.sum(weight * moved, axis=-1, keepdims=True) / jnp.sum(weight, axis=-1, keepdims=True)
        return p, weight * (moved - mean)

    return normalise


def _power(x: Array, alpha: float) -> Array:
    return jnp.maximum(x, 0.0) ** (1 / (alpha - 1))


@functools.cache
def clipped(limit: float) -> Normalisation:
    """Softmax of scores that are cut to plus or minus a limit."""
    if not 0 < limit < math.inf:
        raise Refusal(
            f"clipped got limit={limit!r}: scores are clipped to [-limit, limit], so it must be positive. Change it."
        )
    return lambda scores: jax.nn.softmax(jnp.clip(scores, -limit, limit), axis=-1)
