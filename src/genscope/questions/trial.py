"""One trial of a question: draw the function and a sample, train a network on it, and check whether it has learned.

A run is checked every few steps. It succeeds at the first check at which it gets the requested share of 10,000 held-out
examples right, and ends without success once its training loss is below a floor or its steps are used up. With
restarts, each network is trained without any use of held-out labels, and the one that agrees most with another counts.

Source: edelman2022, Section 6 (success at 100 % of held-out examples).
Departures: samples that fit several hypotheses are not drawn again: they are part of what samples cost.
Guarantee: exact; function, initial weights, sample and held-out examples come from separate streams.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from genscope.measure.consensus import consensus
from genscope.questions import user_networks
from genscope.questions.held_out import Accuracy, Error
from genscope.questions.networks import IDEAL, OWN, Network, named
from genscope.questions.question import Question
from genscope.random import biased_bits, derived, stream
from genscope.refusal import Refusal
from genscope.tasks import AbstractTask, Batch, SparseExpression, find_rival
from genscope.tasks.sparse_boolean import AbstractSparseBoolean
from genscope.tasks.uniqueness import Cost, search_cost
from genscope.train import Fit, Floor, Minibatch, Risk, TrainingState, fit, logistic, squared

DRAWN = 512  # examples drawn at once, or a doubling: few compiled shapes
SMALLEST = 128  # rows of a step, or a doubling
MOST_PLACEMENTS, MOST_SECONDS = 2**36, 30  # that a search of the ideal learner may face, and about take
MOST_WORDS = 2**36  # of data that it may read before it fails: several minutes
TYPICAL = 100  # examples without noise, near most thresholds
FRESH = 1000  # unlabeled inputs on which restarts are compared


class Snapshot(NamedTuple):
    """The state of a run at a check; observing it changes nothing."""

    steps: int
    losses: Float[np.ndarray, " steps"]  # since the last check
    model: Any
    learner: Network
    task: AbstractTask
    held_out: Accuracy | Error


Observer = Callable[[Snapshot], None]


def run_trial(
    question: Question,
    key: Key[Array, ""],
    *,
    context_length: int,
    network: str,
    sample_size: int,
    observe: Observer | None = None,
) -> dict[str, Any]:
    """Whether one network learns one function from one sample; `observe` sees a run without restarts."""
    task = question.draw(stream(key, "support"), context_length)
    data_key = stream(key, "data")
    sample = _sample(task, stream(data_key, "training"), sample_size, question.noise)
    if network == IDEAL:
        return _identified(task, sample, sample_size, question.noise)
    learner = network_of(question, network)
    wanted = Accuracy if question.error is None else Error
    held_out = wanted(task, stream(data_key, "validation"), learner.predict, question.error or question.accuracy)
    prepared = Batch(learner.prepare(sample.x), sample.y) if learner.prepare else sample
    keys = [stream(key, "init")] + [derived(stream(key, "init"), number) for number in range(1, question.restarts)]
    train = functools.partial(
        _trained, learner, question, context_length, prepared, sample_size, stream(data_key, "rows")
    )
    if question.restarts > 1:
        runs = [train(init, None) for init in keys]
        chosen = runs[_consensus(learner, [run.model for run in runs], task, stream(data_key, "fresh"))]
        success = held_out.reached(chosen.model)
    else:

        def stop(progress: TrainingState) -> bool:
            if observe is not None:
                observe(Snapshot(progress.steps, progress.losses, progress.model, learner, task, held_out))
            return held_out.reached(progress.model)

        if observe is not None:
            observe(Snapshot(0, np.zeros(0), learner.build(keys[0], context_length), learner, task, held_out))
        chosen = train(keys[0], stop)
        success = chosen.stopped
    return {
        "success": success,
        **held_out.measured(chosen.model, known=success),
        "training_loss": chosen.loss,
        "steps": chosen.steps,
        "diverged": chosen.diverged,
    }


def _trained(
    learner: Network,
    question: Question,
    context_length: int,
    examples: Batch,
    sample_size: int,
    key: Key[Array, ""],
    init: Key[Array, ""],
    stop: Callable[..., bool] | None,
) -> Fit:
    recipe = learner.recipe.override(question.rate, question.steps, question.optimizer)
    rows = min(_doubling(sample_size, SMALLEST), recipe.rows)
    rules = () if stop is None else (stop,)
    floor = recipe.floor if question.error is None else min(recipe.floor, question.error / 10)
    return fit(
        learner.build(init, context_length),
        Minibatch(examples, sample_size, rows=rows, key=key),
        Risk(logistic if question.error is None else squared, learner.train),
        until=(recipe.steps, *rules, Floor(floor)),
        optimizer=recipe.made(),
        every=recipe.every,
    )


def _doubling(size: int, smallest: int) -> int:
    """The smallest of the doublings that is not below the size."""
    while smallest < size:
        smallest *= 2
    return smallest


@functools.partial(jax.jit, static_argnames=("size", "noise"))
def _noisy(task: AbstractTask, key: Key[Array, ""], size: int, noise: float) -> Batch:
    drawn = task.sample(stream(key, "examples"), size)
    if not noise:
        return drawn
    flipped = biased_bits(stream(key, "noise"), (size,), noise)
    return Batch(drawn.x, jnp.where(flipped, 1 - drawn.y, drawn.y))


def _sample(task: AbstractTask, key: Key[Array, ""], size: int, noise: float) -> Batch:
    """At least so many examples, of which training sees the first ones."""
    return _noisy(task, key, _doubling(size, DRAWN), noise)


def _identified(task: AbstractTask, sample: Batch, size: int, noise: float) -> dict[str, Any]:
    """The ideal learner: it takes the placement with the fewest wrong labels, and fails where another has no more."""
    assert isinstance(task, AbstractSparseBoolean)
    x, y = np.asarray(sample.x)[:size], np.asarray(sample.y)[:size]
    errors = int((np.asarray(_clean(task, sample.x))[:size] != y).sum()) if noise else 0
    return {"success": find_rival(task, x, y, errors=errors, limit=MOST_WORDS) is None}


@jax.jit
def _clean(task: AbstractTask, x: Array) -> Array:
    return jax.vmap(task.target)(x)


def ideal_cost(question: Question, context_length: int) -> Cost:
    """The placements that the ideal learner searches, and about the seconds of a trial near the threshold."""
    if question.expression is not None:
        support, table = question.expression.reduced
        task = SparseExpression.at(range(len(support)), table, context_length=context_length, probability=0.5)
    else:
        task = question.draw(jr.key(0), context_length)
    if not isinstance(task, AbstractSparseBoolean):
        raise Refusal(
            f"learn got the network {IDEAL!r} for a {type(task).__name__}: the ideal learner is defined for "
            "sparse Boolean functions only. Leave this network out."
        )
    return search_cost(task, sample_size=math.ceil(TYPICAL / question.label_bits), errors=question.noise > 0)


@functools.partial(jax.jit, static_argnames="predict")
def _decisions(model: Any, x: Array, predict: Callable[..., Array]) -> Bool[Array, " m"]:
    return predict(model, x) > 0


def _consensus(learner: Network, models: Sequence[Any], task: AbstractTask, key: Key[Array, ""]) -> int:
    """The number of the model that agrees with some other one on most of some fresh inputs."""
    x = _noisy(task, key, FRESH, 0.0).x
    votes = np.stack([np.asarray(_decisions(model, x, predict=learner.predict)) for model in models])
    return int(consensus(votes).argmax())


@functools.cache
def network_of(question: Question, name: str) -> Network:
    """The network of a name, or of a label of the user's."""
    own = next((file for file in question.builders if file.label == name), None)
    if own is None:
        return named(name)
    return Network("a network of your own", functools.partial(user_networks.built, own), OWN)


