"""Claims C3 and C4: what LS26 sees in trained networks.

Source: lintilhac2026, Figures 1 and 2.
Departures: each claim names its own.
Guarantee: rules as in docs/claims.md, fixed before the data; tests and intervals at 95 % after Bonferroni correction
inside a claim. Runs that did not converge enter no number but their count; C3 is decided only where they could not turn
its sign.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
import scipy  # whose parts load on first use: a listing of studies needs none of them

from genscope.claims._base import Claim, Decision, Part
from genscope.claims._concordance import Stratum, concordance
from genscope.lab import Reading
from genscope.studies import lintilhac2026_gap, lintilhac2026_norms

AXES = ("context_length", "sample_size", "degree", "sparsity")
ORDERS = 100.0  # "two orders of magnitude"


def _finished(reading: Reading) -> pl.DataFrame:
    frame = reading.frame
    return frame.filter(pl.col("status") == "ok") if len(frame) else frame


def _counts(frame: pl.DataFrame) -> dict[str, int]:
    converged = int(frame["converged"].sum()) if len(frame) else 0
    return {"runs that converged": converged, "runs that did not": len(frame) - converged}


def _c3(readings: Sequence[Reading]) -> list[Part]:
    frame = _finished(readings[0])
    level = 0.05 / 2 / 2  # two parts, two sides
    parts = []
    for axis, fixed in (("degree", "sparsity"), ("sparsity", "degree")):
        others = [name for name in AXES if name != axis]
        groups = [group for _, group in frame.group_by(others, maintain_order=True)] if len(frame) else []
        found = concordance([_stratum(group, axis) for group in groups])
        numbers = {
            f"rank correlation of gap and {axis}": found.value,
            f"p-value, {axis}": found.greater,
            f"rank correlation with {axis}, over what rejected runs could be": [found.lowest, found.highest],
        }
        statement = f"the gap grows with {axis} at fixed {fixed}"
        parts.append(Part(statement, found.decision(level), numbers | _gaps(frame, axis) | _counts(frame)))
    return parts


def _stratum(group: pl.DataFrame, axis: str) -> Stratum:
    kept, rejected = group.filter(pl.col("converged")), group.filter(~pl.col("converged"))
    return Stratum(kept[axis].to_numpy(), kept["gap"].to_numpy(), rejected[axis].to_numpy())


def _gaps(frame: pl.DataFrame, axis: str) -> dict[str, Any]:
    if not len(frame):
        return {}
    kept = frame.filter(pl.col("converged"))
    means = kept.group_by(axis).agg(pl.col("gap").median()).sort(axis)
    return {f"median gap by {axis}": {str(x): gap for x, gap in means.iter_rows()}}


def _c4(readings: Sequence[Reading]) -> list[Part]:
    every = _finished(readings[0])
    paper = every.filter(pl.col("arm") == "paper") if len(every) else every
    frame = paper.filter(pl.col("converged")) if len(paper) else paper
    statements = ("every trained network has a smaller norm", "every trained network has a smaller trace")
    if not len(frame):
        return [Part(statement, "undecided", _counts(paper)) for statement in statements]
    norms = frame["norm_squared"] / frame["full_norm_squared"]
    reach = float(scipy.special.stdtrit(lintilhac2026_norms.PARTS - 1, 1 - 0.05 / 2 / len(frame)))
    difference = (frame["trace"] - frame["full_trace"]).to_numpy()
    error = reach * np.hypot(frame["trace_sem"].to_numpy(), frame["full_trace_sem"].to_numpy())
    smaller = (difference + error < 0).all()
    traces: Decision = "holds" if smaller else "fails" if (difference - error > 0).any() else "undecided"
    return [
        Part(
            statements[0],
            "holds" if norms.max() < 1 else "fails",  # pyright: ignore[reportOperatorIssue]  # a column of floats
            _ratios(frame, "norm_squared") | _beside(every, "norm_squared") | _counts(paper),
        ),
        Part(statements[1], traces, _ratios(frame, "trace") | _beside(every, "trace")),
    ]


def _ratios(frame: pl.DataFrame, value: str) -> dict[str, Any]:
    """Construction over trained network, least and largest; below 1 the network is the larger one."""
    found: dict[str, Any] = {}
    for variant in lintilhac2026_norms.VARIANTS:
        ratio = frame[f"{variant}_{value}"] / frame[value]
        words = value.replace("_", " ")
        found[f"{words}, construction ({variant}) over trained"] = [ratio.min(), ratio.max()]
        if variant == "full":
            found[f"{words}: networks two orders of magnitude below (beside)"] = int((ratio >= ORDERS).sum())
    return found


def _beside(frame: pl.DataFrame, value: str) -> dict[str, Any]:
    """The same ratio for the other ways of training, outside the verdict."""
    found = {}
    for (arm,), group in frame.filter(pl.col("converged")).group_by(["arm"], maintain_order=True):
        if arm != "paper":
            ratio = group[f"full_{value}"] / group[value]
            found[f"{value.replace('_', ' ')}, full over trained, arm {arm}"] = [ratio.min(), ratio.max()]
    return found


_ALL = ("quick", "standard", "paper")
_TRAINING = "batches of 64, gradients cut at 1; runs that do not converge are counted, not replaced"

C3 = Claim(
    id="C3",
    statement="The generalization gap grows with degree and with sparsity",
    source="lintilhac2026, Figure 1",
    rule=(
        "Share of concordant less discordant pairs of (gap, degree) at fixed sparsity, and of (gap, sparsity) at fixed "
        "degree, over converged runs: positive by a permutation test within classes (one-sided level 1.25 % each), and "
        "still positive if every pair with a run that did not converge were discordant"
    ),
    studies=dict.fromkeys(_ALL, (lintilhac2026_gap.STUDY,)),
    decide=_c3,
    departures={
        "quick": ("T = 10, 256 strings, degrees 1 to 3, sparsities 2 and 8", _TRAINING),
        "standard": ("1,024 strings, degrees 1 to 3, sparsities 2, 5, 10", _TRAINING),
        "paper": (_TRAINING,),
    },
)
C4 = Claim(
    id="C4",
    statement="Trained networks have smaller norm and trace than the construction",
    source="lintilhac2026, Figure 2",
    rule=(
        "Every converged network, trained as in the paper, below the paper's weights (full) for the same function in "
        "squared norm, and in trace by the limit of its interval (95 % over all networks); the tuned and minimal "
        "weights, two orders of magnitude and other ways of training are shown beside"
    ),
    studies=dict.fromkeys(_ALL, (lintilhac2026_norms.STUDY,)),
    decide=_c4,
    departures={
        "quick": ("degrees 1 and 2, sparsities 2 and 5, one network each", _TRAINING),
        "standard": ("degrees 1 to 3, two networks each", _TRAINING),
        "paper": (_TRAINING,),
    },
)
