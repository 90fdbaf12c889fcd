"""Progress on standard error: a live bar on a terminal, elsewhere a line now and then.

Guarantee: at least one line at the start and one at the end of a study.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from datetime import timedelta

from rich.console import Console
from rich.progress import BarColumn, SpinnerColumn, TextColumn
from rich.progress import Progress as Bars

from genscope.cli._output import console
from genscope.lab import Progress, Store

EVERY_SECONDS = 10.0
_ROOMY = 110  # columns from which on the bar is long


class Lines:
    """Progress as lines: one when a study begins, one when it ends, and one now and then between, if there is news."""

    def __init__(self, say: Callable[[str], None]):
        self._say = say
        self._last: dict[str, tuple[float, str]] = {}

    def __call__(self, now: Progress) -> None:
        """Say how far a study is, if it is time to."""
        ends, before = now.doing == "done", self._last.get(now.study)
        if ends or before is None or time.monotonic() >= before[0] + EVERY_SECONDS:
            text = f"{now.study}: {describe(now)}"
            self._last[now.study] = time.monotonic(), text
            if ends or before is None or text != before[1]:
                self._say(text)
        if ends:
            del self._last[now.study]


class Follower:
    """Shows how far runs are, and messages between them."""

    def __init__(self, target: Console):
        self._console = target
        self._bars = Bars(
            SpinnerColumn(),
            BarColumn(bar_width=24 if target.width >= _ROOMY else 8),
            TextColumn("{task.fields[state]}", markup=False),
            console=target,
            transient=True,
        )
        self._task = self._bars.add_task("", total=None, visible=False, state="")
        self._lines = Lines(self.say)

    @contextlib.contextmanager
    def live(self) -> Iterator["Follower"]:
        """Follow runs while the block lasts."""
        with self._bars if self._console.is_terminal else contextlib.nullcontext():
            yield self

    def say(self, text: str) -> None:
        """One line of its own."""
        self._console.print(text, soft_wrap=True)

    def __call__(self, now: Progress) -> None:
        """Take notice of progress; `lab.run` calls this."""
        ends = now.doing == "done"
        if self._console.is_terminal:
            self._bars.update(
                self._task,
                completed=now.done,
                total=now.total if now.total else None,
                visible=not ends,
                state=fitted(now, self._console.width - (30 if self._console.width >= _ROOMY else 14)),
            )
        if ends or not self._console.is_terminal:
            self._lines(now)


def describe(now: Progress) -> str:
    """What runs, done of total, rate, time left.

    >>> describe(Progress("s", "size=2", done=3, total=8, exact=False, failed=1, rate=2.0, seconds_left=2.5))
    '3 of at least 8 trials, 1 failed, 2.0 trials/s, 0:00:03 left or more, size=2'
    """
    parts = [f"{now.done} of {'' if now.exact else 'at least '}{now.total} trials"]
    if now.failed:
        parts.append(f"{now.failed} failed")
    if now.rate == 0 and now.doing != "done":
        parts.append("compiling")  # the first trials wait for it
    if now.rate > 0:
        parts.append(f"{now.rate:.1f} trials/s" if now.rate >= 1 else f"{1 / now.rate:.1f} s/trial")
    if now.seconds_left and now.doing != "done":
        left = timedelta(seconds=-(-now.seconds_left // 1))
        parts.append(f"{left} left{'' if now.exact else ' or more'}")
    return ", ".join([*parts, now.doing])


def fitted(now: Progress, width: int) -> str:
    """The same in so many columns: study, count and sample size come first, then time left, rate and other axes.

    >>> now = Progress("my-study", "length=300 sample_size=70", 3, 8, exact=True, failed=0, rate=2.0, seconds_left=3)
    >>> fitted(now, 90)
    'my-study: 3 of 8 trials, 2.0 trials/s, 0:00:03 left, length=300 sample_size=70'
    >>> fitted(now, 60)
    'my-study: 3 of 8 trials, 0:00:03 left, sample_size=70'
    """
    said = f"{now.study}: {describe(now)}"
    if len(said) <= width or now.doing == "done":
        return said
    *facts, doing = said.split(", ")
    axes = doing.split(" ")
    size = next((axis for axis in axes if axis.startswith("sample_size=")), axes[-1])
    facts[0] = facts[0].replace(" of at least ", " of ≥ ")
    rated = [fact for fact in facts if fact.endswith(("trials/s", "s/trial"))]
    kept = [fact for fact in facts if fact not in rated]
    for shorter in ([*facts, size], [*kept, size], [kept[0], size], [kept[0]]):
        if len(", ".join(shorter)) <= width:
            return ", ".join(shorter)
    return kept[0][:width]


@contextlib.contextmanager
def following(store: Store) -> Iterator[Follower]:
    """Follow runs that write to a store."""
    with resumable(store), Follower(console(stderr=True)).live() as follower:
        yield follower


@contextlib.contextmanager
def resumable(store: Store) -> Iterator[None]:
    """Let an interruption say what is kept."""
    try:
        yield
    except KeyboardInterrupt as stop:
        stop.add_note(f"Every finished trial is stored in {store.url}; the same command continues from there.")
        raise
