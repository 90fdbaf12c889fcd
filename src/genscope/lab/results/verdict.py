"""Verdict: what was decided about a claim, by which rule, from which numbers; as it is stored, printed and shown.

Guarantee: exact; a verdict comes back from JSON as it was.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from genscope.display import Card, Displayed, Table

Decision = Literal["holds", "fails", "undecided"]
_WORDS = {"holds": "held", "fails": "failed"}
DECISIONS: tuple[Decision, ...] = ("holds", "fails", "undecided")


@dataclass(frozen=True)
class Part:
    """One question inside a claim, with its answer and the numbers it rests on.

    A `check` is of the code: only a mistake of ours can make it fail, so that it never decides for or against a paper.
    """

    statement: str
    decision: Decision
    numbers: Mapping[str, Any]
    check: bool = False


@dataclass(frozen=True)
class Remark:
    """One sentence on where we and a paper part ways, and the row of docs/errata.md under the paper's key."""

    text: str
    paper: str
    row: int


@dataclass(frozen=True)
class Verdict(Displayed):
    """A claim decided from the trials of its studies at one budget."""

    id: str
    statement: str
    source: str
    verdict: Decision
    rule: str
    parts: Sequence[Part]
    budget: str
    seconds: float | None = None
    """Spent on the trials that decided, in whichever run they were computed."""
    departures: Sequence[str] = ()
    studies: Sequence[str] = ()
    remark: Remark | None = None
    cautions: Sequence[str] = ()
    """What a reader has to know of the trials: failures, and mixtures of code or machines."""
    rule_digest: str = ""
    """Tells whether another verdict was reached by the same rule; empty where an older genscope decided."""
    planted: str = ""
    """What was broken on purpose to see the claim fail."""
    before: Mapping[str, Any] | None = None
    """The newest verdict by an earlier rule at the same budget: `verdict`, `rule`, `rule_digest`, `decided`."""

    @property
    def changed_rule(self) -> str:
        """One sentence on what an earlier rule decided; empty where the rule has not changed."""
        if self.before is None:
            return ""
        return (
            f"The rule has changed: by the earlier one the claim {_WORDS.get(self.before['verdict'], 'was undecided')} "
            f"on {self.before['decided']} ({self.before['rule']})"
        )

    def card(self) -> Card:
        """What is shown: the decision, its parts with their numbers, and the rule."""
        word = {"holds": "holds", "fails": "fails", "undecided": "is undecided"}[self.verdict]
        parts = [(part.statement, part.decision, dict(part.numbers)) for part in self.parts]
        rows = [("source", self.source), ("budget", self.budget), ("rule", self.rule)]
        notes = [*self.cautions, *([self.remark.text] if self.remark else []), self.changed_rule]
        title = f"{self.id} {word}: {self.statement}"
        return Card(title, rows, [Table(["part", "decision", "numbers"], parts)], [note for note in notes if note])

    @property
    def numbers(self) -> dict[str, Any]:
        """The numbers of all parts."""
        return {name: value for part in self.parts for name, value in part.numbers.items()}

    @property
    def paper(self) -> str:
        """The citation key that the source begins with."""
        return self.source.partition(",")[0].strip()

    @property
    def reasons(self) -> list[str]:
        """The parts that keep the claim from holding; a claim of one part is its own reason."""
        keeping = [
            part.statement
            for part in self.parts
            if self.verdict != "holds" and (part.decision == self.verdict or (part.check and part.decision == "fails"))
        ]
        return keeping if len(self.parts) > 1 else []

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            **asdict(self),
            "numbers": self.numbers,
            "parts": [asdict(part) for part in self.parts],
            "departures": list(self.departures),
            "studies": list(self.studies),
            "cautions": list(self.cautions),
            "changed_rule": self.changed_rule,
        }

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> "Verdict":
        """A stored verdict; fields that an older genscope did not write are empty."""
        remark = facts.get("remark")
        return cls(
            id=facts["id"],
            statement=facts.get("statement", ""),
            source=facts.get("source", ""),
            verdict=facts.get("verdict", "undecided"),
            rule=facts.get("rule", ""),
            parts=tuple(Part(**part) for part in facts.get("parts") or ()),
            budget=facts["budget"],
            seconds=facts.get("seconds"),
            departures=tuple(facts.get("departures") or ()),
            studies=tuple(facts.get("studies") or ()),
            remark=Remark(**remark) if remark else None,
            cautions=tuple(facts.get("cautions") or ()),
            rule_digest=facts.get("rule_digest") or "",
            planted=facts.get("planted") or "",
            before=facts.get("before"),
        )


def earlier(now: Verdict, stored: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """What `Verdict.before` holds: of stored verdicts on a claim, old to new, the newest by another rule."""
    for row in reversed([row for row in stored if (row["claim"], row["budget"]) == (now.id, now.budget)]):
        old = Verdict.from_dict({"id": row["claim"], "budget": row["budget"], **row["verdict"]})
        if not same_rule(row["verdict"], {"rule": now.rule, "rule_digest": now.rule_digest}):
            decided = time.strftime("%Y-%m-%d", time.gmtime(row["finished"]))
            return {"verdict": old.verdict, "rule": old.rule, "rule_digest": old.rule_digest, "decided": decided}
    return None


def same_rule(verdict: Mapping[str, Any], rule: Mapping[str, Any]) -> bool:
    """Whether a stored verdict was reached by a rule that is given by its words, `rule`, and its `rule_digest`.

    Digests of unlike lengths are of unlike things: until 2026-11-19 they left out what a rule takes from studies and
    statistics. Such verdicts are told by the words, as those without a digest.
    """
    before, now = verdict.get("rule_digest") or "", rule["rule_digest"]
    return before == now if len(before) == len(now) else verdict.get("rule") in (None, rule["rule"])


def concluded(parts: Sequence[Part], *, failed: int, trials: int, weighs_failures: bool) -> tuple[Decision, list[Part]]:
    """What the parts of a rule say together, with the part that failed trials add.

    What a trial that failed would have measured is not known, so it could have been anything, unless the rule says
    itself what failures could change.
    """
    if weighs_failures or not failed:
        return decided(parts), [*parts]
    more = Part(
        "no trial failed whose result could have decided otherwise (try again: genscope run STUDY --retry failed)",
        "undecided",
        {"failed trials": f"{failed} of {trials}"},
    )
    return "undecided", [*parts, more]


def decided(parts: Sequence[Part]) -> Decision:
    """What the parts say together; where a check of the code fails, nothing that it computed decides.

    >>> good, bad = Part("a", "holds", {}), Part("b", "fails", {}, check=True)
    >>> decided([good]), decided([good, bad]), decided([bad])
    ('holds', 'undecided', 'undecided')
    """
    checks = [part.decision for part in parts if part.check]
    found = combine([part.decision for part in parts if not part.check])
    return "undecided" if "fails" in checks or (found == "holds" and "undecided" in checks) else found


def combine(decisions: Sequence[Decision]) -> Decision:
    """All parts must hold; one that fails decides.

    >>> combine(["holds", "undecided"]), combine(["undecided", "fails"]), combine(["holds", "holds"])
    ('undecided', 'fails', 'holds')
    """
    if "fails" in decisions:
        return "fails"
    return "holds" if decisions and all(decision == "holds" for decision in decisions) else "undecided"
