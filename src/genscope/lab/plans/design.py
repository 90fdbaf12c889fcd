"""Which trials a selection consists of: rounds of a search, fixed batches.

Guarantee: exact; the trials of a round follow from the stored results of the rounds before it and from nothing else.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any

from genscope.lab.plans.selection import Selection, describe
from genscope.lab.plans.study import Point, Trial, canonical
from genscope.lab.statistics import estimation
from genscope.lab.statistics.threshold import Search
from genscope.refusal import Refusal

Results = Callable[[Sequence[Trial]], Mapping[str, Mapping[str, Any] | None]]


def rounds(selection: Selection, point: Point, results: Results) -> Generator[list[Trial], None, str | None]:
    """The trials of a point, round by round; ask for the next round when the last one is stored.

    Without a search there is one round. A search takes the next unused seeds at each size that it asks for; trials
    that failed are neither successes nor failures, but their seeds are used. The value of the generator says why a
    search ended early, or is None.
    """
    search = selection.search
    if search is None:
        yield selection.trials(point, selection.seeds)
        return None
    counts: dict[int, tuple[int, int]] = {}
    used: Counter[int] = Counter()
    while asked := estimation.next_round(search, counts):
        trials = {
            size: selection.trials({**point, search.axis: size}, range(used[size], used[size] + number))
            for size, number in sorted(asked.items())
        }
        listed = [trial for group in trials.values() for trial in group]
        yield listed
        found = results(listed)
        outcomes = {
            size: [_outcome(selection.study, search, found[trial.id]) for trial in trials[size]] for size in trials
        }
        used.update(asked)
        for size, seen in outcomes.items():
            successes, before = counts.get(size, (0, 0))
            counts[size] = successes + seen.count(True), before + len(seen) - seen.count(None)
        failed = sum(seen.count(None) for seen in outcomes.values())
        if 2 * failed > len(listed):
            return f"{failed} of {len(listed)} trials of a round failed at {describe(point)}: the search stopped there"
    return None


def _outcome(study: str, search: Search, found: Mapping[str, Any] | None) -> bool | None:
    if found is None:
        return None
    outcome = found.get(search.outcome)
    if not isinstance(outcome, bool):
        raise Refusal(
            f"{study} searches by the value {search.outcome!r}, but a trial returned {search.outcome}={outcome!r} "
            f"among {', '.join(found)}: a search needs a Boolean. Return one under this name."
        )
    return outcome


def batches(trials: Iterable[Trial], size: int) -> list[list[Trial]]:
    """Fixed groups: the trials of one point whose seeds have the same quotient by `size`."""
    listed = list(trials)
    points = {id(trial.point): trial.point for trial in listed}  # its trials share a point, whose text takes a while
    texts = {name: canonical(dict(point)) for name, point in points.items()}
    grouped = itertools.groupby(listed, key=lambda trial: (texts[id(trial.point)], trial.seed // size))
    return [list(group) for _, group in grouped]
