"""Restarts: several runs on one sample, of which one is chosen by a rule that sees no label beyond the sample's.

What fails at long contexts is the run and not the sample: with enough samples some initialisations memorise theirs
before they see the relevant bits, and others on the same sample do not. Two runs that learned the function agree on
inputs that nobody labelled; two that memorised disagree.

Source: house design; edelman2022, Figure 2, trains once.
Departures: runs end by their training loss, never by a held-out label.
Guarantee: exact; the runs of a stack are those that would train one by one, up to rounding.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from genscope.measure.consensus import agreement, consensus
from genscope.models.bit_classifier import BitClassifier
from genscope.models.bit_classifier_fast import table
from genscope.models.bit_classifier_stack import Stack, member, outputs, outputs_of_indicators, stack
from genscope.random import numbered, stream
from genscope.studies._bit_training import DRAWN, FLOOR, padded_examples, predict_bits, settings
from genscope.tasks import AbstractSparseBoolean
from genscope.tasks.uniqueness import UniqueDraw, draw_unique
from genscope.train import Fit, Floor, Together, Validation, Whole, fit, logistic
from genscope.train.padding import padded_size

RUNS = 6
RULE = "consensus"  # by which a run is chosen; it and the number of runs were fixed before the study's seeds were drawn
UNLABELLED = 1000  # fresh inputs on which runs are compared
LOOKED_AT = 250  # of them, for attention
SHAPE = 64  # rows of the smallest padded sample: few shapes to compile, and few rows that count for nothing


class Evidence(NamedTuple):
    """What a rule may see of each run."""

    logits: Float[np.ndarray, "runs inputs"]  # on fresh inputs without labels
    concentration: Float[np.ndarray, " runs"]  # largest share of a head's mean attention on three positions
    losses: Float[np.ndarray, "steps runs"]  # on the sample, in training
    norm: Float[np.ndarray, " runs"]  # Euclidean, of all weights

    @property
    def answers(self) -> Bool[np.ndarray, "runs inputs"]:
        """On the fresh inputs."""
        return self.logits > 0


RULES: Mapping[str, Callable[[Evidence], np.ndarray]] = {  # a score for each run; the first of the largest is chosen
    "consensus": lambda seen: consensus(seen.answers, seen.concentration),
    "partner": lambda seen: agreement(seen.answers).max(axis=1),
    "vote": lambda seen: (seen.answers == (2 * seen.answers.sum(axis=0) > len(seen.answers))).mean(axis=1),
    "attention": lambda seen: seen.concentration,
    "confidence": lambda seen: np.abs(seen.logits).mean(axis=1),
    "loss": lambda seen: -seen.losses[-1],
    "slowness": lambda seen: seen.losses.sum(axis=0),
    "norm": lambda seen: -seen.norm,
}


class Restarts(NamedTuple):
    """Runs on one sample."""

    fit: Fit[Stack]
    drawn: UniqueDraw
    validation: Validation
    learned: tuple[bool, ...]
    """Whether each run was right on all held-out examples at some evaluation."""

    def run(self, number: int) -> BitClassifier:
        """The classifier of one run."""
        return _member(self.fit.model, number)

    def evidence(self, task: AbstractSparseBoolean, key: Key[Array, ""]) -> Evidence:
        """What rules see; `key` draws the inputs."""
        x = task.inputs(key, UNLABELLED)
        losses = self.fit.recorded[logistic.name]
        shares, norms = _looked_at(self.fit.model, x[:LOOKED_AT])
        return Evidence(*(np.asarray(part) for part in (_outputs(self.fit.model, x), shares, losses, norms)))


@partial(jax.jit, static_argnums=(1, 2, 3))
def _initial(key: Key[Array, ""], context_length: int, runs: int, preset: str) -> Stack:
    keys = numbered(key, jnp.arange(runs, dtype="uint32"))
    return stack(context_length, keys, initialisation=settings(preset).initialisation)


_member = jax.jit(member)
_outputs = jax.jit(outputs)


@jax.jit
def _looked_at(models: Stack, x: Bool[Array, "m T"]) -> tuple[Array, Array]:
    """Concentration of attention, and norm, of one run after the other."""

    def look(model: BitClassifier) -> tuple[Array, Array]:
        known = table(model)
        zero, one = jnp.unstack(known.columns()[-1], axis=1)

        def attend(bits: Bool[Array, " T"]) -> Float[Array, "heads T"]:
            scores = jnp.concatenate([jnp.where(bits[None], one, zero), known.cls_scores[:, None]], axis=1)
            return jax.nn.softmax(scores, axis=1)[:, :-1]

        def add(total: Array, bits: Array) -> tuple[Array, None]:
            return total + attend(bits), None

        mean = jax.lax.scan(add, jnp.zeros_like(zero), x)[0] / len(x)
        favourites = jax.lax.top_k(mean, min(3, mean.shape[1]))[0].sum(axis=1)
        squares = sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(model))
        return jnp.max(favourites), jnp.sqrt(squares)

    return jax.lax.map(look, models)


def train_restarts(
    task: AbstractSparseBoolean,
    *,
    sample_size: int,
    preset: str,
    init_key: Key[Array, ""],
    data_key: Key[Array, ""],
    runs: int = RUNS,
) -> Restarts:
    """Draw a training set that identifies the support, and fit `runs` classifiers to it at once, full batch.

    They end together when their mean training loss is below `FLOOR`. Held-out examples are looked at every ten steps
    to say which runs were right at some time; nothing depends on it.
    """
    chosen = settings(preset)
    drawn = draw_unique(stream(data_key, "training"), task, sample_size, capacity=max(DRAWN, sample_size))
    validation = Validation(task, key=stream(data_key, "validation"), predict=predict_bits)
    learned = [False] * runs

    def watch(progress) -> bool:
        for number in range(runs):
            learned[number] = learned[number] or validation.perfect(_member(progress.model, number))
        return False

    fitted = fit(
        _initial(init_key, task.context_length, runs, preset),
        Whole(padded_examples(drawn.batch, padded_size(sample_size, smallest=SHAPE))),
        Together(logistic, outputs_of_indicators),
        until=(chosen.steps, watch, Floor(runs * FLOOR)),
        optimizer=chosen.optimizer,
    )
    return Restarts(fitted, drawn, validation, tuple(learned))
