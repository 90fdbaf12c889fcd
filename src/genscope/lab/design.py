"""Which trials a run consists of: points and seeds chosen by the user, rounds of a search, fixed batches.

Source: None (house design).
Departures: None.
Guarantee: exact; the trials of a round follow from the stored results of the rounds before it and from nothing else.
"""

import itertools
import math
import os
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from genscope.lab import threshold, values
from genscope.lab.study import BUDGETS, Point, Scalar, Study, Trial, canonical
from genscope.lab.threshold import Search

MOST_TRIALS = 1_000_000  # of one run: all of them are listed in memory

Where = Mapping[str, Sequence[Scalar]]
Results = Callable[[Sequence[Trial]], Mapping[str, Mapping[str, Any] | None]]


@dataclass(frozen=True)
class Selection:
    """Points to run, with their seeds or with a search along one more axis."""

    points: tuple[Point, ...]
    seeds: range
    search: Search | None

    def contains(self, trial: Trial) -> bool:
        """Whether a trial belongs to the selection, as far as is known before a search has run."""
        point = dict(trial.point)
        if self.search is not None:
            point.pop(self.search.axis, None)
        elif trial.seed not in self.seeds:
            return False
        return canonical(point) in {canonical(dict(other)) for other in self.points}


def select(
    study: Study, budget: str, where: Where | None = None, seeds: int | None = None, seed: int | None = None
) -> Selection:
    """What a run of the study at a budget consists of.

    `where` gives values to axes: points of the plan that have them, and for a value that no point has, the plan's
    points with that value put in. Values for the searched axis turn the search off. `seeds` is the number of
    repetitions, `seed` the one repetition to run.
    """
    plan = study.plan(budget)
    where = dict(where or {})
    values.check_names(study.axes())
    _check_seeds(study, seeds, seed)
    for axis, chosen in where.items():
        _check_axis(study, axis, chosen)
    points: list[Point] = [dict(point) for point in plan.points]
    search = plan.search
    if search is not None and search.axis in where:
        sizes = where.pop(search.axis)
        points = [{**point, search.axis: size} for point in points for size in sizes]
        search = None
    for axis, chosen in where.items():
        points = [point for value in chosen for point in _with_value(points, axis, value)]
    if search is not None and (seeds is not None or seed is not None):
        raise ValueError(
            f"{study.name} got {'seeds' if seed is None else 'seed'}={seeds if seed is None else seed}, but at budget "
            f"{budget} it searches along {search.axis} and chooses the repetitions itself. "
            f"Fix {search.axis} to some values as well, or leave the seeds out."
        )
    unique = {canonical(dict(point)): point for point in points}
    if not unique:
        raise ValueError(
            f"{study.name} has no points at budget {budget} with {', '.join(where) or 'the given axes'}. "
            f"Choose another budget ({', '.join(BUDGETS)}) or leave these axes out."
        )
    chosen_seeds = range(plan.seeds if seeds is None else seeds) if seed is None else range(seed, seed + 1)
    _check_points(study, unique.values(), len(chosen_seeds))
    return Selection(tuple(unique.values()), chosen_seeds, search)


def _check_points(study: Study, points: Collection[Point], seeds: int) -> None:
    if len(points) * seeds > MOST_TRIALS:
        raise ValueError(
            f"{study.name} got {len(points)} points with {seeds} repetitions: one run has at most {MOST_TRIALS:,} "
            "trials. Split it, or ask for fewer."
        )
    if study.check is None:
        return
    for point in points:
        try:
            study.check(point)
        except ValueError as error:
            raise ValueError(f"{study.name} got {describe(point)}, which is impossible: {error}") from error


def _with_value(points: Sequence[Point], axis: str, value: Scalar) -> Iterable[Point]:
    found = [point for point in points if axis in point and same(point[axis], value)]
    return found or [{**point, axis: value} for point in points if axis in point]


def same(left: Scalar, right: Scalar) -> bool:
    """Equal as trials see it: 1, 1.0 and True are three values."""
    return type(left) is type(right) and left == right


def _check_seeds(study: Study, seeds: int | None, seed: int | None) -> None:
    if seeds is not None and seed is not None:
        raise ValueError(
            f"{study.name} got {seeds=} and {seed=}: the first is a number of repetitions, the second one of them. "
            "Give one of the two."
        )
    if seeds is not None and seeds < 1:
        raise ValueError(f"{study.name} got {seeds=}: a point has at least one repetition. Give 1 or more.")
    if seeds is not None and seeds > MOST_TRIALS:
        raise ValueError(f"{study.name} got {seeds=}: one run has at most {MOST_TRIALS:,} trials. Ask for fewer.")
    if seed is not None and not 0 <= seed < 2**31:
        raise ValueError(f"{study.name} got {seed=}: seeds lie between 0 and 2^31 - 1. Give one of these.")


