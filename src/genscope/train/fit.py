"""One loop for all training: a model, a source of examples, an objective, an optimizer, and rules that end the run.

Divergence is data: a loss that is not finite ends a run and is kept.

Guarantee: exact; padded examples (weight 0) and the grouping of steps change nothing but rounding.
"""

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import PyTree

from genscope.refusal import Refusal
from genscope.train._program import program, split
from genscope.train.objective import AbstractObjective, as_objective
from genscope.train.optimizers import Optimizer
from genscope.train.sources import AbstractSource, Chunks
from genscope.train.stops import Check, Rule, TrainingState, stopping

Model = TypeVar("Model")
FEW = 2**15  # parameters: they and their averages fit the second cache


@dataclasses.dataclass(frozen=True)
class Fit(Generic[Model]):
    """A finished training run."""

    model: Model
    steps: int  # taken, including those of the last chunk
    samples: int  # drawn from the law of the data: a lower limit of what it takes, unless `reached`
    losses: np.ndarray  # before each step
    recorded: dict[str, np.ndarray]  # what the objective records at each step
    checks: tuple[Check, ...]  # of the rule `Below`
    ended: str  # by "steps", "diverged", or the name of a rule: "floor", "below", "stop"

    @property
    def loss(self) -> float:
        """The last loss that was computed."""
        return float(self.losses[-1])

    @property
    def diverged(self) -> bool:
        """A loss was not finite; training ended there."""
        return self.ended == "diverged"

    @property
    def reached(self) -> bool:
        """A check found the mean loss below its threshold."""
        return self.ended == "below"

    @property
    def settled(self) -> bool:
        """A training loss fell below the floor."""
        return self.ended == "floor"

    @property
    def stopped(self) -> bool:
        """A rule of the caller's asked for the end."""
        return self.ended == "stop"


def fit(
    model: Model,
    source: AbstractSource,
    objective: AbstractObjective | Callable[..., Any],
    until: int | Rule | Sequence[int | Rule],
    *,
    optimizer: Optimizer,
    every: int = 10,
    trainable: PyTree = eqx.is_inexact_array,
    brief: bool = False,
) -> Fit[Model]:
    """Train a module, or any tree that can be called, until a rule ends the run.

    `until` is a number of steps, or rules of which one is such a number; they are asked after every `every` steps, in
    order. Of the model, floating point arrays are trained, or those that `trainable`, an Equinox filter, picks. Numbers
    of the optimizer are traced: a sweep over rates, labels or weights compiles once per shape. With `brief`, for runs
    that end soon, compiling takes half the time.
    """
    run = _Run(model, source, objective, optimizer, trainable, brief)
    limit, rules = stopping(until, every)
    trained, state = run.begin()()
    losses, recorded, checks, memory = [], [], [], {}
    taken, ended = 0, "steps"
    while taken < limit and ended == "steps":
        count, steps = run.steps(trained, state, taken, min(every, limit - taken))
        trained, state, values, extras = steps()
        taken += count
        progress = run.progress(taken, trained, values, memory)
        for rule in rules:
            answer = rule(progress)
            if isinstance(answer, Check):
                checks.append(answer)
            if answer:
                ended = getattr(rule, "name", "stop")
                break
        losses.append(progress.losses)
        recorded.append(extras)
        if not np.isfinite(losses[-1]).all():
            ended = "diverged"
    return Fit(
        eqx.combine(trained, run.fixed),
        taken,
        source.samples(taken),
        np.concatenate(losses),
        jax.tree.map(lambda *parts: np.concatenate(parts), *recorded),
        tuple(checks),
        ended,
    )


def compilations(
    model: Any, source: AbstractSource, objective: Any, until: Any, *, every: int = 10, **options: Any
) -> tuple[Callable[[], Any], ...]:
    """What compiles the programs of `fit` for such arrays, to be called side by side; the arrays may hold anything.

    The steps, which take longest to compile, are traced here: threads that trace wait for each other.
    """
    run = _Run(model, source, objective, **options)
    limit, rules = stopping(until, every)
    begin, progress = _lowered(run.begin()), run.progress(0, run.trained, None, {})
    trained, state = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), begin.out_info)
    steps = _lowered(run.steps(trained, state, 0, min(every, limit))[1])
    checks = [rule.program(progress, lower=True) for rule in rules if hasattr(rule, "program")]
    later = [lambda check=check, earlier=earlier: check(run.trained, earlier).compile() for check, earlier in checks]
    return steps.compile, begin.compile, *later


