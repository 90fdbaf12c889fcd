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
from genscope.lab.results.reading import read
from genscope.lab.results.verdict import Decision as Decision
from genscope.lab.results.verdict import Part as Part
from genscope.lab.results.verdict import concluded


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
        """A digest of the rule: its words, and the text of what decides by it, wherever it stands.

        What presents, stores and plans is left out, and so are the trials, whose code is stored with each of them.
        """
        functions = [self.decide, concluded]
        if any(study.plan(budget).search for budget, listed in self.studies.items() for study in listed):
            functions.append(read)
        known = [self.rule, self.weighs_failures, [_deciding(function) for function in functions]]
        return hashlib.sha256(canonical(known).encode()).hexdigest()[:20]

    def verdict(self, readings: Sequence[Reading], *, budget: str, seconds: float) -> Verdict:
        """The claim decided from readings."""
        decision, parts = concluded(
            self.decide(readings) if any(map(_has_results, readings)) else [_NO_RESULTS],
            failed=sum(map(_failed, readings)),
            trials=sum(reading.frame.height for reading in readings),
            weighs_failures=self.weighs_failures,
        )
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


_DECIDING = (
    *(f"genscope/{package}/" for package in ("claims", "lab/statistics", "measure", "studies", "tasks")),
    *(f"genscope/lab/results/{name}.py" for name in ("reading", "reduction", "verdict")),
    "genscope/estimate.py",
)


@functools.cache
def _deciding(function: Callable[..., object]) -> dict[str, str]:
    """Digests of the text that a function rests on, by file, as far as it decides; a user's own text does always."""
    texts = function_sources(function).parts
    return {
        name: text for name, text in texts.items() if name.startswith(_DECIDING) or not name.startswith("genscope/")
    }


_NO_RESULTS = Part("a trial of its studies has finished", "undecided", {"finished trials": 0})


def _failed(reading: Reading) -> int:
    return len(failed_trials(reading.frame)) if "status" in reading.frame.columns else 0


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
