"""Study, Plan and Trial: what is to be measured, at which points, and how often.

Guarantee: exact; a trial's identity is a hash of what determines its result (study, revision, point, seed).
"""

import dataclasses
import functools
import hashlib
import itertools
import json
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from genscope.lab.plans.figure import Figure
from genscope.lab.statistics.threshold import Search
from genscope.refusal import Refusal

Scalar = bool | int | float | str
Point = Mapping[str, Scalar]

BUDGETS = ("quick", "standard", "paper")


def grid(**axes: Sequence[Scalar]) -> tuple[dict[str, Scalar], ...]:
    """All combinations of the given axes, the last axis varying fastest.

    >>> grid(context_length=[10, 20], preset=["tuned"])
    ({'context_length': 10, 'preset': 'tuned'}, {'context_length': 20, 'preset': 'tuned'})
    """
    return tuple(dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values()))


def within(**allowed: tuple[float, float | None] | Collection[str]) -> Callable[[Point], None]:
    """A check of points: each named axis lies between two numbers, or above one (None), or is one of some words.

    >>> within(context_length=(3, None))({"context_length": 2})
    Traceback (most recent call last):
    genscope.refusal.Refusal: context_length is at least 3. Choose such a value.
    >>> within(form=("order", "explicit"))({"form": "exact"})
    Traceback (most recent call last):
    genscope.refusal.Refusal: form must be one of order, explicit. Choose one of them.
    """
    return functools.partial(_check_values, allowed)


def _check_values(allowed: Mapping[str, Any], point: Point) -> None:
    for axis, values in allowed.items():
        if axis not in point:
            continue
        if all(isinstance(value, str) for value in values):
            if point[axis] not in values:
                raise Refusal(f"{axis} must be one of {', '.join(values)}. Choose one of them.")
            continue
        least, most = values
        if not least <= float(point[axis]) <= (math.inf if most is None else most):
            words = f"is at least {least}" if most is None else f"lies between {least} and {most}"
            raise Refusal(f"{axis} {words}. Choose such a value.")


_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def canonical(value: object) -> str:
    """The one JSON text of a value: sorted names, no spaces; equal values give equal texts."""
    return _ENCODER.encode(value)


@dataclass(frozen=True)
class Trial:
    """One repetition of one point of one study."""

    study: str
    revision: int
    point: Point
    seed: int

    @functools.cached_property
    def id(self) -> str:
        """128 bits of SHA-256 over study, revision, point and seed."""
        text = canonical([self.study, self.revision, dict(self.point), self.seed])
        return hashlib.sha256(text.encode()).hexdigest()[:32]


def trials(study: str, revision: int, point: Point, seeds: Iterable[int]) -> list[Trial]:
    """The trials of a point with the given seeds, their identities known."""
    listed = [Trial(study, revision, point, seed) for seed in seeds]
    # All but the seed is hashed once: a run may list a million trials before it begins.
    common = hashlib.sha256(f"{canonical([study, revision, dict(point)])[:-1]},".encode())
    for trial in listed:
        whole = common.copy()
        whole.update(f"{trial.seed}]".encode())
        trial.__dict__["id"] = whole.hexdigest()[:32]
    return listed


@dataclass(frozen=True)
class Plan:
    """Points and repetitions of one budget; with `search`, the searched axis is not in the points."""

    points: Sequence[Point]
    seeds: int = 1
    search: Search | None = None
    trial_cost: float | None = None  # seconds, where they are not those of the study


@dataclass(frozen=True)
class Study:
    """A family of trials, the budgets at which it is run, and the figures it is read by.

    `trial(key, **point)` is pure and returns named scalars and arrays. With `stacked`, the runner jits it, stacks
    it over the seeds of a batch and traces every numeric axis that is not in `static`; without, it is called once
    per seed as plain Python and jits what it likes inside. `check(point)` raises ValueError for a point that no trial
    can have, so that it is refused before anything runs; under a search it sees points without the searched axis.
    `trial_cost` is about the seconds that a standard trial takes on one core, if known: it orders the work, and
    previews go by it until trials are stored. `labels` are words for columns that all figures share.
    Other processes find a study by its name: one that they are to compute is a variable of a module.
    """

    name: str
    title: str
    source: str
    trial: Callable[..., dict[str, Any]]
    points: Sequence[Point]
    seeds: int = 1
    search: Search | None = None
    budgets: Mapping[str, Plan] = field(default_factory=dict)
    figures: Sequence[Figure] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    paired: frozenset[str] = frozenset()
    static: frozenset[str] = frozenset()
    stacked: bool = False
    batch: int = 4
    revision: int = 1
    check: Callable[[Point], None] | None = None
    trial_cost: float | None = None

    def __post_init__(self) -> None:
        figures = tuple(figure.of_study(self.source, self.labels) for figure in self.figures)
        object.__setattr__(self, "figures", figures)

    def plan(self, budget: str) -> Plan:
        """The plan of a budget; `standard` is the study's own points and seeds."""
        if budget not in BUDGETS:
            raise Refusal(f"{self.name} got {budget=}: budgets are {', '.join(BUDGETS)}. Choose one of them.")
        return self.budgets.get(budget, Plan(self.points, self.seeds, self.search))

    def trial_seconds(self, budget: str) -> float | None:
        """About how long a trial of a budget takes on one core, if the study knows."""
        given = self.plan(budget).trial_cost
        return self.trial_cost if given is None else given

    def axes(self) -> tuple[str, ...]:
        """Names of the axes of all plans, in order of appearance; the searched axis last."""
        plans = [self.plan(budget) for budget in BUDGETS]
        names = [name for plan in plans for point in plan.points for name in point]
        return tuple(dict.fromkeys([*names, *(plan.search.axis for plan in plans if plan.search)]))

    def trials(self, point: Point, seeds: Iterable[int]) -> list[Trial]:
        """The trials of a point with the given seeds, their identities known."""
        return trials(self.name, self.revision, point, seeds)

    def replace(self, **changes: Any) -> "Study":
        """The study with some fields changed."""
        return dataclasses.replace(self, **changes)
