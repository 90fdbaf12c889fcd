"""Strings that it takes to learn a parity, in one pass and by a chain of thought.

Source: lintilhac2026, Section 3 (which has no experiment); the trained network is that of its Section 2.1.
Departures: all. Besides the parity of all bits, which no exchange of positions changes, there is that of a random half.
The chain is trained on right prefixes (teacher forcing), one step of one string per row, all steps alike.
Guarantee: estimate. `samples` is the least size of a ladder with ratio √2 at which a run succeeds, found by galloping:
success is taken to be monotone in the size. A search that reaches the end of the ladder is censored.

A run trains on the first n of a stream of strings and succeeds when it is right on 99 % of 512 fresh strings: on the
answer, or, with a chain, on every step of it. That is the accuracy under the law of the inputs; of few bits many fresh
strings are in the sample, so the accuracy on the others is recorded beside.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, UInt32

from genscope.lab import Group, Line, Median, Plan, Study, grid, within
from genscope.models.bit_transformer import BitTransformer
from genscope.random import stream
from genscope.tasks.parity_chain import ParityChain, prompts
from genscope.train import AbstractObjective, AbstractSource, TrainingState, adamw, fit

SIZES = tuple(round(16 * 2 ** (rung / 2)) for rung in range(19))  # 16 to 8192
START = {"one-pass": 256, "chain": 64}
TARGETS = ("all", "half")
ACCURACY, TEST = 0.99, 512
RATE, DECAY, BATCH = 1e-3, 1e-4, 128
EVERY, STEPS = 50, 6000
LOOK, FITTED = 0.5, 1e-3  # training losses (guessing has 1) below which a run is tested, and at which it ends


class ChainRows(NamedTuple):
    """Examples as the network takes them: bits, the position that is read (None: the last), labels of ±1."""

    bits: Bool[Array, "size positions"]
    read: Int[Array, " size"] | None
    sign: Float[Array, " size"]


class ChainRun(NamedTuple):
    """One training run: whether it succeeded, after how many steps, and how often it was right at its last test."""

    success: bool
    steps: int
    accuracy: float
    unseen: float | None
    diverged: bool


@eqx.filter_jit
def new_model(method: str, context_length: int, *, key: Key[Array, ""]) -> BitTransformer:
    """One pass has T + 1 positions; a chain has 2T with cyclic ids (and one more, which is never seen)."""
    if method == "one-pass":
        return BitTransformer(context_length, key=key)
    ids = tuple(position % context_length for position in range(2 * context_length + 1))
    return BitTransformer(2 * context_length, position_ids=ids, key=key)


def rows(method: str, x: Bool[Array, "size T"], y: Float[Array, "size T"], step: Int[Array, " size"]) -> ChainRows:
    """Strings and their running parities as examples; a chain is asked for one step of each."""
    if method == "one-pass":
        return ChainRows(x, None, 2 * y[:, -1] - 1)
    label = jnp.take_along_axis(y, step[:, None], axis=1)[:, 0]
    return ChainRows(prompts(x, y), x.shape[1] + step, 2 * label - 1)


class Squared(AbstractObjective):
    """Squared error of the output that is read."""

    def losses(self, model, batch):
        """Of each row."""
        return (model.outputs(batch.bits, batch.read) - batch.sign) ** 2


class Strings(AbstractSource):
    """Rows drawn from the first `size` strings of a stream: one program for all sizes."""

    method: str
    x: Bool[Array, "all T"]
    y: Float[Array, "all T"]
    size: UInt32[Array, ""]
    key: Key[Array, ""]

    def batch(self, step):
        """One step of one string per row."""
        words = jr.bits(step, (2 * BATCH,), "uint32")
        chosen, asked = words[:BATCH] % self.size, words[BATCH:] % self.x.shape[1]
        return rows(self.method, self.x[chosen], self.y[chosen], asked.astype("int32"))

    def samples(self, steps):
        """Those of the sample."""
        return int(self.size)


@eqx.filter_jit
def right(model: Any, method: str, x: Bool[Array, "size T"], y: Float[Array, "size T"]) -> Bool[Array, " size"]:
    """Whether each string's answer is right, or every step of its chain after right ones: the chain then is, too."""

    def at(step):
        asked = rows(method, x, y, jnp.full(len(x), step))
        return model.outputs(asked.bits, asked.read) * asked.sign > 0

    return at(0) if method == "one-pass" else jnp.all(jax.lax.map(at, jnp.arange(x.shape[1])), axis=0)


