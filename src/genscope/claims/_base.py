"""Claims: a published statement, the studies that bear on it, a rule fixed in advance, and the verdict.

Guarantee: a verdict follows from stored trials of the named studies at one budget by the rule, and from nothing else.
"""

import functools
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from genscope.claims._planted import PLANTED
from genscope.claims._remarks import REMARKS
from genscope.lab import Reading, Study, Verdict
from genscope.lab.plans.sources import function_sources
from genscope.lab.plans.study import canonical
from genscope.lab.results.mixtures import failed_trials
from genscope.lab.results.verdict import Decision as Decision
from genscope.lab.results.verdict import Part as Part
from genscope.lab.results.verdict import decided


@dataclass(frozen=True)
class Claim:
    """What a paper says, and how we decide whether it holds.

    `studies` names the studies of each budget, and `decide` gets their readings in that order. Where trials failed, a
    claim is undecided, unless its rule says itself what they could change (`weighs_failures`).
    """

    id: str
    statement: str
    source: str
    rule: str
    studies: Mapping[str, Sequence[Study]]
    decide: Callable[[Sequence[Reading]], Sequence[Part]]
    departures: Mapping[str, Sequence[str]] = field(default_factory=dict)
    weighs_failures: bool = False

    @functools.cached_property
    def rule_digest(self) -> str:
        """A digest of the rule: its words, and the text of what decides by it in this package."""
        own = {
            name: text
            for name, text in function_sources(self.decide).parts.items()
            if name.startswith("genscope/claims/") or not name.startswith("genscope/")
        }
        return hashlib.sha256(canonical([self.rule, own]).encode()).hexdigest()[:16]

    def verdict(self, readings: Sequence[Reading], *, budget: str, seconds: float) -> Verdict:
        """The claim decided from readings."""
        parts = list(self.decide(readings)) if any(map(_has_results, readings)) else [_NO_RESULTS]
        decision = decided(parts)
        if not self.weighs_failures and (failed := sum(map(_failed, readings))):
            # What a trial that raised would have measured is not known, so it could have been anything.
            parts.append(_undecided(failed, sum(reading.frame.height for reading in readings)))
            decision = "undecided"
        return Verdict(
            id=self.id,
            statement=self.statement,
            source=self.source,
            verdict=decision,
            rule=self.rule,
            rule_digest=self.rule_digest,
            parts=tuple(parts),
            budget=budget,
            seconds=seconds,
            departures=tuple(self.departures.get(budget, ())),
            studies=tuple(names := [study.name for study in self.studies[budget]]),
            remark=REMARKS.get(self.id),
            planted=PLANTED.get(self.id, ""),
            cautions=tuple(
                f"{name}: {remark}"
                for name, reading in zip(names, readings, strict=False)
                if "provenance" in reading.frame.columns
                for remark in reading.remarks
            ),
        )


_NO_RESULTS = Part("a trial of its studies has finished", "undecided", {"finished trials": 0})


def _failed(reading: Reading) -> int:
    return len(failed_trials(reading.frame)) if "status" in reading.frame.columns else 0


def _undecided(failed: int, total: int) -> Part:
    return Part(
        "no trial failed whose result could have decided otherwise (try again: genscope run STUDY --retry failed)",
        "undecided",
        {"failed trials": f"{failed} of {total}"},
    )


def _has_results(reading: Reading) -> bool:
    """Whether a rule has something to look at: without a finished trial a frame lacks even the measured columns."""
    return bool(reading.thresholds) or (not reading.frame.is_empty() and "ok" in reading.frame["status"])


def code_check(statement: str, decision: Decision, numbers: Mapping[str, object]) -> Part:
    """A part that only a mistake of ours can make fail: shown with the claim, which rests on the others."""
    return Part(f"check of the code: {statement}", decision, numbers, check=True)


def above(low: float | None, high: float | None, limit: float) -> Decision:
    """Whether a number with the interval [low, high] is above a limit; None is an open end."""
    if low is not None and low > limit:
        return "holds"
    return "fails" if high is not None and high < limit else "undecided"
