"""Runs of token regression as the rules of MH25 read them: samples to the threshold relative to the blind risk.

Guarantee: exact. Further runs of one draw (`run` > 0) are not independent and left out, and so are, of an exponent, the
lengths at which a run ended before it reached its threshold.
"""

from collections.abc import Sequence
from typing import Any

import polars as pl

from genscope.claims._base import Decision, above
from genscope.claims._ratios import Interval, SampleCounts, Slope, exponent
from genscope.lab import Reading

SHORTEST = 8  # tokens: below, the risk without the index is far from 1
MILD = 0.6  # exponent of samples against N: smaller is "almost independent of N"


def runs(reading: Reading, protocol: str = "code") -> pl.DataFrame:
    """Finished runs of a protocol with `samples` to the relative threshold; those to the published are renamed."""
    frame = reading.frame
    if not len(frame) or "samples_relative" not in frame.columns:
        return pl.DataFrame()
    frame = frame.filter(pl.col("status") == "ok", pl.col("protocol") == protocol)
    for column, wanted in (("run", pl.col("run") == 0), ("until", pl.col("until") != "published")):
        frame = frame.filter(wanted) if column in frame.columns else frame
    renamed = frame.with_columns(published=pl.col("samples"), published_reached=pl.col("reached"))
    frame = renamed.with_columns(samples=pl.col("samples_relative"), reached=pl.col("reached_relative"))
    point = [name for name in ("architecture", "context_length", "sparsity", "draw") if name in frame.columns]
    return frame.unique(point, keep="first", maintain_order=True)  # a run may be there with both ends


def counts(frame: pl.DataFrame, architecture: str, **where: object) -> SampleCounts:
    """The samples of an architecture at a point."""
    return SampleCounts.of(frame, architecture=architecture, **where)


def resolved(frame: pl.DataFrame, *architectures: str, draws: int = 1) -> list[int]:
    """Lengths from `SHORTEST` on at which so many runs of each architecture, and all that there are, arrived."""
    if not len(frame):
        return []
    lengths = sorted(length for length in frame["context_length"].unique() if length >= SHORTEST)
    found = {n: [counts(frame, name, context_length=n) for name in architectures] for n in lengths}
    return [n for n, arms in found.items() if all(len(arm.logs) >= draws and not arm.censored for arm in arms)]


def growth(frame: pl.DataFrame, architecture: str, lengths: Sequence[int]) -> Slope | None:
    """The exponent of an architecture's samples over some lengths."""
    return exponent({n: counts(frame, architecture, context_length=n) for n in lengths})


def mild(interval: Interval, limit: float = MILD) -> Decision:
    """Whether an exponent is below a limit."""
    opposite: dict[Decision, Decision] = {"holds": "fails", "fails": "holds", "undecided": "undecided"}
    return opposite[above(interval[1], interval[2], limit)]


def numbers(name: str, interval: Interval) -> dict[str, Any]:
    """An estimate and its interval, for a part."""
    return {name: interval[0], f"{name}, interval": [interval[1], interval[2]]}
