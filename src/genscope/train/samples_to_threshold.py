"""Samples to threshold: fresh batches until the loss on a fixed test set is below a threshold, looked at now and then.

Source: mousavi2025, Section 5 and Appendix E (AdamW on fresh batches of 64, a check every so many steps).
Departures: None; checks stay where they are, and one that cannot succeed ends early (`train.screen`).
Guarantee: exact up to the screen's probability of missing, which delays a detection by one check; `exact=True` has
none. The batch of a step depends on the key and the step's number alone.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Key

from genscope.compilation import FASTER
from genscope.random import numbered
from genscope.tasks import AbstractTask, Batch
from genscope.train.fit import updated
from genscope.train.screen import MARGIN, Check, screened

Losses = Callable[[Any, Any, Batch], Float[Array, " size"]]  # of a model and a task on each example of a batch
FEW = 2**15  # parameters: they and their averages fit the second cache
SEE_ALL = 1e30  # a margin that no excess overcomes
PATIENCE = 0.5  # of the test set: a check that needs more sees all of it, and makes the next ones short


class TestSet(NamedTuple):
    """Fixed examples in random order, and what a screen knows of all of them."""

    __test__ = False  # not for pytest

    examples: Batch
    controls: Float[Array, "K M"]  # free ones, such as the losses of predicting 0
    earlier: Float[Array, " M"]  # the losses of the last check that saw everything; at first 0


class SamplesToThreshold(NamedTuple):
    """A finished run; `samples` is where it ended, a lower limit if the threshold was not `reached`."""

    model: eqx.Module
    samples: int
    reached: bool
    diverged: bool  # a training loss was not finite; training ended there
    risk: float  # at the last check
    checks: int
    full_checks: int  # of these, saw the whole test set
    examples_seen: int  # by all checks together
    losses: np.ndarray  # on each step's batch, before the step


def optimizer(weight_decay: Float[Array, ""] | float) -> optax.GradientTransformation:
    """AdamW of rate 1 with decay on all parameters; rate and decay may be traced, so that sweeps share a program."""
    return optax.chain(
        optax.scale_by_adam(),
        optax.add_decayed_weights(weight_decay),
        optax.scale(-1.0),  # pyright: ignore[reportArgumentType]
    )


def train_steps(model, state, steps: Any, draw, losses: Losses, task, rate: Array, weight_decay: Array):
    """One AdamW step for each row of `steps`, on the batch `draw(row)`; the losses come before each step."""
    trained, fixed = eqx.partition(model, eqx.is_inexact_array)
    trained, restore = _together(trained)

    def step(carry, row):
        trained, state = carry
        batch = draw(row)
        value, gradient = jax.value_and_grad(
            lambda trained: jnp.mean(losses(eqx.combine(restore(trained), fixed), task, batch))
        )(trained)
        return updated(trained, state, gradient, optimizer=optimizer(weight_decay), rate=rate), value

    (trained, state), values = jax.lax.scan(step, (trained, state), steps)
    return eqx.combine(restore(trained), fixed), state, values


def _together(trained: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Few parameters as one vector, with the way back: AdamW is then three loops, not three for each array.

    Of many parameters the copies would cost more than the loops.
    """
    if sum(leaf.size for leaf in jax.tree.leaves(trained)) > FEW:
        return trained, lambda trained: trained
    return ravel_pytree(trained)


def initial_state(model: eqx.Module) -> Any:
    """The optimizer's state before the first step."""
    return optimizer(0.0).init(_together(eqx.filter(model, eqx.is_inexact_array))[0])


@functools.partial(jax.jit, compiler_options=FASTER)
def begin(model: Any) -> Any:
    """A copy of a model, since the chunks of a run give their buffers away, and the optimizer's first state."""
    return jax.tree.map(jnp.copy, model), initial_state(model)


def _train(model, state, task, key, first, rate, weight_decay, *, losses, batch_size, every) -> Any:
    def labelled(x):  # with its inputs, as `task.sample`
        return Batch(x, jax.vmap(task.target)(x))

    # All inputs before the first step: inside of it XLA would draw them again for each of their readers.
    keys = numbered(key, first + jax.lax.iota("uint32", every))
    inputs = jax.lax.map(lambda key: task.inputs(key, batch_size), keys)
    return train_steps(model, state, inputs, labelled, losses, task, rate, weight_decay)


def _check(model, task, test, threshold, margin, *, losses, chunk) -> tuple[Check, Array]:
    def chunk_losses(start):
        part = jax.tree.map(lambda rows: jax.lax.dynamic_slice_in_dim(rows, start, chunk), test.examples)
        return losses(model, task, part)

    limits = {"chunk": chunk, "threshold": threshold, "margin": margin, "patience": PATIENCE}
    check = screened(chunk_losses, jnp.concatenate([test.controls, test.earlier[None]]), **limits)
    return check, jnp.where(check.seen == len(test.earlier), check.losses, test.earlier)


