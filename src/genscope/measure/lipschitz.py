r"""How sharp are the Lipschitz inequalities behind the capacity bounds? A search for the worst ratio of their sides.

The head (Lemma 4.3), for weights and moved weights at the same tokens and context:
$$\|f-\hat f\|\le cL\|W_V\|B_X\max_t|\mathrm{Score}_t-\widehat{\mathrm{Score}}_t|+L\max_t\|(W_V-\hat W_V)^\top x_t\|.$$
The deep network (one head per layer), with $\Lambda_i=\prod_{j>i}L\|W_C\|\|W_V\|(1+2c\|W_{QK}\|)$:
$$|f-\hat f|\le\epsilon_w+\|w\|\sum_i\Lambda_i(\epsilon_C+L\|W_C\|\epsilon_V+cL\|W_C\|\|W_V\|\epsilon_{QK}),$$
where the errors are measured at the activations of the moved network and norms are those of the true weights.

Source: edelman2022, Lemma 4.3; the inequality behind Theorem 4.7 as proved in `genscope.bounds.layers`.
Guarantee: a ratio is exact up to rounding (float64; the right-hand side is raised by 1e-6, so it is a little too
small); the worst ratio found is a lower limit of the supremum.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Key, PyTree

from genscope.models.edelman2022 import Head, project
from genscope.precision import float64
from genscope.random import stream
from genscope.refusal import Refusal
from genscope.train import Optimizer, adam

FLOOR = 1e-6  # added to the right-hand side, so that rounding of a tiny one cannot look like a violation
ROUNDING = 1e-8  # what remains of rounding in a ratio

Scalar = float | Float[Array, ""]
EVERY_TERM: Mapping[str, Scalar] = dict.fromkeys(("readout", "output", "value", "query_key"), 1.0)


class HeadCase(eqx.Module):
    """A head, its weights moved, and an input; both heads have the same sigma, 1-Lipschitz, and no output matrix."""

    head: Head
    moved: Head
    tokens: Float[Array, "n d"]
    context: Float[Array, " d"]

    @classmethod
    def draw(cls, key: Key[Array, ""], *, context_length: int, dim: int, head_dim: int, sigma=jax.nn.relu) -> Self:
        """Gaussian weights and tokens, moved by a random step between 1e-2 and 1 of their size."""
        drawn = Head.draw(stream(key, "head"), dim=dim, head_dim=head_dim, sigma=sigma)
        head = Head(drawn.w_q, drawn.w_k, drawn.w_v, sigma=sigma)
        tokens = _gaussian(stream(key, "tokens"), context_length, dim)
        return cls(head, _moved(stream(key, "moved"), head), tokens, _gaussian(stream(key, "context"), 1, dim)[0])


class DeepCase(eqx.Module):
    """Layers of one projected head each, their weights moved, a read-out, and tokens in the unit ball, CLS last."""

    layers: tuple[Head, ...]
    readout: Float[Array, " d"]
    moved: tuple[tuple[Head, ...], Float[Array, " d"]]
    tokens: Float[Array, "n d"]

    @classmethod
    def draw(
        cls, key: Key[Array, ""], *, context_length: int, dim: int, head_dim: int, layers: int, sigma=jax.nn.relu
    ) -> Self:
        """As `HeadCase.draw`."""
        heads = tuple(
            Head.draw(stream(key, f"layer {i}"), dim=dim, head_dim=head_dim, sigma=sigma, projected=True)
            for i in range(layers)
        )
        readout = _gaussian(stream(key, "readout"), 1, dim)[0]
        moved = _moved(stream(key, "moved"), (heads, readout))
        return cls(heads, readout, moved, _gaussian(stream(key, "tokens"), context_length, dim))


def head_ratio(case: HeadCase, *, softmax_constant: Scalar = 1.0) -> Float[Array, ""]:
    """Left-hand side over right-hand side of Lemma 4.3, with 1-Lipschitz sigma."""
    head, moved, tokens = case.head, case.moved, case.tokens
    before, after = head.activations(tokens, case.context), moved.activations(tokens, case.context)
    scores = jnp.max(jnp.abs(before.scores - after.scores))
    values = jnp.max(_norm(tokens @ (head.w_v - moved.w_v)))
    right = softmax_constant * _spectral(head.w_v) * jnp.max(_norm(tokens)) * scores + values
    return _norm(before.output - after.output) / (right + FLOOR)


def deep_ratio(
    case: DeepCase, *, softmax_constant: Scalar = 1.0, kept: Mapping[str, Scalar] = EVERY_TERM
) -> Float[Array, ""]:
    """Left-hand side over right-hand side of the deep inequality, its terms multiplied by `kept` (1: as proved)."""
    moved_layers, moved_readout = case.moved
    true = moved = project(case.tokens)
    right = jnp.zeros(())
    for head, other in zip(case.layers, moved_layers, strict=True):
        true_output, moved_output = _output(head), _output(other)
        output, value = _spectral(true_output), _spectral(head.w_v)
        active, after = _layer(other, moved)
        errors = {
            "output": jnp.max(_norm(active @ (true_output - moved_output))),
            "value": output * jnp.max(_norm(moved @ (head.w_v - other.w_v))),
            "query_key": softmax_constant * output * value * jnp.max(_norm(moved @ _query_key(head, other))),
        }
        growth = output * value * (1 + 2 * softmax_constant * _spectral(head.w_q @ head.w_k.T))
        right = growth * right + sum(kept[term] * error for term, error in errors.items())
        true, moved = _layer(head, true)[1], after
    readout = jnp.abs(jnp.vdot(case.readout - moved_readout, moved[-1]))
    right = _norm(case.readout) * right + kept["readout"] * readout
    left = jnp.abs(jnp.vdot(case.readout, true[-1]) - jnp.vdot(moved_readout, moved[-1]))
    return left / (right + FLOOR)


def _layer(head: Head, tokens: Float[Array, "n d"]) -> tuple[Float[Array, "n v"], Float[Array, "n d"]]:
    """What the output matrix reads, and the next layer's tokens."""
    computed = jax.vmap(lambda context: head.activations(tokens, context))(tokens)
    return head.sigma(project(computed.mixture)), project(computed.output)


