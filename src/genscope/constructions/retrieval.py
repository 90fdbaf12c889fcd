r"""Retrieval: a network with explicit weights for token regression, what is promised of it, and whether it keeps it.

Guarantee: float64. Every verification has random prompts, in which tokens beyond the promised range are pulled back
onto it, and hostile ones: the token that a head looks for at one end of the range, all others at the other end, for the
tokens whose encodings are hardest to tell from another.
"""

import dataclasses
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from genscope.constructions.verification import ROUNDING, Verification
from genscope.models.mousavi2025 import BidirectionalRNN, TokenTransformer
from genscope.precision import float64
from genscope.refusal import Refusal
from genscope.tasks.token_regression import TokenRegression
from genscope.tasks.two_layer import TwoLayerForm

Prompts = tuple[Float[np.ndarray, "size N d"], Int[np.ndarray, "size N q"]]

_HOSTILE = 16  # prompts per slot of t and sign
_NUMBERS = 2**24  # attention weights or hidden units of a block of prompts
_MOST = 2**27  # weights: 1 GB


@dataclass(frozen=True)
class Retrieval:
    """A network and what is promised of it while no token's norm of some `order` exceeds `token_norm`.

    Order 2 is the Euclidean norm, infinity the largest coordinate. `task` is the task in float64, `link` the read-out's
    form of its link. `norms` bound the weights, by the names of `weights`.
    """

    model: TokenTransformer | BidirectionalRNN
    task: TokenRegression
    link: TwoLayerForm
    token_norm: float
    order: float
    error: float
    norms: Mapping[str, float]
    source: str
    constants: Mapping[str, float]

    def measured_norms(self) -> dict[str, float]:
        """Norms of the weights as they are, by the names of `norms`."""
        if isinstance(self.model, TokenTransformer):
            heads = np.asarray(self.model.w_qk)
            used = heads[:, heads.any(axis=(0, 2))][:, :, heads.any(axis=(0, 1))]  # a small part
            norms = {
                "W_QK": float(np.linalg.norm(heads, axis=(1, 2)).max()),
                "W_QK_spectral": float(np.linalg.norm(used, 2, axis=(1, 2)).max(initial=0.0)),
                "W_QK_21": float(np.linalg.norm(heads, axis=1).sum(axis=1).max()),
                "W": _norm(self.model.readout.weight),
                "b": _norm(self.model.readout.bias),
                "a": _norm(self.model.readout.outer),
            }
        else:
            nets = {"W": self.model.forward, "U": self.model.output}
            norms = {
                f"{name}_{number}": _norm(layer.weight)
                for name, net in nets.items()
                for number, layer in enumerate(net, start=1)
            }
            norms["b_2"] = _norm(self.model.forward[1].bias)
        return norms | {"all": math.hypot(*(_norm(leaf) for leaf in jax.tree.leaves(self.model)))}


def _norm(array: Array | None) -> float:
    return 0.0 if array is None else float(np.linalg.norm(np.asarray(array, float)))


def exact_task(task: TokenRegression) -> TokenRegression:
    """The task in float64; encodings by signs are as exact as their square root."""
    if task.length is not None:
        raise Refusal(
            f"a construction got a task padded to {task.context_length} tokens: its weights are built for the real "
            "tokens only. Give the task from before padding."
        )
    encoding = np.asarray(task.encoding, float)
    if signs(task):
        encoding = np.sign(encoding) / math.sqrt(encoding.shape[1])
    with float64():
        link = jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf, float)), task.link)
        return dataclasses.replace(task, encoding=jnp.asarray(encoding), link=link)


def signs(task: TokenRegression) -> bool:
    r"""Whether every entry of the encodings is $\pm1/\sqrt{d_e}$, to float32."""
    encoding = np.asarray(task.encoding, float)
    return bool(np.allclose(np.abs(encoding) * math.sqrt(encoding.shape[1]), 1.0, rtol=0, atol=1e-6))


def check_range(caller: str, **ranges: float) -> None:
    """Refuse sizes that are not positive, or have squares that no float holds."""
    for name, value in ranges.items():
        if not 1e-100 <= value <= 1e100:
            raise Refusal(f"{caller} got {name}={value}: it must lie between 1e-100 and 1e100. Change it.")


