r"""A two-layer ReLU network through n given points, of small norm, and the recurrent network that overfits by it.

Source: mousavi2025, Lemmas 36 to 38, and the proof of Theorem 7.
Departures: constants are explicit.
Guarantee: exact up to rounding, which grows with the slopes; the norm is certified.

For $z_1<\dots<z_n$ with slopes $s_i=\frac{y_i-y_{i-1}}{z_i-z_{i-1}}$ the network
$y_1\sigma(t-z_1+1)+(s_2-y_1)\sigma(t-z_1)+\sum_{i\ge3}(s_i-s_{i-1})\sigma(t-z_{i-1})$ has value $y_1$ at $z_1$ and
slope $s_i$ between $z_{i-1}$ and $z_i$. With gaps of at least $\epsilon\le1$ its outer weights have
$\|a\|^2\le3y_1^2+4\sum s_i^2\le16\|y\|^2/\epsilon^2$ and its biases $\|b\|^2\le3\|z\|^2+2$. Multiplying a by $\rho$ and
dividing w and b by it changes nothing; the best $\rho$ leaves a squared norm of
$2\|a\|\sqrt{n+\|b\|^2}\le8\|y\|\sqrt{n+2+3\|z\|^2}/\epsilon$.

The recurrent network has no transitions and does not read its states: its output net is the one above on the token at
the position that was asked for. With $L\ge3$ layers the second one computes $(y,-y)$, further ones pass on
$(\sigma(y),\sigma(-y))$, and the last takes their difference. Outer weights are then $\sqrt2$ times as long; dividing
them by $2^{1/4}$ and multiplying what is before them by it leaves $\sqrt2$ times the squared norm, and 2 for each layer
from the third on.
"""

import math

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from genscope.models.mousavi2025 import Affine, BidirectionalRNN, TwoLayer
from genscope.precision import float64
from genscope.refusal import Refusal


def interpolate(
    x: Float[np.ndarray, "n d"], y: Float[np.ndarray, " n"], *, direction: Float[np.ndarray, " d"]
) -> TwoLayer:
    r"""The network through all $(x_i,y_i)$ that reads $\langle v,x\rangle$ only, with v the given unit `direction`.

    For Gaussian points and a random direction the gaps are at least $\sqrt\pi/(3n^2)$ and $\|z\|^2\le3n$ with
    probability at least 1/3 (Lemma 37), hence a squared norm of order $n^3$: `bounds.interpolation_norm`.
    """
    bias, outer = _through(x, y, direction)
    size = float(np.linalg.norm(outer))
    rho = math.sqrt(math.hypot(math.sqrt(len(bias)), *bias) / size) if size else math.inf
    with float64():
        weight = np.outer(np.full(len(bias), 1 / rho), direction)
        return TwoLayer(jnp.asarray(weight), jnp.asarray(bias / rho), jnp.asarray(outer * (rho if size else 0.0)))


def squared_interpolation_norm(
    x: Float[np.ndarray, "n d"], y: Float[np.ndarray, " n"], *, direction: Float[np.ndarray, " d"]
) -> float:
    r"""$2\|a\|\sqrt{n+\|b\|^2}$, the squared norm of all weights of `interpolate`, without making them."""
    bias, outer = _through(x, y, direction)
    return 2 * float(np.linalg.norm(outer)) * math.sqrt(len(bias) + float(bias @ bias))


def _through(
    x: Float[np.ndarray, "n d"], y: Float[np.ndarray, " n"], direction: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Biases and outer weights of units with inner weight 1, in the order of the points along the direction."""
    z = _projected(x, y, direction)
    order = np.argsort(z)
    z, y = z[order], np.asarray(y, float)[order]
    slopes = np.diff(y) / np.diff(z)
    outer = np.concatenate([y[:1], np.diff(np.concatenate([y[:1], slopes]))])
    return np.concatenate([1 - z[:1], -z[:-1]]), outer


def interpolating_rnn(
    z: Float[np.ndarray, "n N D"],
    positions: Int[np.ndarray, " n"],
    y: Float[np.ndarray, " n"],
    *,
    direction: Float[np.ndarray, " D"],
    depth: int = 2,
    state: int = 1,
) -> BidirectionalRNN:
    """The recurrent network with label $y_i$ at one position of each prompt, whose output net has `depth` layers.

    Its squared norm is that of `interpolate` for depth 2, and grows as above with it: `bounds.interpolation_norm`.
    """
    if depth < 2 or state < 1:
        raise Refusal(
            f"interpolating_rnn got depth={depth}, state={state}: the output network needs a hidden layer, and the "
            "state at least one coordinate. Give at least 2 layers and 1 coordinate."
        )
    shallow = interpolate(z[np.arange(len(z)), positions], y, direction=direction)
    with float64():
        balance = 1.0 if depth == 2 else 2**0.25
        unread = jnp.zeros((len(y), 2 * state))
        first = Affine(jnp.hstack([unread, balance * shallow.weight]), balance * shallow.bias)
        signs = jnp.ones((1, 1)) if depth == 2 else jnp.asarray([[1.0], [-1.0]])
        passed = [Affine(jnp.eye(2)) for _ in range(depth - 3)]
        last = [] if depth == 2 else [*passed, Affine(signs.T)]
        idle = (Affine(jnp.zeros((state, state + z.shape[2]))),)
        output = (first, Affine(signs * shallow.outer[None] / balance), *last)
        return BidirectionalRNN(idle, idle, output, 1.0)


def interpolation_bound(
    x: Float[np.ndarray, "n d"], y: Float[np.ndarray, " n"], *, direction: Float[np.ndarray, " d"]
) -> float:
    r"""$8\|y\|\sqrt{n+2+3\|z\|^2}/\epsilon$: what the squared norm of all weights does not exceed."""
    z = np.sort(_projected(x, y, direction))
    gap = min(1.0, float(np.diff(z).min(initial=1.0)))
    return 8 * float(np.linalg.norm(y)) * math.sqrt(len(z) + 2 + 3 * float(z @ z)) / gap


def _projected(x: Float[np.ndarray, "n d"], y: Float[np.ndarray, " n"], direction: np.ndarray) -> np.ndarray:
    z = np.asarray(x, float) @ direction
    unit = math.isclose(float(np.linalg.norm(direction)), 1.0, rel_tol=1e-6)
    if not len(z) or len(y) != len(z) or not unit or len(np.unique(z)) < len(z):
        raise Refusal(
            f"interpolate got {len(z)} points, {len(y)} values and a direction of length "
            f"{float(np.linalg.norm(direction)):.3g}, along which {len(np.unique(z))} points differ: it needs one "
            "value per point, at least one point, and points that all differ along a unit direction. Drop repeated "
            "points, or choose another direction."
        )
    return z
