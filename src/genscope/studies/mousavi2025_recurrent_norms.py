r"""Recurrent networks of least norm on 1STR: those that generalize, too narrow ones, and those that fit a sample.

Networks are as in Proposition 6 and Theorem 7: states add up what each token writes,
$h^\to_{i+1}=\Pi_1(h^\to_i+P_ix_i)$ and likewise backwards, so that they stay in the unit ball. The output at position j
is $\hat y_j=w^\top\sigma(U^\to h^\to_j+U^\leftarrow h^\leftarrow_j+W_yz_j+b_y)$, of $L_y=2$ layers and
$\mathfrak L=\|w\|$-Lipschitz in $Uh$. $P$, U, $W_y$, $b_y$ and w are trained, and all of them count.

Networks: "general", descended from `memory` to the least norm with a risk of 0.1 on fresh prompts, states of N units;
"narrow", the same with N/2; "fit", descended to the least norm with an empirical risk of 0.01 on 4N samples, from
`memory` and from small random weights, of which the lighter counts. Beside "general" stands Lemma 36's network
(`constructions.interpolating_rnn`), which is not trained: how many samples does it fit below the same norm?

Source: mousavi2025, Proposition 6, Theorem 7 and Lemma 36 (training is ours).
Departures: transitions are linear and depend on the position, which the paper's class allows; sizes are small, d = 2;
risks of 0.1 and 0.01 stand for the paper's unknown constants; a least norm is what descent finds, an upper limit.
Guarantee: risks on fresh prompts have standard errors; all else is exact up to rounding, in 32 bits.
"""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Int, Key

from genscope.bounds.recurrent import rnn_norm_lower
from genscope.constructions import interpolating_rnn, squared_interpolation_norm
from genscope.lab import Line, Mean, Plan, Study, grid, within
from genscope.models.mousavi2025 import project
from genscope.precision import float64
from genscope.random import stream
from genscope.refusal import Refusal
from genscope.tasks import AbstractTask
from genscope.train import Fresh, MinimumNorm, Risk, Whole, adam, cosine, fit, squared
from genscope.train.learning_rules import squared_norm

DIM = 2
KINDS = ("general", "narrow", "fit")
RISK, FITTED = 0.1, 0.01  # of networks that generalize; on the sample of those that fit
PER_TOKEN = 4  # samples of a fit, over N
BATCH, FRESH = 128, 20_000  # prompts of a step, and for the risk
RATE, STEPS = 0.16, 125  # the rate is divided by the number of tokens, and the steps are multiplied by it
ALLOWED = 1.1  # times the empirical risk that a fit is asked for
GATE = 3.0  # how far the units of other indices are closed
REPEATS, SAMPLES = 32, 64  # draws of Lemma 36's network, and the most samples that it is asked to fit


class Prompts(AbstractTask):
    r"""1STR, asked at one position: $y=\langle u,x_{t}\rangle$ with tokens x, a position j and its index t.

    Inputs have names here, as `Batch` allows and the types of `AbstractTask` do not say.
    """

    direction: Float[Array, " d"]
    tokens: int = eqx.field(static=True)

    def inputs(self, key: Key[Array, ""], size: int) -> dict[str, Array]:  # pyright: ignore[reportIncompatibleMethodOverride]  # above
        """Normal tokens; position and index are uniform."""
        return {
            "x": jr.normal(stream(key, "x"), (size, self.tokens, DIM)),
            "j": jr.randint(stream(key, "j"), (size,), 0, self.tokens),
            "t": jr.randint(stream(key, "t"), (size,), 0, self.tokens),
        }

    def target(self, x: dict[str, Array]) -> Float[Array, ""]:  # pyright: ignore[reportIncompatibleMethodOverride]  # above
        """The label of one prompt."""
        return x["x"][x["t"]] @ self.direction