def check_size(caller: str, numbers: int) -> None:
    """Refuse networks that memory does not hold."""
    if numbers > _MOST:
        raise Refusal(
            f"{caller} got a task that needs {numbers} weights: at most {_MOST} are allowed. Choose fewer or shorter "
            "tokens, shorter encodings, or a larger error."
        )


def score_gaps(task: TokenRegression) -> Float[np.ndarray, " N"]:
    r"""$\min_{j\ne i}\langle\omega_i,\omega_i-\omega_j\rangle$; for unit vectors the least is their `encoding_gap`."""
    encoding = np.asarray(task.encoding, float)
    products = encoding @ encoding.T
    gaps = products.diagonal()[:, None] - products
    np.fill_diagonal(gaps, 2.0)
    return gaps.min(axis=1)


def verify_retrieval(built: Retrieval, *, prompts: int = 64, key: Key[Array, ""]) -> Verification:
    """Compare the network with the labels at all positions of random and hostile prompts."""
    if prompts < 1:
        raise Refusal(f"verify_retrieval got {prompts=}: it must draw at least one. Give 1 or more.")
    drawn = [_random_prompts(built, prompts, key), *_hostile_prompts(built)]
    with float64():
        errors, labels = retrieval_errors(built.model, built.task, *map(np.concatenate, zip(*drawn, strict=True)))
    worst = np.abs(errors).max(axis=1)
    rounding = ROUNDING * np.maximum(
        1.0, np.abs(labels).max(axis=1)
    )  # prompt by prompt: hostile ones have large labels
    exact, kept = bool((worst <= rounding).all()), bool((worst <= built.error + rounding).all())
    return Verification(float(worst.max()), len(errors), False, exact, kept)


def retrieval_errors(
    model: TokenTransformer | BidirectionalRNN,
    task: TokenRegression,
    x: Float[np.ndarray, "size N d"],
    t: Int[np.ndarray, "size N q"],
) -> tuple[Float[np.ndarray, "size N"], Float[np.ndarray, "size N"]]:
    """Predictions minus labels, and labels, at every position of every prompt, in the precision of JAX's mode."""
    errors, labels = _errors(model, task, jnp.asarray(x), jnp.asarray(t))
    return np.asarray(errors), np.asarray(labels)


@eqx.filter_jit
def _errors(model, task: TokenRegression, x: Array, t: Array) -> tuple[Array, Array]:
    def one(prompt):
        labels = task.labels(*prompt)
        return model(task.encode(*prompt)) - labels, labels

    n = task.context_length
    widest = max(leaf.shape[0] for leaf in jax.tree.leaves(model))
    block = max(1, _NUMBERS // (n * max(n * task.sparsity, widest)))
    return jax.lax.map(one, (x, t), batch_size=min(block, len(x)))


_raw = eqx.filter_jit(TokenRegression.raw)


def draw_prompts(task: TokenRegression, key: Key[Array, ""], size: int) -> Prompts:
    """Independent prompts in float64."""
    with float64():
        x, t = _raw(task, key, size)
    return np.asarray(x), np.asarray(t)


def _random_prompts(built: Retrieval, size: int, key: Key[Array, ""]) -> Prompts:
    x, t = draw_prompts(built.task, key, size)
    lengths = np.linalg.norm(x, ord=built.order, axis=2, keepdims=True)
    return x * np.minimum(1.0, built.token_norm / lengths), t


def _hostile_prompts(built: Retrieval) -> Iterator[Prompts]:
    """Per slot of t: its token at one end of the range, along the direction that matters most, all others opposite."""
    n, q, d = built.task.context_length, built.task.sparsity, built.task.dim
    looked_for = np.unique([0, n - 1, *np.argsort(score_gaps(built.task))[: _HOSTILE - 2]])
    weights = built.link.weight.reshape(-1, q, d)
    for slot in range(q):
        direction = np.linalg.eigh(weights[:, slot].T @ weights[:, slot])[1][:, -1]
        if built.order == math.inf:
            direction = np.where(direction < 0, -1.0, 1.0)
        x = np.tile(built.token_norm * direction, (len(looked_for), n, 1))
        x[np.arange(len(looked_for)), looked_for] *= -1
        t = np.repeat((looked_for[:, None] + np.arange(q) - slot)[:, None] % n, n, axis=1).astype("int32")
        yield x, t
        yield -x, t
