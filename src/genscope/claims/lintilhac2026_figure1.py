"""Claim C10: the bound of Figure 1 grows with degree and sparsity, and says something at the paper's sizes.

Source: lintilhac2026, Figure 1 and Section 2.1.
Departures: the claim names its own.
Guarantee: the rule as in docs/claims.md, fixed before the data that decide; a first computation had been seen.
"""

from collections.abc import Sequence
from typing import Any

import polars as pl

from genscope.claims._base import Claim, Decision, Part, above
from genscope.claims._growth import exponent
from genscope.lab.results.reading import Reading
from genscope.studies import lintilhac2026_bounds
from genscope.studies.lintilhac2026_bounds import VARIANCE

SUPERLINEAR = 1.0
CONSTANTS = {"0.1": "C = 0.1", "fitted": "C fitted"}
CONFIDENCE = 1 - 0.05 / 4  # two exponents for each constant; vacuity is a comparison of numbers
AXES = (("degree", "sparsity"), ("sparsity", "degree"))


def _c10(readings: Sequence[Reading]) -> list[Part]:
    frame = readings[0].frame.filter(pl.col("status") == "ok")
    parts = []
    for constant, words in CONSTANTS.items():
        chosen = frame.filter(pl.col("constant") == constant) if "constant" in frame.columns else frame.clear()
        kept = chosen.filter("converged") if len(chosen) else chosen
        counts = {f"bounds, {words}": len(kept), f"runs that did not converge, {words}": len(chosen) - len(kept)}
        parts += [_growth(kept, axis, fixed, words, counts) for axis, fixed in AXES]
        parts.append(_non_vacuous(kept, words, whole=readings[0].missing == 0 and len(kept) == len(chosen)))
    return parts


def _growth(frame: pl.DataFrame, axis: str, fixed: str, words: str, counts: dict[str, Any]) -> Part:
    statement = f"{words}: the bound grows superlinearly with {axis} at fixed {fixed}"
    groups = [
        (group[axis].cast(pl.Float64).to_numpy(), group["semi_analytic"].to_numpy())
        for _, group in (frame.group_by(fixed, maintain_order=True) if len(frame) else ())
    ]
    found = exponent(groups, confidence=CONFIDENCE)
    numbers = {f"exponent in {axis}, {words}": found.value, f"exponent in {axis}, interval, {words}": found.interval}
    decision: Decision = "undecided" if found.value is None else above(found.low, found.high, SUPERLINEAR)
    return Part(statement, decision, numbers | counts)


def _non_vacuous(frame: pl.DataFrame, words: str, *, whole: bool) -> Part:
    """Every class's mean below the best constant; one above fails, whatever is missing."""
    statement = f"{words}: the bound is non-vacuous in every class"
    if frame.is_empty():
        return Part(statement, "undecided", {})
    names = ("semi_analytic", "direct", "truncated", "analytic")
    classes = frame.group_by("degree", "sparsity", maintain_order=True).agg(pl.col(*names).mean())
    most = float(classes["semi_analytic"].max())  # pyright: ignore[reportArgumentType]  # a column of floats
    numbers = {
        f"{name} bound, least and largest class, {words}": [classes[name].min(), classes[name].max()] for name in names
    }
    numbers |= {
        f"C used, {words}": [frame["constant_used"].min(), frame["constant_used"].max()],
        f"dominated networks, {words}": frame["dominated"].drop_nulls().mean(),
    }
    decision: Decision = "fails" if most >= VARIANCE else "holds" if whole else "undecided"
    return Part(statement, decision, numbers)


_ALWAYS = (
    "sparsities 2, 5, 10 and 20 are ours; labels have variance 1, the risk of the best constant",
    "the bounds speak of networks that the construction dominates, and no constant fitted to losses is covered by the "
    "theorem",
)
C10 = Claim(
    id="C10",
    statement="The bound grows superlinearly with degree and with sparsity, and is non-vacuous at the paper's sizes",
    source="lintilhac2026, Figure 1",
    rule=(
        "T = 20, n = 8,192, the paper's weights, semi-analytic bound at its best σ; with C = 0.1 (20 classes) and with "
        "C fitted to a network trained on the same function (classes whose runs converge). Exponent of the bound in "
        "degree at fixed sparsity and in sparsity at fixed degree (least squares of logarithms, levels of their own): "
        "98.75 % interval above 1 holds, below fails. Non-vacuous: the mean of every class is below 1, the risk of the "
        "best constant; one that is not fails"
    ),
    studies=dict.fromkeys(("quick", "standard", "paper"), (lintilhac2026_bounds.STUDY,)),
    decide=_c10,
    departures={
        "quick": ("C = 0.1 alone; what is fitted takes 5 processor minutes of training", *_ALWAYS),
        "standard": ("C is fitted in seven classes, up to degree 3 and sparsity 20 at degree 1", *_ALWAYS),
        "paper": _ALWAYS,
    },
)