class LinearMemory(eqx.Module):
    """What each position writes into the states, and the output net, which reads them, the token, t and 1[t = j]."""

    forward: Float[Array, "N s d"]
    backward: Float[Array, "N s d"]
    states: Float[Array, "m 2*s"]
    token: Float[Array, "m d+N+1"]
    bias: Float[Array, " m"]
    outer: Float[Array, " m"]

    def outputs(
        self, x: Float[Array, "size N d"], j: Int[Array, " size"], t: Int[Array, " size"]
    ) -> Float[Array, " size"]:
        """Predictions at one position of each prompt."""
        own = jnp.take_along_axis(x, j[:, None, None], axis=1)[:, 0]
        asked = [jax.nn.one_hot(t, x.shape[1], dtype=x.dtype), (t == j)[:, None].astype(x.dtype)]
        read = jnp.concatenate(self.memories(x, j), axis=1) @ self.states.T
        token = jnp.concatenate([own, *asked], axis=1) @ self.token.T
        return jax.nn.relu(read + token + self.bias[None]) @ self.outer

    def memories(
        self, x: Float[Array, "size N d"], j: Int[Array, " size"]
    ) -> tuple[Float[Array, "size s"], Float[Array, "size s"]]:
        """The states at position j, of the tokens before it and of those after."""
        positions = jnp.arange(x.shape[1])

        def states(writes: Float[Array, "N s d"], *, reverse: bool) -> Float[Array, "size s"]:
            def step(h, now):
                position, token, write = now
                new = jax.vmap(lambda each: project(each, 1.0))(h + token @ write.T)
                seen = position > j if reverse else position < j
                return jnp.where(seen[:, None], new, h), None

            start = jnp.zeros((len(x), writes.shape[1]), x.dtype)
            return jax.lax.scan(step, start, (positions, x.swapaxes(0, 1), writes), reverse=reverse)[0]

        return states(self.forward, reverse=False), states(self.backward, reverse=True)


def memory(direction: Float[np.ndarray, " d"], tokens: int, width: int, key: Key[Array, ""]) -> LinearMemory:
    r"""The network that keeps $\langle u,x_i\rangle/\sqrt N$ along $e_i$ and reads it by two units for each index.

    $x_t=\sum_k\pm\sigma(\pm\sqrt N(h^\to+h^\leftarrow)_k+M(1[t=k]-1))$, and a further pair for $t=j$. Exact while no
    state is projected and no token exceeds M. States that are too narrow keep random directions in place of the $e_i$.
    """
    units = np.eye(tokens)
    if width < tokens:
        units = np.asarray(jr.normal(key, (tokens, width)), float)
        units /= np.linalg.norm(units, axis=1, keepdims=True)
    pair = np.array([[1.0], [-1.0]])
    writes = np.einsum("nk,d->nkd", units, direction) / math.sqrt(tokens)
    read = np.kron(units, pair) * math.sqrt(tokens)
    states = np.vstack([np.hstack([read, read]), np.zeros((2, 2 * width))])
    token = np.zeros((2 * tokens + 2, DIM + tokens + 1))
    token[: 2 * tokens, DIM:-1] = GATE * np.kron(np.eye(tokens), np.ones((2, 1)))
    token[-2:, :DIM], token[-2:, -1] = pair * direction, GATE
    bias, outer = np.full(len(token), -GATE), np.tile([1.0, -1.0], tokens + 1)
    inner = math.hypot(*(float(np.linalg.norm(part)) for part in (states, token, bias)))
    balance = math.sqrt(inner / float(np.linalg.norm(outer)))
    parts = (writes, writes, states / balance, token / balance, bias / balance, outer * balance)
    return LinearMemory(*(jax.device_put(part.astype(np.float32)) for part in parts))


@eqx.filter_jit
def predict(network: LinearMemory, x: dict[str, Array]) -> Float[Array, " size"]:
    """For a batch of prompts."""
    return network.outputs(x["x"], x["j"], x["t"])


def trial(key: Key[Array, ""], *, context_length: int, network: str) -> dict[str, Any]:
    """One network of a kind, for one draw of u, sample and prompts."""
    if network not in KINDS:
        raise Refusal(f"got {network=}: networks are {', '.join(KINDS)}. Choose one of them.")
    key = stream(key, "revision 2")  # the draws of the first were seen before a rule that is in the history
    u = jr.normal(stream(key, "u"), (DIM,))
    u = u / jnp.linalg.norm(u)
    task, width = Prompts(u, context_length), context_length // 2 if network == "narrow" else context_length
    start = memory(np.asarray(u, float), context_length, width, stream(key, "memory"))
    if network == "fit":
        sample = Whole(task.sample(stream(key, "sample"), PER_TOKEN * context_length))
        runs = [_least_norm(begun, sample, FITTED) for begun in (start, _small(start, stream(key, "small")))]
        found, training_risk = min(runs, key=lambda run: (run[1] > ALLOWED * FITTED, float(squared_norm(run[0]))))
    else:
        found, training_risk = _least_norm(start, Fresh(task, stream(key, "train"), BATCH), RISK)
    test = task.sample(stream(key, "fresh"), FRESH)
    risk = float(np.mean(np.asarray((predict(found, test.x) - test.y) ** 2)))
    norm = float(squared_norm(found))
    outer, read = float(jnp.linalg.norm(found.outer)), np.asarray(found.states, float)
    fitted, error = _lemma_36(key, task, norm) if network == "general" else (None, None)
    return {
        "risk": risk,
        "training_risk": training_risk,
        "squared_norm": norm,
        "spectral": outer * float(np.linalg.norm(read, 2)) * math.sqrt(math.log1p(width)),
        "frobenius": outer * float(np.linalg.norm(read)),
        "bound": rnn_norm_lower(tokens=context_length, risk=risk).value if risk < 1 else 0.0,
        "lemma_samples": fitted,
        "lemma_error": error,
    }


