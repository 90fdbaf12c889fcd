"""When a run ends: a number of steps, a floor on the training loss, a screened check on examples, or a function.

Source: mousavi2025, Figure 1 and its public code (a check on a test set every so many steps); lintilhac2026, Appendix A
(training ends at a mean squared error of 0.02); edelman2022, Section 6 (at a perfect validation accuracy).
Guarantee: exact; `Below` up to the screen's probability of missing (`train.screen`), which delays the end by one check.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from genscope.refusal import Refusal
from genscope.train._program import program, split
from genscope.train.objective import AbstractObjective, divisor, part
from genscope.train.optimizers import number
from genscope.train.screen import MARGIN, screened
from genscope.train.sources import AbstractSource

SEE_ALL = 1e30  # a margin that no excess overcomes
PATIENCE = 0.5  # of the examples: a check that needs more sees all of them, and makes the next ones short


class TrainingState(NamedTuple):
    """Where a run stands after some steps; what is not asked for is not fetched."""

    steps: int
    trained: PyTree  # of the model; the next steps take these arrays away
    fixed: PyTree
    values: Array  # the losses since the rules were asked last, perhaps still being computed
    source: AbstractSource
    objective: AbstractObjective
    brief: bool
    memory: dict[Any, Any]  # of the rules, in this run

    @property
    def model(self) -> Any:
        """As it is now."""
        return eqx.combine(self.trained, self.fixed)

    @property
    def samples(self) -> int:
        """Drawn so far."""
        return self.source.samples(self.steps)

    @property
    def losses(self) -> np.ndarray:
        """Those of the steps since the rules were asked last, each before its step."""
        return np.asarray(self.values)

    @property
    def loss(self) -> float:
        """The last of them."""
        return float(self.losses[-1])


class Check(NamedTuple):
    """What a rule saw; true if it is met."""

    passed: bool
    mean: float  # loss over all examples, or its estimate at the look that refused
    seen: int  # examples that were evaluated

    def __bool__(self) -> bool:
        return self.passed


Rule = Callable[[TrainingState], Any]  # whether to end the run; its `name`, if it has one, says so in the result


class Floor(NamedTuple):
    """Ends a run whose last training loss is below a value: little gradient is left."""

    value: float
    name = "floor"

    def __call__(self, progress: TrainingState) -> bool:
        """By the last loss."""
        return progress.loss < self.value


class Below(eqx.Module):
    """Ends a run when the mean loss on fixed examples, in random order, is below a threshold.

    Checks see as few of the examples as the screen needs, or all with `exact`. `controls` are known numbers of each
    example that resemble its loss, such as the loss of predicting 0; the losses of the last check that saw everything
    serve as one more.
    """

    threshold: Array = eqx.field(converter=number)
    examples: Any  # a `Batch`, or whatever the objective takes
    controls: Float[Array, "K M"] | Float[np.ndarray, "K M"] | None = None
    chunk: int | None = None  # examples that are evaluated together
    exact: bool = False
    name: ClassVar[str] = "below"

    def __call__(self, progress: TrainingState) -> Check:
        """A check, which knows of the last one in the same run."""
        if id(self) not in progress.memory:
            progress.memory[id(self)] = self.program(progress)
        check, earlier = progress.memory[id(self)]
        passed, mean, seen, earlier = check(progress.trained, earlier)
        progress.memory[id(self)] = check, earlier
        return Check(bool(passed), float(mean), int(seen))

    def program(self, progress: TrainingState, lower: bool = False) -> tuple[Callable[..., Any], Any]:
        """What checks, or is lowered to be compiled, and the losses that no check has seen yet."""
        size = len(jax.tree.leaves(self.examples)[0])
        earlier = np.zeros(size, np.float32 if self.controls is None else self.controls.dtype)
        controls = np.zeros((0, size), earlier.dtype) if self.controls is None else self.controls
        arrays, static = split((progress.fixed, progress.objective, self.examples, controls))
        limits = self.threshold, number(SEE_ALL if self.exact else MARGIN)
        compiled = program(_check, ("static", "chunk"), (), brief=progress.brief)
        how, chunk = compiled.lower if lower else compiled, self.chunk or divisor(size)
        return lambda trained, earlier: how(trained, earlier, arrays, limits, static=static, chunk=chunk), earlier


def _check(trained, earlier, arrays, limits, *, static, chunk) -> Any:
    fixed, objective, examples, controls = static.join(arrays)
    model = eqx.combine(trained, fixed)
    check = screened(
        lambda start: objective.losses(model, part(examples, start, chunk)),
        jnp.concatenate([controls, earlier[None]]),
        chunk=chunk,
        threshold=limits[0],
        margin=limits[1],
        patience=PATIENCE,
    )
    return check.passed, check.mean, check.seen, jnp.where(check.seen == len(earlier), check.losses, earlier)


def stopping(until: int | Rule | Sequence[int | Rule], every: int) -> tuple[int, list[Any]]:
    """The most steps of a run, and the rules that may end it before."""
    given: list[Any] = [until] if isinstance(until, int) or callable(until) else list(until)
    limits = [rule for rule in given if isinstance(rule, int | np.integer)]
    if len(limits) != 1 or limits[0] < 1 or every < 1:
        raise Refusal(
            f"fit got {limits} as numbers of steps, checking every {every}: a run needs exactly one limit, and both "
            "must be at least 1. Give one whole number in `until`, with other rules next to it."
        )
    return int(limits[0]), [rule for rule in given if rule is not limits[0]]
