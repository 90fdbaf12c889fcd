"""Claim C6: what the rows of a trained attention show in LS26.

Source: lintilhac2026, Section 2.4, Figure 5.
Departures: named in the claim.
Guarantee: rule as in docs/claims.md, fixed before the data; exact binomial interval at 95 %.
"""

from collections.abc import Sequence
from typing import Any

import polars as pl

from genscope.claims._base import Claim, Part, above
from genscope.estimate import clopper_pearson
from genscope.lab import Reading
from genscope.studies import lintilhac2026_attention

LEAST = 6  # converged runs; with fewer no count decides


def _c6(readings: Sequence[Reading]) -> list[Part]:
    statement = "at least half of the converged runs show their components"
    frame = readings[0].frame.filter(pl.col("status") == "ok")
    if frame.is_empty():
        return [Part(statement, "undecided", {})]
    frame = frame.filter(pl.col("context_length") == 20, pl.col("sparsity") == 3)
    decisive = frame.filter(pl.col("scores") == "full", pl.col("degree").is_in([2, 3]))
    runs = decisive.filter("converged")
    numbers: dict[str, Any] = {"runs": len(decisive), "converged": len(runs)}
    if len(runs) < LEAST:
        return [Part(statement, "undecided", numbers)]
    shown = int(runs["shown"].sum())
    low, high = clopper_pearson(shown, len(runs))
    numbers |= {"share that shows them": shown / len(runs), "interval": [low, high]}
    for degree in sorted(runs["degree"].unique()):
        numbers[f"share at degree {degree}"] = float(runs.filter(pl.col("degree") == degree)["shown"].mean())  # pyright: ignore[reportArgumentType]  # a mean of truth values
    numbers |= _beside(frame, runs)
    return [Part(statement, above(low, high, 0.5), numbers)]


def _beside(frame: pl.DataFrame, runs: pl.DataFrame) -> dict[str, Any]:
    """What explains the share: the same runs read by influence, the arm without bits in the scores, the untrained."""
    positions = frame.filter(pl.col("scores") == "positions").filter("converged")
    return {
        "share read by influence": runs["computed"].mean(),
        "matched rows that use their own bit": runs["own_bit"].mean(),
        "share without bits in the scores": positions["shown"].mean() if len(positions) else None,
        "recall, trained": runs["recall"].mean(),
        "recall, untrained": runs["untrained_recall"].mean(),
    }


C6 = Claim(
    id="C6",
    statement="The rows of the trained attention show the Fourier components",
    source="lintilhac2026, Figure 5",
    rule=(
        "Matched rows have precision and recall of at least 0.9 in at least half of the converged runs (squared error "
        "below 0.02): the exact 95 % interval of that share lies above one half, below it (fails), or holds it "
        "(undecided); at least 6 converged runs"
    ),
    studies=dict.fromkeys(("quick", "standard", "paper"), (lintilhac2026_attention.STUDY,)),
    decide=_c6,
    departures={
        "quick": ("degree 2 only", "rows read automatically; the paper shows one network"),
        "standard": ("rows read automatically; the paper shows one network",),
        "paper": ("rows read automatically; the paper shows one network",),
    },
)
