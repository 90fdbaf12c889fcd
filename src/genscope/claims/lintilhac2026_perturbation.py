"""Claim C5: noise on the weights of the construction, and what it adds to the trace in the bound.

Source: lintilhac2026, Section 2.3 and Appendix E.3 (the perturbation is small beside the unperturbed sharpness).
Departures: the claim names its own.
Guarantee: the rule as in docs/claims.md, fixed before the data; it concerns the functions that were drawn, and no
others. Limits are normal ones, from means over 32 pairs of noise, at 95 % over all functions.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
import scipy  # whose parts load on first use: a listing of studies needs none of them

from genscope.claims._base import Claim, Decision, Part
from genscope.lab.results.reading import Reading
from genscope.studies import lintilhac2026_bounds, lintilhac2026_perturbation

TENTH = 0.1
SEMS = 3.0  # standard errors that are added to a measured change of the trace
_STATEMENT = "Δ(σ) is below a tenth of the trace at the σ of the bound, for every function"


def _c5(readings: Sequence[Reading]) -> list[Part]:
    frame = readings[0].frame.filter(pl.col("status") == "ok")
    rows = frame.filter(pl.col("constant") == "0.1") if "constant" in frame.columns else frame.clear()
    beside = _analytic(readings[1].frame) if len(readings) > 1 else {}
    if rows.is_empty():
        return [Part(_STATEMENT, "undecided", beside)]
    change, sem, trace = (rows[name].to_numpy() for name in ("perturbation", "perturbation_sem", "trace"))
    reach = float(scipy.special.ndtri(1 - 0.05 / 2 / len(rows)))
    ratio, error = np.abs(change) / trace, reach * sem / trace
    worst = int(np.argmax(np.where(np.isnan(ratio), np.inf, ratio)))
    low, high = float(np.max(ratio - error)), float(np.max(ratio + error))
    numbers: dict[str, Any] = {
        "largest |Δ(σ)| over the trace": float(ratio[worst]),
        "limits of the largest": [low, high],
        "at degree and sparsity": [int(rows["degree"][worst]), int(rows["sparsity"][worst])],
        "at σ": float(rows["sigma"][worst]),
        "share of functions above a tenth": float(np.mean(ratio > TENTH)),
        "functions": len(rows),
    }
    whole = readings[0].missing == 0 and len(frame) == len(readings[0].frame)
    return [Part(_STATEMENT, _decided(low, high, whole), numbers | beside)]


def _decided(low: float, high: float, whole: bool) -> Decision:
    """A number that is none decides nothing; one function above a tenth is enough."""
    if low > TENTH:
        return "fails"
    return "holds" if high < TENTH and whole else "undecided"


def _analytic(frame: pl.DataFrame) -> dict[str, Any]:
    """Beside: the largest change of the trace itself over the first-order analytic bound, at every σ of a mesh."""
    rows = frame.filter(pl.col("status") == "ok") if "status" in frame.columns else frame
    if rows.is_empty():
        return {}
    change, sem, bound, smoothed = (
        np.array(rows[name].to_list(), float)
        for name in ("trace_change", "trace_change_sem", "bound", "smoothed_change")
    )
    trace = rows["trace"].to_numpy()[:, None]
    return {
        "largest change of the trace over its analytic bound, beside": float(np.max((change + SEMS * sem) / bound)),
        "largest change of the trace over the trace, σ to 0.01, beside": float(np.max((change + SEMS * sem) / trace)),
        "largest |Δ(σ)| over the trace, σ to 0.01, beside": float(np.max(np.abs(smoothed) / trace)),
    }


_DELTA = "Δ(σ) is the change of the risk under noise that the bound needs; the paper measures that of the trace"
_ALWAYS = (f"{_DELTA}, which is shown beside with its first-order analytic bound",)
C5 = Claim(
    id="C5",
    statement="Under the bound's noise the sharpness of the construction changes little",
    source="lintilhac2026, Section 2.3",
    rule=(
        "T = 20, n = 8,192, C = 0.1: of every function of 20 classes (degrees 1 to 5, sparsities 2 to 20) |Δ(σ)| over "
        "the trace at the σ at which the semi-analytic bound is least. The largest over all functions: upper limit "
        "below 0.1 holds, lower limit above 0.1 fails (95 % over all functions); the change of the trace and its "
        "analytic bound are shown beside"
    ),
    studies={"quick": (lintilhac2026_bounds.STUDY,)}
    | dict.fromkeys(("standard", "paper"), (lintilhac2026_bounds.STUDY, lintilhac2026_perturbation.STUDY)),
    decide=_c5,
    weighs_failures=True,
    departures={
        "quick": ("one function per class; the change of the trace is not measured", _DELTA),
        "standard": ("five functions per class", *_ALWAYS),
        "paper": ("five functions per class", *_ALWAYS),
    },
)
