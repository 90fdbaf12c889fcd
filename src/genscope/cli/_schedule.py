"""Which study runs when: something soon, the long ones from the start, and nobody idle at the end.

Source: product.md, Section 1.
Departures: None.
Guarantee: every study comes out once, finished or failed; results do not depend on the order, only the time does.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator

from genscope import lab
from genscope.cli._crew import Crew, Failure
from genscope.lab import Store, Study
from genscope.lab.runner import Progress, Summary

_UNKNOWN = 1.0  # seconds of a trial, where its study does not say
_WORTH_HELPING = 10.0  # seconds; a second process has to load and compile what the first one has already

Outcome = Summary | Failure
Follow = Callable[[Progress], None]


def cost(study: Study, budget: str) -> float:
    """About how long a study takes, in seconds on one core; of a search, if it goes on to its limit."""
    plan = study.plan(budget)
    trials = plan.seeds if plan.search is None else plan.search.trials
    return len(plan.points) * trials * (study.trial_seconds(budget) or _UNKNOWN)


def one_by_one(studies: Iterable[Study], *, store: Store, budget: str, follow: Follow) -> Iterator[Outcome]:
    """Run studies in this process, the cheap ones first."""
    for study in sorted(studies, key=lambda study: cost(study, budget)):
        yield lab.run(study, store=store, budget=budget, progress=follow)


def side_by_side(studies: Iterable[Study], *, crew: Crew, budget: str, follow: Follow) -> Iterator[Outcome]:
    """Run studies on a crew: one process takes the cheapest that waits, the others the dearest.

    Once none waits, whoever has nothing to do helps with a dear one on which the fewest work.
    """
    waiting = deque(sorted(studies, key=lambda study: cost(study, budget)))
    known = {study.name: study for study in waiting}
    over: set[str] = set()
    fatal: set[str] = set()  # somebody failed on these, and nobody else is sent
    done: Counter[str] = Counter()
    light: str | None = None
    while len(over) < len(known):
        while crew.idle:
            if waiting:
                study = waiting.popleft() if light is None else waiting.pop()
                light = light or study.name
            else:
                crowd = Counter(name for name in crew.studies if name not in over | fatal)
                dear = [known[name] for name in crowd if cost(known[name], budget) >= _WORTH_HELPING]
                if not dear:
                    break
                study = min(dear, key=lambda study: (crowd[study.name], -cost(study, budget)))
            crew.give(study)
        for message in crew.messages():
            if isinstance(message, Failure):
                if message.store_lost is not None:
                    raise OSError(message.store_lost)
                fatal.add(message.study)
            if message.study in over:
                continue
            if isinstance(message, Progress):
                if message.done >= done[message.study]:  # of two that share a study, the one that knows more
                    done[message.study] = message.done
                    follow(message)
            elif isinstance(message, Summary) or message.study not in crew.studies:  # else another may finish it
                over.add(message.study)
                light = None if message.study == light else light
                yield message
