"""Selection: what a run computes, and what everyone who looks at its results reads.

Guarantee: exact; two selections of the same trials at the same budget have the same identity, however they were asked
for, and the command of a selection selects it again.
"""

import dataclasses
import functools
import hashlib
import math
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from genscope.lab import values
from genscope.lab.plans.spelling import words, written
from genscope.lab.plans.study import BUDGETS, Point, Scalar, Study, Trial, canonical, trials
from genscope.lab.statistics.threshold import Search
from genscope.refusal import Refusal

MOST_TRIALS = 1_000_000  # of one run: all of them are listed in memory

Where = Mapping[str, Sequence[Scalar | None]]


@dataclass(frozen=True)
class Request:
    """How a selection was asked for; `study` is a name, or `my_file.py:study`.

    `mixed` are its axes that have texts and other values: where these look alike, texts are quoted.
    """

    study: str
    budget: str = "standard"
    where: Where = field(default_factory=dict)
    seeds: int | None = None
    seed: int | None = None
    mixed: Sequence[str] = field(default_factory=list)

    @property
    def options(self) -> list[tuple[str, str]]:
        """The options of `genscope run`, by name."""
        chosen = [
            ("where", f"{axis}={written(listed, mixed=axis in self.mixed)}") for axis, listed in self.where.items()
        ]
        given = [("seeds", self.seeds), ("seed", self.seed)]
        return [("budget", self.budget), *chosen, *((name, str(value)) for name, value in given if value is not None)]

    @property
    def command(self) -> str:
        """What computes it again."""
        options = (part for name, text in self.options for part in (f"--{name}", text))
        return shlex.join(["genscope", "run", self.study, *options])


@dataclass(frozen=True)
class Selection:
    """Points of a study with their seeds or with a search along one more axis; without a request, all that is stored.

    `grid` is the search that a grid of sizes stands in for: thresholds are estimated as it would.
    """

    study: str
    revision: int
    points: tuple[Point, ...] = ()
    seeds: range = range(0)
    search: Search | None = None
    grid: Search | None = None
    request: Request | None = None
    trial_seconds: float | None = field(default=None, compare=False)
    """About how long one of its trials takes on one core, if the study knows."""

    @functools.cached_property
    def id(self) -> str:
        """128 bits of SHA-256 over what determines the trials, and the budget."""
        facts = self.facts()
        facts["points"] = sorted(map(canonical, facts["points"]))
        told = canonical([self.study, self.revision, self.budget, *(facts[name] for name in _DETERMINING)])
        return hashlib.sha256(told.encode()).hexdigest()[:32]

    @property
    def budget(self) -> str | None:
        """The budget that was asked for."""
        return None if self.request is None else self.request.budget

    @property
    def title(self) -> str:
        """What was asked for, in a few words."""
        if self.request is None:
            return "all stored trials"
        return " ".join(text if name == "where" else f"{name} {text}" for name, text in self.request.options)

    @property
    def command(self) -> str:
        """What computes it again; nothing where nobody knows what was asked for."""
        return "" if self.request is None else self.request.command

    @property
    def most(self) -> int:
        """How many trials it has at most."""
        return len(self.points) * (len(self.seeds) if self.search is None else self.search.trials)

    def command_of(self, point: Mapping[str, Any], seed: int) -> str:
        """What computes one trial of the study again."""
        asked = self.request or Request(self.study)
        axes = dict.fromkeys([*point, *asked.where, *(axis for each in self.points for axis in each)])
        where = {axis: [point.get(axis)] for axis in axes}
        return dataclasses.replace(asked, where=where, seeds=None, seed=seed).command

    def trials(self, point: Point, seeds: Iterable[int]) -> list[Trial]:
        """Trials of the study."""
        return trials(self.study, self.revision, point, seeds)

    def contains(self, trial: Trial) -> bool:
        """Whether a trial belongs to the selection, as far as is known before a search has run."""
        point = dict(trial.point)
        if self.search is not None:
            point.pop(self.search.axis, None)
        elif trial.seed not in self.seeds:
            return False
        return canonical(point) in self._points_as_texts

    @functools.cached_property
    def _points_as_texts(self) -> frozenset[str]:
        return frozenset(canonical(dict(point)) for point in self.points)

    def facts(self) -> dict[str, Any]:
        """The selection as plain JSON; study and revision stand beside it."""
        return {
            "points": [dict(point) for point in self.points],
            "seeds": None if self.search else [self.seeds.start, self.seeds.stop],
            "search": self.search and dataclasses.asdict(self.search),
            "grid": self.grid and dataclasses.asdict(self.grid),
            "request": self.request and _told(self.request),
            "trial_seconds": self.trial_seconds,
        }

    @staticmethod
    def from_facts(study: str, revision: int, facts: Mapping[str, Any]) -> "Selection":
        """The selection of its facts."""
        return Selection(
            study,
            revision,
            tuple(facts["points"]),
            range(*(facts["seeds"] or (0,))),
            search_from(facts["search"]),
            search_from(facts["grid"]),
            facts["request"] and Request(**facts["request"]),
            facts["trial_seconds"],
        )