def _least_norm(start: LinearMemory, source: Fresh | Whole, risk: float) -> tuple[LinearMemory, float]:
    """Descended from a start to the least norm with such a risk; and the risk at the last step."""
    rule = MinimumNorm(Risk(squared, predict), risk, 3 * float(squared_norm(start)) + 100)
    tokens = len(start.forward)
    steps = STEPS * tokens
    run = fit(start, source, rule, [steps], optimizer=adam(RATE / tokens, schedule=cosine(steps)), every=steps)
    return run.model, float(run.recorded["risk"][-1])


def _small(like: LinearMemory, key: Key[Array, ""]) -> LinearMemory:
    """Normal weights of deviation 0.1."""
    leaves, tree = jax.tree.flatten(like)
    keys = jr.split(key, len(leaves))
    return jax.tree.unflatten(tree, [0.1 * jr.normal(k, leaf.shape) for k, leaf in zip(keys, leaves, strict=True)])


def _lemma_36(key: Key[Array, ""], task: Prompts, norm: float) -> tuple[float, float]:
    """Samples that Lemma 36's network fits below a squared norm, a mean over draws; and the error of one network."""
    counts = []
    for number in range(REPEATS):
        x, j, y, v = _drawn(jr.fold_in(key, number), task)
        own = x[np.arange(SAMPLES), j]
        sizes = range(1, SAMPLES + 1)
        heavy = (n for n in sizes if squared_interpolation_norm(own[:n], y[:n], direction=v) >= norm)
        counts.append(next(heavy, SAMPLES + 1) - 1)
    x, j, y, v = _drawn(jr.fold_in(key, REPEATS - 1), task)
    network = interpolating_rnn(x, j, y, direction=v)
    with float64():
        outputs = np.asarray(jax.vmap(network)(jnp.asarray(x)))
    return float(np.mean(counts)), float(np.abs(outputs[np.arange(SAMPLES), j] - y).max())


def _drawn(key: Key[Array, ""], task: Prompts) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Tokens, positions and labels of a sample, and a direction on the sphere."""
    sample = task.sample(stream(key, "lemma"), SAMPLES)
    v = np.asarray(jr.normal(stream(key, "direction"), (DIM,)), float)
    x, y = np.asarray(sample.x["x"], float), np.asarray(sample.y, float)
    return x, np.asarray(sample.x["j"]), y, v / np.linalg.norm(v)


def _points(*lengths: int) -> tuple[dict[str, Any], ...]:
    return tuple(grid(network=KINDS, context_length=lengths))


STUDY = Study(
    name="mousavi2025-recurrent-norms",
    title="Recurrent networks that generalize are heavy; lighter ones fit a sample",
    source="mousavi2025, Proposition 6 and Theorem 7",
    trial=trial,
    revision=2,
    trial_cost=5.0,
    points=_points(4, 8, 16),
    seeds=10,
    budgets={"quick": Plan(_points(4, 8), seeds=2), "paper": Plan(_points(4, 8, 16, 32), seeds=10)},
    figures=(
        Line(
            title="Squared norms of recurrent networks that generalize, and of those that fit 4N samples",
            caption=(
                "Least squared norm of all weights that descent finds, against the number of tokens: networks with "
                "risk 0.1 on 1STR, networks with too narrow states for that, and networks with an empirical risk of "
                "0.01 on 4N samples."
            ),
            source="mousavi2025, Theorem 7",
            labels={
                "context_length": "tokens N",
                "squared_norm": "squared norm",
                "network": "network",
                "general": "generalizes (risk 0.1)",
                "narrow": "half as wide (risk above 0.1)",
                "fit": "fits 4N samples (risk above 1)",
            },
            x="context_length",
            y=Mean("squared_norm"),
            by="network",
            log_x=True,
            log_y=True,
        ),
    ),
    check=within(context_length=(2, 256)),
)
