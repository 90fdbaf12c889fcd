"""Claims: a published statement, the studies that bear on it, a rule fixed in advance, and the verdict.

Source: None (house design).
Departures: None.
Guarantee: a verdict follows from stored trials of the named studies at one budget by the rule, and from nothing else.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from genscope.claims._remarks import REMARKS
from genscope.lab import Study
from genscope.lab.reading import Reading

Decision = Literal["holds", "fails", "undecided"]


@dataclass(frozen=True)
class Part:
    """One question inside a claim, with its answer and the numbers it rests on."""

    statement: str
    decision: Decision
    numbers: Mapping[str, Any]


@dataclass(frozen=True)
class Claim:
    """What a paper says, and how we decide whether it holds.

    `studies` names the studies of each budget, and `decide` gets their readings in that order.
    """

    id: str
    statement: str
    source: str
    rule: str
    studies: Mapping[str, Sequence[Study]]
    decide: Callable[[Sequence[Reading]], Sequence[Part]]
    departures: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def verdict(self, readings: Sequence[Reading], *, budget: str, seconds: float) -> dict[str, Any]:
        """The claim decided from readings, as it is stored and printed."""
        parts = self.decide(readings) if any(map(_has_results, readings)) else [_NO_RESULTS]
        remark = REMARKS.get(self.id)
        return {
            "id": self.id,
            "statement": self.statement,
            "source": self.source,
            "verdict": combine([part.decision for part in parts]),
            "numbers": {name: value for part in parts for name, value in part.numbers.items()},
            "rule": self.rule,
            "parts": [asdict(part) for part in parts],
            "departures": list(self.departures.get(budget, ())),
            "studies": [study.name for study in self.studies[budget]],
            "remark": asdict(remark) if remark else None,
            "budget": budget,
            "seconds": seconds,
        }


_NO_RESULTS = Part("a trial of its studies has finished", "undecided", {"finished trials": 0})


def _has_results(reading: Reading) -> bool:
    """Whether a rule has something to look at: without a finished trial a frame lacks even the measured columns."""
    return bool(reading.thresholds) or (not reading.frame.is_empty() and "ok" in reading.frame["status"])


def combine(decisions: Sequence[Decision]) -> Decision:
    """All parts must hold; one that fails decides.

    >>> combine(["holds", "undecided"]), combine(["undecided", "fails"]), combine(["holds", "holds"])
    ('undecided', 'fails', 'holds')
    """
    if "fails" in decisions:
        return "fails"
    return "holds" if decisions and all(decision == "holds" for decision in decisions) else "undecided"


def above(low: float | None, high: float | None, limit: float) -> Decision:
    """Whether a number with the interval [low, high] is above a limit; None is an open end."""
    if low is not None and low > limit:
        return "holds"
    return "fails" if high is not None and high < limit else "undecided"
