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

from genscope.claims._base import Claim, Decision, Part, above
from genscope.claims._concordance import Stratum, concordance
from genscope.claims._growth import Coefficient, exponent, interaction
from genscope.lab.results.reading import Reading
from genscope.studies import lintilhac2026_gap, lintilhac2026_norms

AXES = ("context_length", "sample_size", "degree", "sparsity")
SUPERLINEAR = 1.0
CONVERGING = 0.9  # share of runs that exponents and interaction need: they see converged runs alone
LEAST = 1e-9  # of a gap whose test error is exact
ORDERS = 1.5  # in powers of ten: what rounds to "two orders of magnitude" or more
C3_PARTS, C4_PARTS = 5, 4  # that rest on tests or intervals


def _finished(reading: Reading) -> pl.DataFrame:
    frame = reading.frame
    return frame.filter(pl.col("status") == "ok") if len(frame) else frame


def _counts(frame: pl.DataFrame) -> dict[str, int]:
    converged = int(frame["converged"].sum()) if len(frame) else 0
    return {"runs that converged": converged, "runs that did not": len(frame) - converged}


def _c3(readings: Sequence[Reading]) -> list[Part]:
    frame = _finished(readings[0])
    level = 0.05 / C3_PARTS / 2  # two sides
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
    return parts + [_superlinear(frame, axis) for axis in ("degree", "sparsity")] + [_interaction(frame)]


def _converging(frame: pl.DataFrame) -> pl.DataFrame:
    """The converged runs with gaps that have a logarithm; none where too many did not converge.

    A gap below its standard error counts as that, which makes exponents smaller.
    """
    if not len(frame) or float(frame["converged"].mean()) < CONVERGING:  # pyright: ignore[reportArgumentType]
        return frame.clear()
    floor = pl.max_horizontal("gap", pl.col("gap_sem").clip(LEAST))
    return frame.filter(pl.col("converged")).with_columns(positive=floor)


def _superlinear(frame: pl.DataFrame, axis: str) -> Part:
    kept = _converging(frame)
    others = [name for name in AXES if name != axis]
    groups = [
        (group[axis].cast(pl.Float64).to_numpy(), group["positive"].to_numpy())
        for _, group in (kept.group_by(others, maintain_order=True) if len(kept) else ())
    ]
    found = exponent(groups, confidence=1 - 0.05 / C3_PARTS)
    numbers = {f"exponent of the gap in {axis}": found.value, f"exponent in {axis}, interval": found.interval}
    decision: Decision = "undecided" if found.value is None else above(found.low, found.high, SUPERLINEAR)
    return Part(f"the gap grows superlinearly with {axis}", decision, numbers)


def _interaction(frame: pl.DataFrame) -> Part:
    kept = _converging(frame)
    columns = [kept[name].cast(pl.Float64).to_numpy() for name in ("degree", "sparsity", "gap")] if len(kept) else []
    found = interaction(*columns, confidence=1 - 0.05 / C3_PARTS) if columns else Coefficient(None)
    numbers = {"gap per degree and component": found.value, "gap per degree and component, interval": found.interval}
    decision: Decision = "undecided" if found.value is None else above(found.low, found.high, 0.0)
    return Part("degree and sparsity raise each other's effect", decision, numbers)


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
    statements = {
        "norm": "every trained network has a smaller norm",
        "full": "every trained network has a smaller trace",
        "minimal": "every trained network has a smaller trace than the minimal weights",
        "norm_squared": "the squared norm is smaller by about two orders of magnitude",
        "trace": "the trace is smaller by about two orders of magnitude",
    }
    if not len(frame):
        return [Part(statement, "undecided", _counts(paper)) for statement in statements.values()]
    norms = frame["norm_squared"] / frame["full_norm_squared"]
    return [
        Part(
            statements["norm"],
            "holds" if norms.max() < 1 else "fails",  # pyright: ignore[reportOperatorIssue]  # a column of floats
            _ratios(frame, "norm_squared") | _beside(every, "norm_squared") | _counts(paper),
        ),
        Part(statements["full"], _smaller_trace(frame, "full"), _ratios(frame, "trace") | _beside(every, "trace")),
        Part(statements["minimal"], _smaller_trace(frame, "minimal"), {}),
        *(_orders(frame, value, statements[value]) for value in ("norm_squared", "trace")),
    ]