def train(
    key: Key[Array, ""], task: ParityChain, method: str, sample_size: int, *, shuffle_labels: bool = False
) -> ChainRun:
    """Train on one sample; `shuffle_labels` plants a fault: running parities of other strings."""
    x, y = _drawn(task, stream(key, "data"), SIZES[-1])
    test_x, test_y = _drawn(task, stream(key, "test"), TEST)
    if shuffle_labels:
        y = y[::-1]
    accuracy, unseen, success = 0.0, None, False

    def ended(progress: TrainingState) -> bool:
        nonlocal accuracy, unseen, success
        loss = float(np.mean(progress.losses[-10:]))
        if loss < LOOK:
            found = np.asarray(right(progress.model, method, test_x, test_y))
            fresh = ~_among(np.asarray(test_x), np.asarray(x)[:sample_size])
            accuracy, unseen = float(found.mean()), float(found[fresh].mean()) if fresh.any() else None
            success = accuracy >= ACCURACY
        return success or loss < FITTED

    run = fit(
        new_model(method, task.context_length, key=stream(key, "init")),
        Strings(method, x, y, jnp.uint32(sample_size), stream(key, "batches")),
        Squared(),
        until=(STEPS, ended),
        optimizer=adamw(RATE, weight_decay=DECAY),
        every=EVERY,
    )
    if run.diverged:
        return ChainRun(False, run.steps, 0.0, None, True)
    return ChainRun(success, run.steps, accuracy, unseen, False)


@eqx.filter_jit
def _drawn(task: ParityChain, key: Key[Array, ""], size: int) -> tuple[Array, Array]:
    batch = task.sample(key, size)
    return batch.x, batch.y


def _among(strings: Bool[np.ndarray, "size T"], known: Bool[np.ndarray, "other T"]) -> Bool[np.ndarray, " size"]:
    place = 2.0 ** np.arange(strings.shape[1])  # exact to 53 bits
    return np.isin(strings @ place, known @ place)


def least(works: Callable[[int], bool], start: int, last: int) -> int | None:
    """The least rung at which something works that works from some rung on: strides of two, then the rung between.

    >>> least(lambda rung: rung >= 5, start=8, last=18), least(lambda rung: rung >= 5, start=2, last=18)
    (5, 5)
    >>> least(lambda rung: False, start=8, last=18) is None
    True
    """
    rung = start
    if works(rung):
        while rung >= 2 and works(rung - 2):
            rung -= 2
    else:
        rung += 2
        while rung <= last and not works(rung):
            rung += 2
        if rung > last:
            return None
    return rung - 1 if rung >= 1 and works(rung - 1) else rung


def trial(key: Key[Array, ""], *, method: str, target: str, context_length: int) -> dict[str, Any]:
    """Search the least sample from which a run learns; all its runs share strings and initialization."""
    size = context_length if target == "all" else context_length // 2
    task = ParityChain.draw(stream(key, "task"), context_length=context_length, support_size=size)
    runs: dict[int, ChainRun] = {}

    def works(rung: int) -> bool:
        runs[rung] = train(key, task, method, SIZES[rung])
        return runs[rung].success

    found = least(works, SIZES.index(START[method]), len(SIZES) - 1)
    shown = runs[max(runs) if found is None else found]
    return {
        "samples": SIZES[-1] if found is None else SIZES[found],
        "reached": found is not None,
        "steps": shown.steps,
        "accuracy": shown.accuracy,
        "unseen_accuracy": shown.unseen,
        "runs": len(runs),
        "diverged": sum(run.diverged for run in runs.values()),
    }


def _panel(target: str, about: str) -> Line:
    return Line(
        title=f"Parity of {about}",
        answer=(
            f"At T = {{at one-pass/chain}}, one pass needs {{ratio one-pass/chain}} times the strings of a chain for "
            f"the parity of {about}"
        ),
        labels={"context_length": "context length T", "samples": "training strings", "method": "method"},
        where={"target": target},
        x="context_length",
        y=Median("samples", reached="reached"),
        by="method",
        log_x=True,
        log_y=True,
    )


def _points(lengths: list[int], targets: Sequence[str] = TARGETS) -> tuple[dict[str, Any], ...]:
    return grid(context_length=lengths, target=list(targets), method=list(START))


STUDY = Study(
    name="lintilhac2026-chain",
    title="Samples to learn a parity, in one pass and by a chain of thought",
    source="lintilhac2026, Section 3",
    trial=trial,
    trial_cost=15.0,
    points=_points([8, 12, 16]),
    seeds=3,
    budgets={
        "quick": Plan(_points([8, 10], ["half"])),
        "paper": Plan(_points([8, 12, 16, 20, 24]), seeds=8),
    },
    figures=(
        Group(
            title="Samples to learn a parity, in one pass and by a chain of thought",
            caption=(
                "Least number of strings from which a network learns the parity to 99 % accuracy, both axes "
                "logarithmic: the median over runs with its interval, or every run where they are few. Searches that "
                "ended without success count as larger than all others."
            ),
            panels=(_panel("all", "all bits"), _panel("half", "half of the bits")),
        ),
    ),
    paired=frozenset({"method"}),
    batch=1,
    check=within(context_length=(2, 32), method=START, target=TARGETS),
)
