"""Which study a free worker turns to: something shows soon, long studies begin early, and nobody is idle at the end.

A worker stays with its study, whose programs it has compiled. When that has nothing left, one worker takes the cheapest
study that waits and the others the most expensive; once none waits, workers join expensive studies.

Guarantee: every study gets its turn. Results do not depend on the order, only the time does.
"""

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from typing import Generic, Protocol, TypeVar, runtime_checkable

from genscope.lab.plans.selection import Selection

_UNKNOWN = 1.0  # seconds of a trial, where its study does not say
_WORTH_JOINING = 10.0  # seconds; a second worker has to load and compile what the first one has already


def cost(selection: Selection) -> float:
    """About how long a selection takes, in seconds on one core; of a search, if it goes on to its limit."""
    return selection.most * (selection.trial_seconds or _UNKNOWN)


@runtime_checkable  # for the type checker of the tests
class Job(Protocol):
    """A study under way, as far as the order of work is concerned."""

    cost: float

    @property
    def over(self) -> bool:
        """Whether nothing is left to do."""
        ...


AnyJob = TypeVar("AnyJob", bound=Job)


class Schedule(Generic[AnyJob]):
    """The order of work on several studies."""

    def __init__(self, jobs: Sequence[AnyJob]):
        self._waiting = deque(sorted(jobs, key=lambda job: job.cost))
        self._begun: list[AnyJob] = []
        self._cheap: AnyJob | None = None  # the one that was taken for being cheap

    def turn(self, last: AnyJob | None, workers: Counter[AnyJob]) -> Iterator[AnyJob]:
        """What a free worker may turn to, best first; `last` is what it worked on, `workers` counts the others."""
        if last is not None and not last.over:
            yield last
        while self._waiting:
            soon = self._cheap is None or self._cheap.over
            job = self._waiting.popleft() if soon else self._waiting.pop()
            if soon:
                self._cheap = job
            self._begun.append(job)
            yield job
        self._begun = [job for job in self._begun if not job.over]
        for job in sorted(self._begun, key=lambda job: (workers[job], -job.cost)):
            if job is not last and (not workers[job] or job.cost >= _WORTH_JOINING):
                yield job
