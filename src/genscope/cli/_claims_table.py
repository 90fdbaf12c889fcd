"""The claims on standard error while they are decided: a live table on a terminal, elsewhere a line now and then.

Guarantee: each claim that runs is shown; where the terminal is too low for all, those that wait are counted only.
"""

import contextlib
from collections.abc import Iterator, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from genscope.claims import Claim
from genscope.cli._progress import Lines, fitted
from genscope.lab import Progress, Verdict

_STYLES = {"holds": "green", "fails": "red", "undecided": "yellow"}


class ClaimsTable:
    """Shows claims, how far their studies are, and their verdicts."""

    def __init__(self, listed: Sequence[Claim], budget: str, target: Console):
        self._console = target
        self._said = 40 if target.width >= 110 else 16  # columns for what a claim says
        self._statements = {claim.id: claim.statement for claim in listed}
        self._studies = {claim.id: [study.name for study in claim.studies[budget]] for claim in listed}
        self._progress: dict[str, Progress] = {}
        self._verdicts: dict[str, str] = {}
        self._lines = Lines(self._say)

    @contextlib.contextmanager
    def live(self) -> Iterator["ClaimsTable"]:
        """Show the claims while the block lasts."""
        table = Live(get_renderable=self.table, console=self._console, transient=True, refresh_per_second=2)
        with table if self._console.is_terminal else contextlib.nullcontext():
            yield self

    def warn(self, text: str) -> None:
        """One line of its own."""
        self._say(f"warning: {text}")

    def progress(self, now: Progress) -> None:
        """Take notice of how far a study is."""
        self._progress[now.study] = now
        if not self._console.is_terminal:
            self._lines(now)

    def decided(self, verdict: Verdict) -> None:
        """Take notice of a verdict."""
        self._verdicts[verdict.id] = verdict.verdict
        if not self._console.is_terminal:
            self._say(f"{verdict.id} {verdict.verdict}: {verdict.statement}")

    def table(self) -> Table:
        """The table as it stands."""
        rows = {name: (self._state(name), self._verdicts.get(name, "")) for name in self._studies}
        waiting = [name for name, (state, verdict) in rows.items() if not state and not verdict]
        made = Table(box=SIMPLE_HEAD, pad_edge=False)
        for heading, most in (("claim", None), ("", self._said), ("progress", None), ("verdict", None)):
            made.add_column(heading, no_wrap=True, overflow="ellipsis", max_width=most)
        room = self._console.height - 5  # heading, rule, caption
        shown = [name for name in rows if len(rows) <= room or name not in waiting][-room:]
        for name in shown:
            state, verdict = rows[name]
            styled = Text(verdict, _STYLES.get(verdict, ""))
            made.add_row(name, Text(self._statements[name]), Text("" if verdict else state or "waits"), styled)
        made.caption = f"{len(self._verdicts)} of {len(rows)} claims are decided, {len(waiting)} wait"
        return made

    def _say(self, text: str) -> None:
        self._console.print(text, soft_wrap=True)

    def _state(self, claim: str) -> str:
        """How far the study is that the claim waits for; empty where none has begun."""
        begun = [self._progress[name] for name in self._studies[claim] if name in self._progress]
        unfinished = [now for now in begun if now.doing != "done"]
        if not begun:
            return ""
        now = (unfinished or begun)[-1]
        room = max(24, self._console.width - self._said - 26)  # beside id, statement, verdict and gaps
        return fitted(now, room + len(now.study) + 2).removeprefix(f"{now.study}: ")