def _known(study: Study, axis: str) -> list[Scalar]:
    plans = [study.plan(budget) for budget in BUDGETS]
    listed = [point[axis] for plan in plans for point in plan.points if axis in point]
    return list({canonical(value): value for value in listed}.values())


def _check_axis(study: Study, axis: str, chosen: Sequence[Scalar]) -> None:
    if axis not in study.axes():
        raise ValueError(
            f"{study.name} got a value for {axis!r}: its axes are {', '.join(study.axes()) or 'none'}. "
            "Choose one of these."
        )
    if not chosen:
        raise ValueError(f"{study.name} got no value for {axis}: name at least one, or leave the axis out.")
    known, kinds = _known(study, axis), _kinds(study, axis)
    numeric = kinds <= {int, float}
    for value in chosen:
        if not _storable(value):
            raise ValueError(f"{study.name} got {axis}={value}: numbers are finite and fit in 64 bits. Choose another.")
        if not any(same(value, other) for other in known) and not (numeric and type(value) in kinds):
            names = ", ".join(map(str, known))
            free = f"any numbers of type {' or '.join(sorted(kind.__name__ for kind in kinds))}"
            allowed = f"{names}, or {free}" if numeric and names else names or free
            raise ValueError(f"{study.name} got {axis}={value!r}: its values are {allowed}. Choose among these.")


def _storable(value: Scalar) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, str) or -(2**63) <= value < 2**63


def _kinds(study: Study, axis: str) -> set[type]:
    return {type(value) for value in _known(study, axis)} or {int}  # an axis that is only searched has sizes


def parse_where(study: Study, texts: Iterable[str]) -> dict[str, list[Scalar]]:
    """Values of axes from texts such as `context_length=100,200`, in the type that the axis has in the study."""
    where: dict[str, list[Scalar]] = {}
    for text in texts:
        axis, equals, listed = text.partition("=")
        axis = axis.strip()
        if not equals:
            raise ValueError(f"{study.name} got {text!r}: an axis is fixed by axis=value,value. Write it so.")
        if axis in study.axes():
            words = [word.strip() for word in listed.split(",")]
            chosen = [_value(study, axis, word, _kinds(study, axis)) for word in words if word]
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
    raise ValueError(f"{study.name} got {axis}={word}: the values of {axis} are {wanted}. Write one.")


def rounds(
    study: Study, selection: Selection, point: Point, results: Results
) -> Generator[list[Trial], None, str | None]:
    """The trials of a point, round by round; ask for the next round when the last one is stored.

    Without a search there is one round. A search takes the next unused seeds at each size that it asks for; trials
    that failed are neither successes nor failures, but their seeds are used. The value of the generator says why a
    search ended early, or is None.
    """
    search = selection.search
    if search is None:
        yield study.trials(point, selection.seeds)
        return None
    counts: dict[int, tuple[int, int]] = {}
    used: Counter[int] = Counter()
    while asked := threshold.next_round(search, counts):
        trials = {
            size: study.trials({**point, search.axis: size}, range(used[size], used[size] + number))
            for size, number in sorted(asked.items())
        }
        listed = [trial for group in trials.values() for trial in group]
        yield listed
        found = results(listed)
        outcomes = {size: [_outcome(study, search, found[trial.id]) for trial in trials[size]] for size in trials}
        used.update(asked)
        for size, seen in outcomes.items():
            successes, before = counts.get(size, (0, 0))
            counts[size] = successes + seen.count(True), before + len(seen) - seen.count(None)
        failed = sum(seen.count(None) for seen in outcomes.values())
        if 2 * failed > len(listed):
            return f"{failed} of {len(listed)} trials of a round failed at {describe(point)}: the search stopped there"
    return None


def _outcome(study: Study, search: Search, found: Mapping[str, Any] | None) -> bool | None:
    if found is None:
        return None
    outcome = found.get(search.outcome)
    if not isinstance(outcome, bool):
        raise ValueError(
            f"{study.name} searches by the value {search.outcome!r}, but a trial returned {search.outcome}={outcome!r} "
            f"among {', '.join(found)}: a search needs a Boolean. Let the trial return one under this name."
        )
    return outcome


def batches(trials: Iterable[Trial], size: int) -> list[list[Trial]]:
    """Fixed groups: the trials of one point whose seeds have the same quotient by `size`."""
    listed = list(trials)
    points = {id(trial.point): trial.point for trial in listed}  # its trials share a point, whose text takes a while
    texts = {name: canonical(dict(point)) for name, point in points.items()}
    grouped = itertools.groupby(listed, key=lambda trial: (texts[id(trial.point)], trial.seed // size))
    return [list(group) for _, group in grouped]


def default_threads() -> int:
    """One worker per core that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def describe(point: Point) -> str:
    """A point in a few words."""
    return " ".join(f"{axis}={value}" for axis, value in point.items()) or "the only point"