def _output(head: Head) -> Float[Array, "v d"]:
    if head.w_c is None:
        raise Refusal("deep_ratio got a head without w_c: layers must map tokens to tokens. Give heads with w_c.")
    return head.w_c


def _query_key(head: Head, other: Head) -> Float[Array, "d d"]:
    r"""$(W_{QK}-\hat W_{QK})^\top$, which rows are multiplied by."""
    return (head.w_q @ head.w_k.T - other.w_q @ other.w_k.T).T


class Worst(NamedTuple):
    """Largest ratios over all starts: as drawn, and after climbing."""

    drawn: float
    climbed: float


def search_ratio(
    ratio: Callable[..., Float[Array, ""]],
    draw: Callable[[Key[Array, ""]], eqx.Module],
    *,
    key: Key[Array, ""],
    starts: int = 64,
    steps: int = 300,
    rate: float = 0.03,
    **options: Any,
) -> Worst:
    """Draw cases, climb the ratio from each by Adam, and give the largest ratios seen; `options` go to the ratio.

    The same ratio with other options is not compiled again.
    """
    if starts < 1 or steps < 1:
        raise Refusal(f"search_ratio got {starts=}, {steps=}: both must be at least 1. Increase the one that is not.")
    with float64():
        cases = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(draw(one) for one in jr.split(key, starts)))
        drawn, climbed = _climb(ratio, cases, steps, adam(rate), jax.tree.map(jnp.asarray, options))
        return Worst(float(jnp.max(drawn)), float(jnp.max(climbed)))


@eqx.filter_jit
def _climb(
    ratio: Callable[..., Float[Array, ""]], cases: PyTree, steps: int, optimizer: Optimizer, options: dict[str, Any]
) -> tuple[Float[Array, " starts"], Float[Array, " starts"]]:
    """The ratios of the cases, and the largest on the way up from each."""
    slope = jax.vmap(jax.value_and_grad(lambda case: ratio(case, **options)))

    def step(carry, _):
        cases, state = carry
        values, slopes = slope(cases)
        # A norm has no slope where it is 0; such a start stands still.
        downhill = jax.tree.map(lambda leaf: -jnp.nan_to_num(leaf), slopes)
        return optimizer.step(cases, state, downhill), values

    _, values = jax.lax.scan(step, (cases, optimizer.direction.init(cases)), length=steps)
    return values[0], jnp.max(values, axis=0)


def _gaussian(key: Key[Array, ""], rows: int, columns: int) -> Float[Array, "rows columns"]:
    """Rows of length about 1; a flat draw compiles faster."""
    return jr.normal(key, (rows * columns,)).reshape(rows, columns) / jnp.sqrt(columns)


def _moved(key: Key[Array, ""], weights):
    """The weights plus Gaussian noise, by a step between 1e-2 and 1."""
    leaves, structure = jax.tree.flatten(weights)
    step = 10.0 ** jr.uniform(stream(key, "step"), minval=-2.0, maxval=0.0)
    noise = (jr.normal(stream(key, f"leaf {i}"), (leaf.size,)).reshape(leaf.shape) for i, leaf in enumerate(leaves))
    return jax.tree.unflatten(structure, [leaf + step * one for leaf, one in zip(leaves, noise, strict=True)])


def _norm(x: Float[Array, "*rows d"]) -> Float[Array, "*rows"]:
    return jnp.sqrt(jnp.sum(x**2, axis=-1) + 1e-30)  # the root has no slope at 0


def _spectral(matrix: Float[Array, "a b"]) -> Float[Array, ""]:
    return jnp.linalg.norm(matrix, ord=2)
