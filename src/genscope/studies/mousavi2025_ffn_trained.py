r"""Feedforward networks trained to stationarity on fewer than Nd samples: how much they lose beyond Theorem 9.

A network $p\mapsto f(t,Wx)$ on simple-1STR, $y=\langle u,x_t\rangle$. Where $\nabla_W\hat R+\lambda W=0$ (Definition 8)
the rows of $W$ lie in the span of the sample, so that the mean risk over $u$ is at least $1-\frac n{Nd}$. One sample is
shared by several fresh directions $u$, with a network for each.

Networks: "plain", the paper's two hidden layers on $(x,t)$ with t one-hot; "indexed", $f(t,Wx)=\langle a_t,Wx\rangle$,
a read-out for each t, which can represent the best predictor of the theorem's proof.

Source: mousavi2025, Theorem 9 and Definition 8 (training is ours).
Departures: GELU stands for ReLU, whose regularized stationary points lie on kinks, where there is no gradient; sizes
are small, N = 5, d = 4. All weights are regularized alike.
Guarantee: in 64 bits; risks on fresh prompts have standard errors, all else is exact up to rounding.
"""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Int, Key

from genscope.bounds.token_limits import ffn_lower
from genscope.lab import Line, Mean, Plan, Reference, Study, grid, within
from genscope.precision import float64
from genscope.random import stream
from genscope.refusal import Refusal
from genscope.tasks import Batch
from genscope.train import Regularised, Risk, Stationary, Whole, fit, sgd, squared

TOKENS, DIM = 5, 4
FIRST, SECOND = 32, 16  # units
DIRECTIONS = 4  # u, and networks, for each sample
FRESH = 20_000  # prompts for the risk
RATE, MOMENTUM, STEPS, EVERY = 0.03, 0.9, 20_000, 500
STATIONARY = 1e-5  # length of the gradient of a network
DECAYS = {"plain": (0.15, 0.3), "indexed": (0.2, 0.5)}
SIZES = (5, 10, 15)  # of Nd = 20


class Plain(eqx.Module):
    """Two hidden layers on all tokens and the one-hot index."""

    first: Float[Array, "first inputs"]
    by_index: Float[Array, "N first"]
    bias: Float[Array, " first"]
    second: Float[Array, "second first"]
    second_bias: Float[Array, " second"]
    outer: Float[Array, " second"]

    def outputs(self, x: Float[Array, "size inputs"], t: Int[Array, " size"]) -> Float[Array, " size"]:
        """Predictions for a batch."""
        hidden = jax.nn.gelu(x @ self.first.T + self.by_index[t] + self.bias[None], approximate=False)
        return jax.nn.gelu(hidden @ self.second.T + self.second_bias[None], approximate=False) @ self.outer


class Indexed(eqx.Module):
    """A linear layer on all tokens, and a read-out for each index."""

    first: Float[Array, "first inputs"]
    outer: Float[Array, "N first"]

    def outputs(self, x: Float[Array, "size inputs"], t: Int[Array, " size"]) -> Float[Array, " size"]:
        """Predictions for a batch."""
        return jnp.sum((x @ self.first.T) * self.outer[t], axis=1)


def draw_network(key: Key[Array, ""], network: str) -> Plain | Indexed:
    r"""Weights within $\pm1/\sqrt{\text{fan-in}}$, no biases."""

    def uniform(name: str, shape: tuple[int, ...], inputs: int) -> Float[Array, "..."]:
        return jr.uniform(stream(key, name), shape, minval=-1.0, maxval=1.0) / math.sqrt(inputs)

    size = TOKENS * DIM
    first = uniform("first", (FIRST, size), size)
    if network == "indexed":
        return Indexed(first, uniform("outer", (TOKENS, FIRST), FIRST))
    return Plain(
        first,
        uniform("index", (TOKENS, FIRST), size),
        jnp.zeros(FIRST),
        uniform("second", (SECOND, FIRST), FIRST),
        jnp.zeros(SECOND),
        uniform("outer", (SECOND,), SECOND),
    )


@eqx.filter_jit
def predict(networks: Plain | Indexed, x: dict[str, Array]) -> Float[Array, "size directions"]:
    """Of each network of a stack, for a batch of prompts."""
    return jax.vmap(lambda network: network.outputs(x["x"], x["t"]), out_axes=1)(networks)