def _lowered(call: Any) -> Any:
    return call.func.lower(*call.args, **call.keywords)


class _Run:
    """What the steps do not change, as their program takes it."""

    def __init__(self, model, source, objective, optimizer, trainable=eqx.is_inexact_array, brief=False):
        self.trained, self.fixed = eqx.partition(model, trainable)
        if not jax.tree.leaves(self.trained):
            raise Refusal(
                f"fit got a {type(model).__name__} without parameters: weights must be floating-point arrays. Give a "
                "model with weights."
            )
        if not isinstance(source, AbstractSource) or not isinstance(optimizer, Optimizer):
            raise Refusal(
                f"fit got a {type(source).__name__} as source and a {type(optimizer).__name__} as optimizer: the "
                "source must be one such as train.Whole(batch), and the optimizer one such as train.adam(1e-3). Give "
                "these."
            )
        self.source, self.objective, self.optimizer, self.brief = source, as_objective(objective), optimizer, brief
        steady = dataclasses.replace(optimizer, schedule=None)  # what the steps need of it are factors
        self.arrays, self.static = split((self.fixed, source, self.objective, steady))
        self._steady = split(steady)

    def begin(self) -> partial:
        """A copy of the parameters, since chunks give their buffers away, and the first state of the optimizer."""
        arrays, static = self._steady
        return partial(program(_begin, ("static",), (), brief=True), self.trained, arrays, static=static)

    def steps(self, trained: PyTree, state: PyTree, first: int, most: int) -> tuple[int, partial]:
        """How many come next, and their program; it takes the buffers of parameters and state."""
        count, window = self.source.window(first, most)
        steps = program(_advance, ("static", "count"), ("trained", "state"), brief=self.brief)
        arguments = trained, state, self.arrays, window, self.optimizer.factors(first, count)
        return count, partial(steps, *arguments, static=self.static, count=count)

    def progress(self, taken: int, trained: PyTree, values: Any, memory: dict[Any, Any]) -> TrainingState:
        """What rules are asked about."""
        return TrainingState(taken, trained, self.fixed, values, self.source, self.objective, self.brief, memory)


def _begin(trained, arrays, *, static) -> Any:
    optimizer = static.join(arrays)
    return jax.tree.map(jnp.copy, trained), optimizer.direction.init(_together(trained, optimizer)[0])


def _advance(trained, state, arrays, window, factors, *, static, count) -> Any:
    fixed, source, objective, optimizer = static.join(arrays)
    together, apart = _together(trained, optimizer)
    keys, rows = source.steps(window, count)

    def step(carry, now):
        together, state = carry
        key, row, factor = now

        def descended(trained: PyTree, batch: Any) -> Any:
            return objective(eqx.combine(trained, fixed), batch, key)

        (value, recorded), gradient = _gradient(descended, apart(together), source, row)
        return optimizer.step(together, state, _together(gradient, optimizer)[0], factor), (value, recorded)

    (together, state), (values, recorded) = jax.lax.scan(step, (together, state), (keys, rows, factors), length=count)
    return apart(together), state, values, recorded


def _gradient(descended: Callable[..., Any], trained: PyTree, source: AbstractSource, row: Any) -> Any:
    """Value, what is recorded beside it, and gradient of a step; of chunks, added up."""
    gradient = jax.value_and_grad(descended, has_aux=True)
    if not isinstance(source, Chunks):
        return gradient(trained, source.batch(row))

    def add(chunk: Any, sums: PyTree) -> PyTree:
        found, share = gradient(trained, source.batch(chunk)), source.shares[chunk]
        return jax.tree.map(lambda total, part: total + share.astype(part.dtype) * part, sums, found)

    shapes = jax.eval_shape(gradient, trained, source.batch(0))
    return jax.lax.fori_loop(0, source.count, add, jax.tree.map(lambda like: jnp.zeros(like.shape, like.dtype), shapes))


def _together(trained: PyTree, optimizer: Optimizer) -> tuple[PyTree, Callable[[PyTree], PyTree]]:
    """Few parameters as one vector, with the way back: an update is then three loops, not three for each array.

    Of many parameters the copies would cost more than the loops. Parameters with rates of their own stay apart, and so
    do those whose gradients are cut, which takes a loop over each array anyway.
    """
    if not optimizer.is_elementwise or sum(leaf.size for leaf in jax.tree.leaves(trained)) > FEW:
        return trained, lambda trained: trained
    return ravel_pytree(trained)
