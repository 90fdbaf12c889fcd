"""What a tester answers: yes, no, or that it cannot tell with its queries; and a sweep of one test over its levels.

Guarantee: with the confidence that is stated and on the condition that `guarantee` names, by a union bound over the
levels of a sweep.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from genscope.refusal import Refusal

CERTAIN = "Certain, rounding aside."
CANNOT_TELL = "Cannot tell with these queries. Allow more."


@dataclass(frozen=True)
class Outcome:
    """The answer to one question; `accepted` is None if the queries do not suffice to tell."""

    accepted: bool | None
    confidence: float
    queries: int
    guarantee: str


@dataclass(frozen=True)
class Finding:
    """What was found, or None if it cannot be told; that the number is not below `at_least` is then certain."""

    value: int | None
    at_least: int
    confidence: float
    queries: int
    guarantee: str


def sweep(test: Callable[[int, float], Outcome], levels: Iterable[int], *, confidence: float) -> Finding:
    """Test the levels in increasing order until one is not rejected; each test gets its share of the confidence."""
    levels = list(levels)
    each = 1 - (1 - confidence) / len(levels)
    queries, at_least = 0, levels[0]
    for level in levels:
        verdict = test(level, each)
        queries += verdict.queries
        if verdict.accepted is not False:
            return Finding(level if verdict.accepted else None, at_least, confidence, queries, verdict.guarantee)
        at_least = level + 1
    return Finding(None, at_least, confidence, queries, f"Above {levels[-1]}, the last level.")


def check_confidence(confidence: float) -> None:
    """Refuse what is no confidence."""
    if not 0 < confidence < 1:
        raise Refusal(f"got {confidence=}: it must lie between 0 and 1. Give, for example, 0.99.")
