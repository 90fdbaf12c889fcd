"""Claim B9: what feedforward networks trained to stationarity lose beyond Theorem 9 of MH25.

Source: mousavi2025, Theorem 9 and Definition 8.
Guarantee: rule as in docs/claims.md, fixed before the data. Limits are those of Student's t for means over samples, at
95 % after Bonferroni correction over all cells. The first two parts follow from the theorem, and only an error of the
code can fail them; the third is what training does.
"""

import math
from collections.abc import Sequence

import polars as pl
import scipy

from genscope.claims._base import Claim, Decision, Part
from genscope.lab import Reading
from genscope.studies import mousavi2025_ffn_trained

OUTSIDE = 1e-8  # of the first layer, beyond the span of the sample, against its norm before training
HALF = 0.5  # of what predicting 0 loses beyond the theorem, n / (Nd)
_BUDGETS = ("quick", "standard", "paper")
_SMALL = "N = 5, d = 4; GELU in place of ReLU"


def _limits(values: pl.Series, cells: int) -> tuple[float, float]:
    """Of the mean, two-sided at 95 % over all cells; open where one value or none is there."""
    if len(values) < 2 or not all(map(math.isfinite, values)):
        return -math.inf, math.inf
    reach = scipy.special.stdtrit(len(values) - 1, 1 - 0.025 / cells) * values.std() / math.sqrt(len(values))
    return values.mean() - reach, values.mean() + reach


def _every(decisions: Sequence[Decision], complete: bool) -> Decision:
    if "fails" in decisions:
        return "fails"
    return "holds" if complete and decisions and set(decisions) == {"holds"} else "undecided"


def _b9(readings: Sequence[Reading]) -> list[Part]:
    frame = readings[0].frame
    rows = frame.filter(pl.col("status") == "ok")
    if rows.is_empty():
        return [Part("stationary networks lie in the span of their sample", "undecided", {})]
    complete = len(rows) == len(frame) and readings[0].missing == 0
    stationary = rows.filter("stationary")
    worst = stationary["outside"].max() if len(stationary) else None
    reached = complete and len(stationary) == len(rows)
    inside: Decision = "fails" if (stationary["outside"] > OUTSIDE).any() else "holds" if reached else "undecided"
    cells = {
        (str(network), float(decay), int(size)): cell
        for (network, decay, size), cell in stationary.group_by("network", "decay", "sample_size")
    }
    shares = {cell: _limits(found["excess_share"], len(cells)) for cell, found in cells.items()}
    sizes = sorted({size for *_, size in shares})
    by_size = [[limits for (*_, size), limits in shares.items() if size == each] for each in sizes]
    means = {cell: float(found["excess_share"].to_numpy().mean()) for cell, found in cells.items()}
    least = [min(share for (*_, size), share in means.items() if size == each) for each in sizes]
    return [
        Part(
            "every run is stationary, its first layer in the span of the sample",
            inside,
            {"largest share outside": worst, "stationary": f"{len(stationary)} of {len(rows)}"},
        ),
        Part(
            "the mean risk over u is at least 1 − n/(Nd)",
            _every(["fails" if high < 0 else "holds" for _, high in shares.values()], reached),
            {"least upper limit of the excess": min((high for _, high in shares.values()), default=None)},
        ),
        Part(
            "training loses less than n/(2Nd) beyond that",
            _every([_below(limits) for limits in by_size], reached and len(sizes) >= 2),
            {
                f"n = {size}: least excess over n/(Nd)": round(share, 3)
                for size, share in zip(sizes, least, strict=True)
            },
        ),
    ]


def _below(limits: Sequence[tuple[float, float]]) -> Decision:
    """Whether some network is below half, by one of the cells of a sample size."""
    if any(high < HALF for _, high in limits):
        return "holds"
    return "fails" if all(low > HALF for low, _ in limits) else "undecided"


B9 = Claim(
    id="B9",
    statement="FFNs trained to stationarity on n < Nd samples come near the least risk that Theorem 9 leaves them",
    source="mousavi2025, Theorem 9",
    rule=(
        "Two kinds of networks, two decays each, n = ¼, ½ and ¾ of Nd, four fresh u to a sample. Checks of the code: "
        "every run stationary, the first layer outside the span of its sample by at most 1e-8 of its norm at the "
        "start; no mean risk with an upper limit below 1 − n/(Nd). The claim: at every n the mean excess over "
        "1 − n/(Nd) of one kind at one decay has an upper limit below n/(2Nd), half of what predicting 0 loses; it "
        "fails if at one n all of them have a lower limit above (95 % limits of means over samples, after Bonferroni "
        "correction over all cells)"
    ),
    studies=dict.fromkeys(_BUDGETS, (mousavi2025_ffn_trained.STUDY,)),
    decide=_b9,
    departures=dict.fromkeys(_BUDGETS, (_SMALL,)) | {"quick": (_SMALL, "one kind of network at one decay")},
)
