"""Claim C8: degree and sparsity of a function can be found by asking it.

Source: lintilhac2026, Figure 8.
Departures: the claim names them.
Guarantee: rule as in docs/claims.md, fixed before the data; the share has an exact (Clopper–Pearson) interval at 95 %.
"""

from collections.abc import Sequence

import polars as pl

from genscope.claims._base import Claim, Part, above
from genscope.estimate import clopper_pearson
from genscope.lab import Reading
from genscope.studies import lintilhac2026_probes, lintilhac2026_probes_trained

SHARE = 0.95  # of functions whose degree and sparsity are both right

_STATEMENT = "our testers find degree and sparsity of at least 95 % of the functions"


def _c8(readings: Sequence[Reading]) -> list[Part]:
    rows = readings[0].frame
    ours = rows.filter(pl.col("restriction") == "affine") if "restriction" in rows.columns else rows.clear()
    done = ours.filter(pl.col("status") == "ok")
    if done.is_empty():
        return [Part(_STATEMENT, "undecided", {})]
    right = int((done["exact_degree"] & done["exact_sparsity"]).sum())
    low, high = clopper_pearson(right, len(done))
    # A trial that is missing or broke may turn out either way.
    open_ = len(ours) - len(done) + readings[0].missing
    decision = above(
        clopper_pearson(right, len(done) + open_)[0], clopper_pearson(right + open_, len(done) + open_)[1], SHARE
    )
    numbers = {
        "functions": len(done),
        "share right": right / len(done),
        "interval": [low, high],
        "queries of both testers, mean": done["queries"].mean(),
        "recovered whole by probe": done["recovered"].mean(),
        "queries of probe, mean": done["probe_queries"].mean(),
    }
    for reading in readings[1:]:
        numbers |= _trained(reading.frame)
    return [Part(_STATEMENT, decision, numbers | _coordinates(rows))]


def _trained(rows: pl.DataFrame) -> dict[str, object]:
    """Trained networks that converged, reported beside: how often degree and components are those of the target."""
    done = (
        rows.filter((pl.col("status") == "ok") & pl.col("converged")) if "converged" in rows.columns else rows.clear()
    )
    numbers: dict[str, object] = {"trained networks that converged": f"{len(done)} of {len(rows)}"}
    for name, tolerance in lintilhac2026_probes_trained.TOLERANCES.items() if len(done) else ():
        right, degrees = int(done[f"{name}_right"].sum()), int((done[f"{name}_degree"] == done["degree"]).sum())
        numbers[f"trained, tolerance {tolerance}: degree of the target"] = f"{degrees} of {len(done)}"
        numbers[f"trained, tolerance {tolerance}: components of the target"] = f"{right} of {len(done)}"
    return numbers


def _coordinates(rows: pl.DataFrame) -> dict[str, float]:
    """The paper's restriction, reported beside: how often it is right, and what it counts instead of the largest s."""
    done = rows.filter((pl.col("restriction") == "coordinate") & (pl.col("status") == "ok"))
    numbers = {}
    for (length,), part in done.sort("context_length").group_by("context_length", maintain_order=True):
        most = part.filter(pl.col("sparsity") == pl.col("sparsity").max())
        numbers[f"coordinates, T = {length}: share right"] = part["exact_sparsity"].mean()
        numbers[f"coordinates, T = {length}: mean count of s = {most['sparsity'][0]}"] = most["found_sparsity"].mean()
    return numbers


C8 = Claim(
    id="C8",
    statement="Property testing recovers degree and spectral sparsity of a function from queries",
    source="lintilhac2026, Figure 8",
    rule=(
        "The share of random functions (degrees 1 to 5, 2 to 20 components) whose degree and sparsity are both found "
        "by our testers for coefficients in general position, with an exact 95 % interval: above 0.95; the restriction "
        "to coordinates and trained networks are reported beside"
    ),
    studies={"quick": (lintilhac2026_probes.STUDY,)}
    | dict.fromkeys(("standard", "paper"), (lintilhac2026_probes.STUDY, lintilhac2026_probes_trained.STUDY)),
    decide=_c8,
    weighs_failures=True,
    departures={
        budget: (
            "the degree test has dead bits and the restriction is affine, where the paper's tests are of the degree "
            "over the field of two elements and of restrictions to coordinates",
            *(("target functions alone, no trained networks",) if budget == "quick" else ()),
        )
        for budget in ("quick", "standard", "paper")
    },
)
