"""Claim C6: what the rows of a trained score matrix show in LS26.

Source: lintilhac2026, Section 2.4, Figure 5.
Departures: named in the claim.
Guarantee: rule as in docs/claims.md, fixed before the data; exact binomial intervals at 95 % after correction
over the eight parts.
"""

from collections.abc import Sequence
from typing import Any

import polars as pl

from genscope.claims._base import Claim, Part, above
from genscope.estimate import clopper_pearson
from genscope.lab import Reading
from genscope.studies import lintilhac2026_attention

RUNS = 150  # converged ones of an arm, the first by seed
ARMS = tuple((scale, degree) for scale in (1.0, 0.1) for degree in (2, 3))
CONFIDENCE = 1 - 0.05 / (2 * len(ARMS))


def _c6(readings: Sequence[Reading]) -> list[Part]:
    frame = pl.concat([reading.frame for reading in readings]) if readings else pl.DataFrame()
    if "converged" in frame.columns:
        frame = frame.filter(
            pl.col("status") == "ok", pl.col("context_length") == 20, pl.col("sparsity") == 3, pl.col("converged")
        )
    parts = []
    for scale, degree in ARMS:
        arm = _arm(frame, "factored", scale, degree)
        beside = _beside(_arm(frame, "full", scale, degree), f"one score matrix, {_words(scale, degree)}")
        parts += _parts(arm, _words(scale, degree), beside)
    return parts


def _arm(frame: pl.DataFrame, scores: str, scale: float, degree: int) -> pl.DataFrame:
    """The first converged runs of an arm."""
    if frame.is_empty():
        return frame
    chosen = frame.filter(pl.col("scores") == scores, pl.col("scale") == scale, pl.col("degree") == degree)
    return chosen.sort("seed").head(RUNS)


def _words(scale: float, degree: int) -> str:
    return f"initial scale {scale:g}, degree {degree}"


def _parts(runs: pl.DataFrame, about: str, beside: dict[str, Any]) -> list[Part]:
    statements = (
        f"{about}: at least half of the runs show their two largest components in the score matrix",
        f"{about}: more often than before training",
    )
    numbers: dict[str, Any] = {f"converged runs read, {about}": len(runs)}
    if len(runs) < RUNS:
        return [Part(statement, "undecided", numbers) for statement in statements]
    shown, before = runs["weights_shown"], runs["untrained_weights_shown"]
    low, high = clopper_pearson(int(shown.sum()), len(runs), confidence=CONFIDENCE)
    # Of the runs in which training makes a difference, the share in which it brings the components.
    gained, lost = int((shown & ~before).sum()), int((before & ~shown).sum())
    least, most = clopper_pearson(gained, gained + lost, confidence=CONFIDENCE) if gained + lost else (0.0, 1.0)
    paired = {f"share before training, {about}": before.mean(), f"runs that gained and lost, {about}": [gained, lost]}
    return [
        Part(
            statements[0],
            above(low, high, 0.5),
            numbers | _beside(runs, about) | {f"interval, {about}": [low, high]} | beside,
        ),
        Part(statements[1], above(least, most, 0.5), paired),
    ]


def _beside(runs: pl.DataFrame, about: str) -> dict[str, Any]:
    """The other readings of the same runs, outside the verdict."""
    if runs.is_empty():
        return {}
    return {
        f"share whose score matrix shows them, {about}": runs["weights_shown"].mean(),
        f"share whose attention shows all, {about}": runs["shown"].mean(),
        f"share read by influence, {about}": runs["computed"].mean(),
        f"matched rows that use their own bit, {about}": runs["own_bit"].mean(),
    }


_AUTOMATIC = "rows read automatically; the paper shows one network, in which two of three components can be read"
C6 = Claim(
    id="C6",
    statement="The rows of the trained score matrix show the Fourier components",
    source="lintilhac2026, Figure 5",
    rule=(
        "Four arms, all with the factored network of 1,021 parameters: scores started at scale 1 and 0.1, degrees 2 "
        "and 3, the first 150 converged runs each (squared error below 0.02). A run shows its components if rows of "
        "the score matrix matched with the two largest have precision and recall of 0.9 or more. In every arm the "
        "exact interval of that share lies above one half (below fails), and training brings components more often "
        "than it loses them (exact interval of the share among runs that differ above one half); 95 % over all parts"
    ),
    studies={"quick": ()} | dict.fromkeys(("standard", "paper"), (lintilhac2026_attention.STUDY,)),
    decide=_c6,
    departures={
        "quick": ("without trials: the runs that the rule asks for take 20 processor minutes", _AUTOMATIC),
        "standard": (_AUTOMATIC,),
        "paper": (_AUTOMATIC,),
    },
)