def _smaller_trace(frame: pl.DataFrame, variant: str) -> Decision:
    """Every network's trace against a variant's for the same function, by the limits of its interval."""
    reach = float(scipy.special.stdtrit(lintilhac2026_norms.PARTS - 1, 1 - 0.05 / C4_PARTS / 2 / len(frame)))
    difference = (frame["trace"] - frame[f"{variant}_trace"]).to_numpy()
    error = reach * np.hypot(frame["trace_sem"].to_numpy(), frame[f"{variant}_trace_sem"].to_numpy())
    if (difference + error < 0).all():
        return "holds"
    return "fails" if (difference - error > 0).any() else "undecided"


def _orders(frame: pl.DataFrame, value: str, statement: str) -> Part:
    """The mean power of ten by which networks lie below the paper's weights, with Student's interval over networks."""
    positive = frame.filter(pl.col(value) > 0)
    powers = np.log10((positive[f"full_{value}"] / positive[value]).to_numpy())
    numbers: dict[str, Any] = {f"{value.replace('_', ' ')}: powers of ten below": float(powers.mean())}
    if len(powers) < 2:
        return Part(statement, "undecided", numbers)
    reach = float(scipy.special.stdtrit(len(powers) - 1, 1 - 0.05 / C4_PARTS / 2))
    error = reach * float(powers.std(ddof=1)) / np.sqrt(len(powers))
    low, high = float(powers.mean() - error), float(powers.mean() + error)
    numbers[f"{value.replace('_', ' ')}: powers of ten below, interval"] = [low, high]
    return Part(statement, above(low, high, ORDERS), numbers)


def _ratios(frame: pl.DataFrame, value: str) -> dict[str, Any]:
    """Construction over trained network, least and largest; below 1 the network is the larger one."""
    found: dict[str, Any] = {}
    for variant in lintilhac2026_norms.VARIANTS:
        ratio = frame[f"{variant}_{value}"] / frame[value]
        words = value.replace("_", " ")
        found[f"{words}, construction ({variant}) over trained"] = [ratio.min(), ratio.max()]
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
    statement="The generalization gap grows with degree and with sparsity, superlinearly and together",
    source="lintilhac2026, Figure 1",
    rule=(
        "Five parts. Share of concordant less discordant pairs of (gap, degree) at fixed sparsity, and of (gap, "
        "sparsity) at fixed degree, over converged runs: positive by a permutation test within classes (one-sided "
        "level 0.5 % each), and still positive if every pair with a run that did not converge were discordant. "
        "Superlinear: the exponent of the gap in degree and in sparsity (least squares of logarithms, classes with "
        "levels of their own, a gap below its standard error counted as that) has a 99 % interval above 1; below "
        "fails. Interaction: the coefficient of degree times sparsity beside both has a 99 % interval above 0; below "
        "fails. The last three need 90 % of the runs to converge"
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
    statement="Trained networks have smaller norm and trace than the construction, by two orders of magnitude",
    source="lintilhac2026, Figure 2",
    rule=(
        "Five parts. Every converged network, trained as in the paper, below the paper's weights (full) for the same "
        "function in squared norm; and in trace, against full and against minimal weights, by the limit of its "
        "interval. Two orders of magnitude: the mean power of ten between full weights and network is above 1.5 "
        "(Student's interval; below fails), in squared norm and in trace. 95 % over the four parts with intervals; "
        "tuned weights and other ways of training are shown beside"
    ),
    studies=dict.fromkeys(_ALL, (lintilhac2026_norms.STUDY,)),
    decide=_c4,
    departures={
        "quick": ("degrees 1 and 2, sparsities 2 and 5, one network each", _TRAINING),
        "standard": ("degrees 1 to 3, two networks each", _TRAINING),
        "paper": (_TRAINING,),
    },
)
