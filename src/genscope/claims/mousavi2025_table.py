"""Claim B11: Table 1 of MH25 from the runs of B5 and B6, an exponent in N for every architecture and task.

Source: mousavi2025, Table 1 and Theorem 1 (Theorems 3, 5, 7 and 9).
Departures: a theorem is about the best or the worst of a class of learners, a cell here about one trained network; the
paper's "N to a positive power" becomes an exponent above 0.6, and for the FFN, whose theorem is linear, above 1.
Guarantee: rule as in docs/claims.md, fixed before the data; intervals at 95 % after Bonferroni correction over cells.
"""

from collections.abc import Sequence
from typing import NamedTuple

from genscope.claims._base import Claim, Part, above
from genscope.claims._ratios import UNKNOWN
from genscope.claims._token_runs import MILD, growth, mild, numbers, resolved, runs
from genscope.claims.mousavi2025_training import OWN
from genscope.lab import Reading
from genscope.studies import mousavi2025_1str, mousavi2025_simple


class Cell(NamedTuple):
    """One entry of the table: an architecture, its theorem, and whether the samples are almost independent of N."""

    label: str
    architecture: str
    theorem: int
    tick: bool
    limit: float = MILD


ROWS = {
    "1STR": (
        Cell("FFN", "ffn", 9, False, 1.0),
        Cell("RNN", "gru", 7, False),
        Cell("Transformer", "transformer", 3, True),
    ),
    "simple-1STR": (
        Cell("FFN", "ffn", 9, False, 1.0),
        Cell("RNN", "gru", 5, True),
        Cell("Transformer", "transformer", 3, True),
    ),
}
CONFIDENCE = 1 - 0.05 / sum(map(len, ROWS.values()))


def _b11(readings: Sequence[Reading]) -> list[Part]:
    parts = []
    for (task, cells), reading in zip(ROWS.items(), readings, strict=True):
        frame = runs(reading)
        for cell in cells:
            lengths = resolved(frame, cell.architecture, draws=OWN)
            slope = growth(frame, cell.architecture, lengths) if len(lengths) > 2 else None
            found = UNKNOWN if slope is None else slope.interval(CONFIDENCE)
            words = "below" if cell.tick else "above"
            parts.append(
                Part(
                    f"{cell.label} on {task} (Theorem {cell.theorem}): an exponent {words} {cell.limit:g}",
                    mild(found, cell.limit) if cell.tick else above(found[1], found[2], cell.limit),
                    numbers(f"exponent of {cell.label} on {task}", found) | {f"N of {cell.label} on {task}": lengths},
                )
            )
    return parts


_STUDIES = (mousavi2025_1str.STUDY, mousavi2025_simple.STUDY)
_GRU = "the RNN is the public code's GRU"

B11 = Claim(
    id="B11",
    statement="Table 1: samples almost independent of N for the Transformer, and for the RNN on simple-1STR; not else",
    source="mousavi2025, Table 1",
    rule=(
        "Exponents in N of samples to three quarters of the risk 1 − 1/N of a predictor that ignores the index, over "
        "three or more N from 8 on with 3 draws each, all arrived: a tick is an upper limit below 0.6 (a lower one "
        "above 0.6 fails), a cross a lower limit above 0.6 (an upper one below 0.6 fails), for the FFN 1 in place of "
        "0.6 (99.2 % intervals); protocol of the public code"
    ),
    studies={"quick": (), "standard": _STUDIES, "paper": _STUDIES},
    decide=_b11,
    departures={
        "quick": ("no trials: undecided at this budget",),
        "standard": (_GRU, "q = 1"),
        "paper": (_GRU, "q = 1"),
    },
)