class _Programs(NamedTuple):
    """Two, to compile them side by side. By jax.jit: eqx.filter_jit takes the host a third of a millisecond more."""

    train: Callable[..., Any]
    check: Callable[..., Any]


@functools.cache
def _programs(*, brief: bool) -> _Programs:
    options = FASTER if brief else {}
    sizes = ("losses", "batch_size", "every")
    return _Programs(
        jax.jit(_train, static_argnames=sizes, donate_argnames=("model", "state"), compiler_options=options),
        jax.jit(_check, static_argnames=("losses", "chunk"), compiler_options=options),
    )


class Settings(NamedTuple):
    """How a run trains and when it looks; rate, decay and threshold are traced, so that sweeps share programs."""

    losses: Losses
    threshold: float
    rate: float
    weight_decay: float
    batch_size: int = 64
    every: int = 10  # steps before each check
    chunk: int = 125  # test examples that are evaluated together
    exact: bool = False  # every check evaluates the whole test set
    brief: bool = False  # runs end soon: compile in half the time, and step as fast as comes of it

    def steps(self, model, state, task, key, first: int) -> "_Call":
        """Those from the `first` to the next check: model, state, losses. They take the buffers of the former two."""
        sizes = {"losses": self.losses, "batch_size": self.batch_size, "every": self.every}
        numbers = np.uint32(first), *_traced(self.rate, self.weight_decay)
        return _Call(_programs(brief=self.brief).train, (model, state, task, key, *numbers), sizes)

    def look(self, model, task, test: TestSet) -> "_Call":
        """A check, and the losses of the last one that saw everything."""
        limits = _traced(self.threshold, SEE_ALL if self.exact else MARGIN)
        sizes = {"losses": self.losses, "chunk": self.chunk}
        return _Call(_programs(brief=self.brief).check, (model, task, test, *limits), sizes)


class _Call(NamedTuple):
    """A compiled function with its arguments."""

    program: Any
    arguments: tuple[Any, ...]
    sizes: dict[str, Any]

    def run(self) -> Any:
        return self.program(*self.arguments, **self.sizes)

    def lower(self) -> Any:
        return self.program.lower(*self.arguments, **self.sizes)


@functools.cache
def _traced(*numbers: float) -> tuple[Array, ...]:
    return tuple(jax.device_put(np.float32(number)) for number in numbers)


def compilations(
    model: eqx.Module, task: AbstractTask, test: TestSet, *, key: Key[Array, ""], **settings: Any
) -> tuple[Callable[[], Any], ...]:
    """What compiles the programs of runs with such arrays, to be called side by side; the arrays may hold anything.

    The steps, which take longest to compile, are traced here: threads that trace wait for each other.
    """
    course = Settings(**settings)
    empty, state = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), begin.eval_shape(model))
    steps = course.steps(empty, state, task, key, 0).lower()
    return steps.compile, lambda: course.look(model, task, test).lower().compile(), begin.lower(model).compile


def samples_to_threshold(
    model: eqx.Module,
    task: AbstractTask,
    test: TestSet,
    *,
    key: Key[Array, ""],
    budget: int = 1_000_000,
    **settings: Any,
) -> SamplesToThreshold:
    """Train until a check passes, at most on `budget` samples, by the `Settings` given by name.

    The test set may follow another law than the task.
    """
    course = Settings(**settings)
    batch_size, every = course.batch_size, course.every
    if min(batch_size, every, course.chunk) < 1 or budget < batch_size * every:
        raise ValueError(
            f"samples_to_threshold got {batch_size=}, {every=}, {budget=}: the budget is in samples, and the first "
            f"check comes after {batch_size * every} of them. Raise the budget, or check more often."
        )
    model, state = begin(model)
    history: list[np.ndarray] = []
    samples, seen, checks, full = 0, 0, 0, 0
    risk, reached, diverged = float("nan"), False, False
    while samples + batch_size * every <= budget and not (reached or diverged):
        model, state, values = course.steps(model, state, task, key, samples // batch_size).run()
        check, earlier = course.look(model, task, test).run()
        test = test._replace(earlier=earlier)
        history.append(np.asarray(values))
        samples += batch_size * every
        checks, seen = checks + 1, seen + int(check.seen)
        full += int(check.seen) == len(test.earlier)
        risk, reached = float(check.mean), bool(check.passed)
        diverged = not np.isfinite(history[-1]).all()
    return SamplesToThreshold(
        model, samples, reached and not diverged, diverged, risk, checks, full, seen, np.concatenate(history)
    )