def _told(request: Request) -> dict[str, Any]:
    facts = dataclasses.asdict(request)
    return facts if request.mixed else {name: value for name, value in facts.items() if name != "mixed"}


_DETERMINING = ("points", "seeds", "search", "grid")


def search_from(settings: Mapping[str, Any] | None) -> Search | None:
    """The search of stored settings; those that this version does not know are left out."""
    known = {each.name for each in dataclasses.fields(Search)}
    return Search(**{name: value for name, value in settings.items() if name in known}) if settings else None


def select(
    study: Study,
    budget: str = "standard",
    where: Where | None = None,
    seeds: int | None = None,
    seed: int | None = None,
    *,
    reference: str | None = None,
) -> Selection:
    """What a run of the study at a budget consists of.

    `where` gives values to axes: points of the plan that have them, and for a value that no point has, the plan's
    points with that value put in; None asks for the points without the axis. Values for the searched axis turn the
    search off. `seeds` is the number of repetitions, `seed` the one repetition to run. `reference` is how the command
    line finds the study, if not by name.
    """
    plan = study.plan(budget)
    asked = {axis: list(chosen) for axis, chosen in (where or {}).items()}
    mixed = [axis for axis in study.axes() if str in (kinds := _kinds(study, axis)) and len(kinds) > 1]
    request = Request(reference or study.name, budget, asked, seeds, seed, mixed)
    where = dict(request.where)
    values.check_names(study.axes())
    _check_seeds(study, seeds, seed)
    for axis, chosen in where.items():
        _check_axis(study, axis, chosen)
    points: list[Point] = [dict(point) for point in plan.points]
    search = plan.search
    if search is not None and search.axis in where:
        sizes = [size for size in where.pop(search.axis) if size is not None]
        points = [{**point, search.axis: size} for point in points for size in sizes]
        search = None
    for axis, chosen in where.items():
        points = [point for value in chosen for point in _with_value(points, axis, value)]
    if search is not None and (seeds is not None or seed is not None):
        raise Refusal(
            f"{study.name} got {'seeds' if seed is None else 'seed'}={seeds if seed is None else seed}, but at budget "
            f"{budget} it searches along {search.axis} and chooses the repetitions itself. "
            f"Fix {search.axis} to some values as well, or leave the seeds out."
        )
    unique = {canonical(dict(point)): point for point in points}
    if not unique:
        raise Refusal(
            f"{study.name} has no points at budget {budget} with {', '.join(where) or 'the given axes'}. "
            f"Choose another budget ({', '.join(BUDGETS)}) or leave these axes out."
        )
    chosen_seeds = range(plan.seeds if seeds is None else seeds) if seed is None else range(seed, seed + 1)
    _check_points(study, unique.values(), len(chosen_seeds))
    return Selection(
        study.name,
        study.revision,
        tuple(unique.values()),
        chosen_seeds if search is None else range(0),
        search,
        plan.search if search is None else None,
        request,
        study.trial_seconds(budget),
    )


def _check_points(study: Study, points: Collection[Point], seeds: int) -> None:
    if len(points) * seeds > MOST_TRIALS:
        raise Refusal(
            f"{study.name} got {len(points)} points with {seeds} repetitions: one run may have at most "
            f"{MOST_TRIALS:,} trials. Split it, or ask for fewer."
        )
    if study.check is None:
        return
    for point in points:
        try:
            study.check(point)
        except ValueError as error:
            raise Refusal(f"{study.name} got {describe(point)}, which is impossible: {error}") from error


def _with_value(points: Sequence[Point], axis: str, value: Scalar | None) -> Iterable[Point]:
    if value is None:
        return [point for point in points if axis not in point]
    found = [point for point in points if axis in point and same(point[axis], value)]
    return found or [{**point, axis: value} for point in points if axis in point]


def same(left: Scalar, right: Scalar) -> bool:
    """Equal as trials see it: 1, 1.0 and True are three values."""
    return type(left) is type(right) and left == right


