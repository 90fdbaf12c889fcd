"""Restarts: several runs on one sample, of which one is chosen by a rule that sees no label beyond the sample's.

What fails at long contexts is the run and not the sample: with enough samples some initializations memorize theirs
before they see the relevant bits, and others on the same sample do not. Two runs that learned the function agree on
inputs that nobody labeled; two that memorized disagree. So runs are made two at a time, until two of them agree.

Source: house design; edelman2022, Figure 2, trains once.
Departures: runs end by their training loss, never by a held-out label.
Guarantee: exact; the runs of a stack are those that would train one by one, up to rounding.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from genscope.measure.consensus import agreement, consensus
from genscope.models.bit_classifier import BitClassifier
from genscope.models.bit_classifier_fast import table
from genscope.models.bit_classifier_stack import Stack, member, outputs, outputs_of_indicators, stack
from genscope.random import numbered, stream
from genscope.refusal import Refusal
from genscope.studies._bit_training import DRAWN, padded_examples, predict_bits, settings
from genscope.tasks import AbstractSparseBoolean
from genscope.tasks.uniqueness import UniqueDraw, draw_unique
from genscope.train import Fit, Floor, Together, Validation, Whole, fit, logistic
from genscope.train.padding import padded_size

RUNS = 6  # at most
TOGETHER = 2  # runs that train at once, before all runs so far are compared
RULE = "consensus"  # by which a run is chosen; it and the number of runs were fixed before the study's seeds were drawn
SETTLED = 0.01  # nats of training loss, at which runs end: of 27 that were ever right, one was no longer so there
UNLABELLED = 1000  # fresh inputs on which runs are compared
LOOKED_AT = 250  # of them, for attention
SHAPE = 64  # rows of the smallest padded sample: few shapes to compile, and few rows that count for nothing


class Evidence(NamedTuple):
    """What a rule may see of each run."""

    logits: Float[np.ndarray, "runs inputs"]  # on fresh inputs without labels
    concentration: Float[np.ndarray, " runs"]  # largest share of a head's mean attention on three positions
    loss: Float[np.ndarray, " runs"]  # on the sample, at the end
    area: Float[np.ndarray, " runs"]  # the losses of all steps together
    norm: Float[np.ndarray, " runs"]  # Euclidean, of all weights

    @property
    def answers(self) -> Bool[np.ndarray, "runs inputs"]:
        """On the fresh inputs."""
        return self.logits > 0

    @property
    def agreed(self) -> bool:
        """Whether two runs give the same answer to every fresh input."""
        return bool(agreement(self.answers).max() == 1)


RULES: Mapping[str, Callable[[Evidence], np.ndarray]] = {  # a score for each run; the first of the largest is chosen
    "consensus": lambda seen: consensus(seen.answers, seen.concentration),
    "partner": lambda seen: agreement(seen.answers).max(axis=1),
    "vote": lambda seen: (seen.answers == (2 * seen.answers.sum(axis=0) > len(seen.answers))).mean(axis=1),
    "attention": lambda seen: seen.concentration,
    "confidence": lambda seen: np.abs(seen.logits).mean(axis=1),
    "loss": lambda seen: -seen.loss,
    "slowness": lambda seen: seen.area,
    "norm": lambda seen: -seen.norm,
}


class Restarts(NamedTuple):
    """Runs on one sample."""

    fits: tuple[Fit[Stack], ...]  # one after the other
    drawn: UniqueDraw
    evidence: Evidence
    right: tuple[bool, ...]
    """Whether each run is right on all held-out examples."""

    def run(self, number: int) -> BitClassifier:
        """The classifier of one run."""
        return _member(self.fits[number // TOGETHER].model, number % TOGETHER)


@partial(jax.jit, static_argnums=(2, 3))
def _initial(key: Key[Array, ""], first: Int[Array, ""] | int, context_length: int, preset: str) -> Stack:
    """The runs from `first` on."""
    keys = numbered(key, first + jnp.arange(TOGETHER, dtype="uint32"))
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


def _evidence(fitted: Fit[Stack], x: Bool[Array, "m T"]) -> Evidence:
    losses = np.asarray(fitted.recorded[logistic.name])
    shares, norms = _looked_at(fitted.model, x[:LOOKED_AT])
    logits = _outputs(fitted.model, x)
    return Evidence(*map(np.asarray, (logits, shares, losses[-1], losses.sum(axis=0), norms)))


def _joined(parts: Sequence[Evidence]) -> Evidence:
    return Evidence(*map(np.concatenate, zip(*parts, strict=True)))


def train_restarts(
    task: AbstractSparseBoolean,
    *,
    sample_size: int,
    preset: str,
    init_key: Key[Array, ""],
    data_key: Key[Array, ""],
    runs: int = RUNS,
) -> Restarts:
    """Draw a training set that identifies the support, and fit classifiers to it, full batch, two at a time.

    Two end together when their mean training loss is below `SETTLED`. No more follow once two of all runs agree on
    every unlabeled input, or after `runs` of them. Held-out examples are looked at when all is over.
    """
    chosen = settings(preset)
    if chosen.dropout or chosen.decay or chosen.position_decay:
        raise Refusal(f"restarts got {preset=}: stacks know neither dropout nor decay. Choose tuned or minGPT.")
    drawn = draw_unique(stream(data_key, "training"), task, sample_size, capacity=max(DRAWN, sample_size))
    source = Whole(padded_examples(drawn.batch, padded_size(sample_size, smallest=SHAPE)))
    unlabelled = task.inputs(stream(data_key, "unlabelled"), UNLABELLED)
    fits, seen = [], []
    for first in range(0, runs, TOGETHER):
        fitted = fit(
            _initial(init_key, first, task.context_length, preset),
            source,
            Together(logistic, outputs_of_indicators),
            until=(chosen.steps, Floor(TOGETHER * SETTLED)),
            optimizer=chosen.optimizer,
        )
        fits.append(fitted)
        seen.append(_evidence(fitted, unlabelled))
        if _joined(seen).agreed:
            break
    validation = Validation(task, key=stream(data_key, "validation"), predict=predict_bits)
    right = tuple(validation.perfect(_member(each.model, number)) for each in fits for number in range(TOGETHER))
    return Restarts(tuple(fits), drawn, _joined(seen), right)
