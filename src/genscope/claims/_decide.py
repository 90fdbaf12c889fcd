"""Deciding claims: run their studies, read them, store the verdict as soon as the last study of a claim is there.

Guarantee: a study that several claims rest on runs once; a claim that cannot be decided does not keep the others.
"""

import dataclasses
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import polars as pl

from genscope.claims._base import Claim
from genscope.lab import BUDGETS, Progress, Reading, Store, Summary, Verdict, read, run_all, select
from genscope.lab.execution.runner import Failure
from genscope.lab.results.cautions import cautions
from genscope.lab.results.raised import own_line
from genscope.lab.results.verdict import earlier
from genscope.refusal import Refusal


@runtime_checkable  # for the type checker of the tests
class Watcher(Protocol):
    """Who is told while claims are decided."""

    def progress(self, now: Progress) -> None:
        """How far a study is."""
        ...

    def decided(self, verdict: Verdict) -> None:
        """A verdict."""
        ...

    def warn(self, text: str) -> None:
        """What a reader of the verdicts should know."""
        ...


class _Nobody:
    def progress(self, now: Progress) -> None: ...
    def decided(self, verdict: Verdict) -> None: ...
    def warn(self, text: str) -> None: ...


@dataclass(frozen=True)
class Decided:
    """The verdicts in the order of the claims table; claims that a crash left without one, and what crashed."""

    verdicts: tuple[Verdict, ...]
    broken: dict[str, str]


def decide(
    store: Store,
    budget: str = "quick",
    *,
    only: Sequence[str] = (),
    workers: int | None = None,
    watcher: Watcher | None = None,
    accept_changes: bool = False,
) -> Decided:
    """Decide claims at a budget: all, or those whose ids are given. What is stored already is not computed again.

    Trials are computed by this process, one at a time, or by so many `workers`, as in `lab.run`, which also explains
    `accept_changes`.
    """
    if budget not in BUDGETS:
        raise Refusal(f"claims.decide got {budget=}: budgets are {', '.join(BUDGETS)}. Choose one of them.")
    deciding = _Deciding(chosen(only), budget, store, watcher or _Nobody())
    options = {"store": store, "budget": budget, "workers": workers, "accept_changes": accept_changes}
    deciding.follow(run_all(list(deciding.studies.values()), progress=deciding.watcher.progress, **options))
    return deciding.result()


def chosen(only: Sequence[str]) -> list[Claim]:
    """The claims of these ids, or all, in the order of the claims table."""
    from genscope import claims

    known = {claim.id: claim for claim in claims.ALL}
    for name in only:
        if name not in known:
            raise Refusal(f"got the claim {name!r}: the claims are {', '.join(known)}. Choose one of them.")
    return [claim for claim in known.values() if not only or claim.id in only]


class _Deciding:
    """Claims on their way to a verdict."""

    def __init__(self, listed: Sequence[Claim], budget: str, store: Store, watcher: Watcher):
        self._listed, self._budget, self._store, self.watcher = listed, budget, store, watcher
        self.studies = {study.name: study for claim in listed for study in claim.studies[budget]}
        self._readings: dict[str, Reading] = {}
        self._verdicts: dict[str, Verdict] = {}
        self._broken: dict[str, str] = {}
        self._decide()

    def follow(self, outcomes: Iterable[Summary | Failure]) -> None:
        """Take note of studies that are over, and decide what can be decided."""
        for outcome in outcomes:
            if isinstance(outcome, Failure):
                reason = "".join(traceback.format_exception(outcome.error)).rstrip()
                for claim in self._listed:
                    if outcome.study in self._names(claim):
                        self._break(claim.id, f"{outcome.study} did not finish: {reason}")
                continue
            reading = read(self._store, select(self.studies[outcome.study], self._budget))
            self._readings[outcome.study] = reading
            for warning in (*cautions(reading), *outcome.remarks):
                self.watcher.warn(f"{outcome.study}: {warning}")
            self._decide()

    def result(self) -> Decided:
        """What was decided."""
        verdicts = [self._verdicts[claim.id] for claim in self._listed if claim.id in self._verdicts]
        return Decided(tuple(verdicts), dict(self._broken))

    def _decide(self) -> None:
        for claim in self._listed:
            names = self._names(claim)
            if claim.id in self._verdicts or claim.id in self._broken or not self._readings.keys() >= {*names}:
                continue
            found = [self._readings[name] for name in names]
            try:
                verdict = claim.verdict(found, budget=self._budget, seconds=sum(map(_seconds, found)))
            except Exception:  # a mistake of ours in one rule: the other claims are decided all the same
                self._break(claim.id, f"its rule fell over: {traceback.format_exc().rstrip()}")
                continue
            # A rule that has changed since does not replace silently what it decided before.
            verdict = dataclasses.replace(verdict, before=earlier(verdict, self._store.verdicts(history=True)))
            self._store.put_verdict(claim.id, self._budget, verdict.as_dict())
            self._verdicts[claim.id] = verdict
            self.watcher.decided(verdict)

    def _names(self, claim: Claim) -> list[str]:
        return [study.name for study in claim.studies[self._budget]]

    def _break(self, claim: str, reason: str) -> None:
        self._broken.setdefault(claim, reason)
        self.watcher.warn(f"{claim} will have no verdict: {own_line(reason)}")


def _seconds(reading: Reading) -> float:
    """Time spent on the trials of a reading, in whichever run they were computed."""
    return float(reading.frame.select(pl.sum("seconds") + pl.sum("compile_seconds")).item())