def prompts(key: Key[Array, ""], u: Float[Array, "directions d"], size: int, used: int | None = None) -> Batch:
    """Prompts with the labels for each direction; the first `used` count."""
    x = jr.normal(stream(key, "x"), (size, TOKENS, DIM))
    t = jr.randint(stream(key, "t"), (size,), 0, TOKENS)
    y = x[jnp.arange(size), t] @ u.T
    weight = None if used is None else jnp.where(jnp.arange(size) < used, 1.0, 0.0)
    return Batch({"x": x.reshape(size, -1), "t": t}, y, weight)


def trial(key: Key[Array, ""], *, network: str, sample_size: int, decay: float) -> dict[str, Any]:
    """Train a network for each of several directions on one sample; means over the directions."""
    if network not in DECAYS:
        raise Refusal(f"got {network=}: networks are {', '.join(DECAYS)}. Choose one of them.")
    with float64():
        u = jr.normal(stream(key, "u"), (DIRECTIONS, DIM))
        u = u / jnp.linalg.norm(u, axis=1, keepdims=True)
        sample = prompts(stream(key, "sample"), u, TOKENS * DIM, sample_size)  # padded: sizes share a program
        start = jax.vmap(lambda each: draw_network(each, network))(jr.split(stream(key, "init"), DIRECTIONS))
        run = fit(
            start,
            Whole(sample),
            Regularised(Risk(squared, predict), decay / DIRECTIONS),  # losses are means over the directions
            [STEPS, Stationary(STATIONARY / DIRECTIONS)],
            optimizer=sgd(RATE * DIRECTIONS, momentum=MOMENTUM),
            every=EVERY,
        )
        fresh = prompts(stream(key, "fresh"), u, FRESH)
        losses = np.asarray((predict(run.model, fresh.x) - fresh.y) ** 2)
        rows = np.asarray(sample.x["x"][:sample_size])
        first, begun = np.asarray(run.model.first), np.asarray(start.first)
    basis = np.linalg.qr(rows.T)[0]
    outside = np.linalg.norm(first - first @ basis @ basis.T, axis=(1, 2)) / np.linalg.norm(begun, axis=(1, 2))
    risk, bound = float(losses.mean()), _bound(sample_size)
    return {
        "risk": risk,
        "bound": bound,
        "excess": risk - bound,
        "excess_share": (risk - bound) / (1 - bound),
        "training_risk": float(run.recorded["risk"][-1]),
        "outside": float(outside.max()),
        "stationary": run.ended == "stationary",
        "steps": run.steps,
    }


def _bound(size: int) -> float:
    return ffn_lower(samples=size, tokens=TOKENS, dimension=DIM).value


def _points(*networks: str, every_decay: bool) -> tuple[dict[str, Any], ...]:
    return tuple(
        point
        for network in networks
        for point in grid(
            network=[network], decay=DECAYS[network] if every_decay else DECAYS[network][-1:], sample_size=SIZES
        )
    )


STUDY = Study(
    name="mousavi2025-ffn-trained",
    title="Trained feedforward networks against the span of their sample",
    source="mousavi2025, Theorem 9",
    trial=trial,
    trial_cost=1.0,
    points=_points(*DECAYS, every_decay=True),
    seeds=20,
    budgets={"quick": Plan(_points("indexed", every_decay=False), seeds=5)},
    figures=(
        Line(
            title="Risk of trained feedforward networks, and the least that Theorem 9 allows",
            answer=("With {to indexed} samples trained networks have a risk of {last indexed}; predicting 0 has 1"),
            caption=(
                "Mean risk over fresh directions, samples and both decays of networks trained to stationarity with "
                "weight decay, against the number of samples; predicting 0 has risk 1."
            ),
            labels={"sample_size": "samples n", "risk": "risk", "network": "network", "decay": "weight decay"},
            x="sample_size",
            y=Mean("risk"),
            by="network",
            references=(Reference("1 − n/(Nd)", SIZES, [_bound(size) for size in SIZES]),),
        ),
    ),
    check=within(sample_size=(1, TOKENS * DIM - 1), decay=(0.01, 10.0)),
)