def check_task(question: Question, context_length: int) -> None:
    """Refuse a task of the user's whose examples are not bits with a label 0 or 1, or a number where that is asked."""
    if question.task is None:
        return
    batch = _noisy(question.draw(jr.key(0), context_length), jr.key(1), DRAWN, 0.0)
    labels = np.unique(np.asarray(batch.y))
    bits = bool(np.isin(labels, (0, 1)).all())
    if batch.x.shape != (DRAWN, context_length) or batch.y.shape != (DRAWN,) or not np.isfinite(labels).all():
        raise Refusal(
            f"learn got the task {question.asked}, whose inputs have the shape {batch.x.shape[1:]} and whose labels "
            f"have the shape {batch.y.shape[1:]} and values such as {labels[:3].tolist()}: an example must be "
            f"{context_length} bits with one number. Give a task of that kind, or its own context length."
        )
    if question.error is None and not bits:
        raise Refusal(
            f"learn got the task {question.asked}, whose labels have values such as {labels[:3].tolist()}: accuracy "
            "needs labels 0 and 1. Use --error to say which mean squared error counts as success, or give a task "
            "with labels 0 and 1."
        )


def check_ideal(question: Question, context_length: int) -> None:
    """Refuse the ideal learner where it does not obey the question, or where its search would take too long."""
    asked = {
        "an accuracy below 1": question.accuracy < 1,
        "an error": question.error is not None,
        "restarts": question.restarts > 1,
        "a fixed support": question.fixed_support,
    }
    if any(asked.values()):
        conflicts = " and ".join(name for name, given in asked.items() if given)
        raise Refusal(
            f"learn got the network {IDEAL!r} with {conflicts}: it trains nothing, and searches all "
            "placements for the one that fits the sample best. Leave out this network or these options."
        )
    cost = ideal_cost(question, context_length)
    if cost.placements > MOST_PLACEMENTS or cost.seconds > MOST_SECONDS:
        shorter = question.support_size is None or question.support_size < context_length
        raise Refusal(
            f"learn got the network {IDEAL!r} for {question.asked} with a context of {context_length}: each trial "
            f"would search {cost.placements:,} placements in about {cost.seconds:,.0f} s, and at most 2^36 in about "
            f"{MOST_SECONDS} s are allowed. {'Shorten the context' if shorter else 'Write a function of fewer bits'}, "
            "or leave this network out."
        )


def check_network(question: Question, name: str, context_length: int) -> None:
    """Refuse a network that is not known, or one of the user's whose output is no single number."""
    if name == IDEAL:
        check_ideal(question, context_length)
        return
    network_of(question, name)  # refuses a name that is not known
    for file in question.builders:
        if file.label == name:
            user_networks.check(file, context_length)