def _check_seeds(study: Study, seeds: int | None, seed: int | None) -> None:
    if seeds is not None and seed is not None:
        raise Refusal(
            f"{study.name} got seeds={seeds!r} and seed={seed!r}: seeds is the number of repetitions, seed picks "
            "one of them. Give only one of the two."
        )
    if seeds is not None and seeds < 1:
        raise Refusal(f"{study.name} got seeds={seeds!r}: each point needs at least one repetition. Give 1 or more.")
    if seeds is not None and seeds > MOST_TRIALS:
        raise Refusal(
            f"{study.name} got seeds={seeds!r}: one run may have at most {MOST_TRIALS:,} trials. Ask for fewer."
        )
    if seed is not None and not 0 <= seed < 2**31:
        raise Refusal(f"{study.name} got seed={seed!r}: a seed must be between 0 and 2^31 - 1. Change it.")


def _known(study: Study, axis: str) -> list[Scalar]:
    return list({canonical(value): value for value in _listed(study, axis)}.values())


def _listed(study: Study, axis: str) -> Iterable[Scalar]:
    plans = [study.plan(budget) for budget in BUDGETS]
    return (point[axis] for plan in plans for point in plan.points if axis in point)


def _is_ragged(study: Study, axis: str) -> bool:
    """Whether some points do not have the axis; one that is searched has its values from the search."""
    plans = [study.plan(budget) for budget in BUDGETS]
    searched = {plan.search.axis for plan in plans if plan.search is not None}
    return axis not in searched and any(axis not in point for plan in plans for point in plan.points)


def _check_axis(study: Study, axis: str, chosen: Sequence[Scalar | None]) -> None:
    if axis not in study.axes():
        raise Refusal(
            f"{study.name} got a value for {axis!r}: its axes are {', '.join(study.axes()) or 'none'}. "
            "Choose one of these."
        )
    if not chosen:
        raise Refusal(f"{study.name} got no value for {axis}: name at least one, or leave the axis out.")
    known, kinds = _known(study, axis), _kinds(study, axis)
    numeric = kinds <= {int, float}
    for value in chosen:
        if value is None:
            if not _is_ragged(study, axis):
                raise Refusal(f"{study.name} got {axis}=None: every point has a value for {axis}. Name one.")
            continue
        if not _storable(value):
            raise Refusal(
                f"{study.name} got {axis}={value}: numbers must be finite and fit in 64 bits. Choose another."
            )
        if not any(same(value, other) for other in known) and not (numeric and type(value) in kinds):
            names = ", ".join(map(str, known))
            free = f"any numbers of type {' or '.join(sorted(kind.__name__ for kind in kinds))}"
            allowed = f"{names}, or {free}" if numeric and names else names or free
            raise Refusal(f"{study.name} got {axis}={value!r}: its values are {allowed}. Choose from these.")


def _storable(value: Scalar) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, str) or -(2**63) <= value < 2**63


def _kinds(study: Study, axis: str) -> set[type]:
    return {type(value) for value in _listed(study, axis)} or {int}  # an axis that is only searched has sizes


def describe(point: Point) -> str:
    """A point in a few words."""
    return " ".join(f"{axis}={value}" for axis, value in point.items()) or "the only point"


def parse_where(study: Study, texts: Iterable[str]) -> dict[str, list[Scalar | None]]:
    """Values of axes from texts such as `context_length=100,200`, in the type that the axis has in the study.

    A quoted value is a text; no value, where some points do not have the axis, is None.
    """
    where: dict[str, list[Scalar | None]] = {}
    for text in texts:
        axis, equals, listed = text.partition("=")
        axis = axis.strip()
        if not equals:
            raise Refusal(f"{study.name} got {text!r}: write axis=value,value, such as context_length=100,200.")
        if axis in study.axes():
            kinds, ragged = _kinds(study, axis), _is_ragged(study, axis)
            chosen = [
                text if quoted else _value(study, axis, text, kinds) if text else None
                for text, quoted in words(listed)
                if text or quoted or ragged
            ]
        else:
            chosen = []
        _check_axis(study, axis, chosen)
        where.setdefault(axis, []).extend(chosen)
    return where


def _value(study: Study, axis: str, word: str, kinds: set[type]) -> Scalar:
    if bool in kinds and word.lower() in ("true", "false"):
        return word.lower() == "true"
    for kind in (int, float):
        if kind in kinds:
            try:
                return kind(word)
            except ValueError:
                continue
    if str in kinds:
        return word
    wanted = "true or false" if kinds == {bool} else "whole numbers" if float not in kinds else "numbers"
    raise Refusal(f"{study.name} got {axis}={word}: the values of {axis} must be {wanted}. Correct it.")
