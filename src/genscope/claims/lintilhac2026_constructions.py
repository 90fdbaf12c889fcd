"""Claims C1 and C2: the Fourier construction of LS26 is exact, and its norm and sharpness are what formulas say.

Source: lintilhac2026, Appendix B; Theorems 10, 13 and 14.
Departures: each claim names its own.
Guarantee: rules as in docs/claims.md, fixed before the data; both compare numbers in float64, without sampling.
"""

from collections.abc import Sequence

import polars as pl

from genscope.claims._base import Claim, Decision, Part
from genscope.lab import Reading
from genscope.studies import lintilhac2026_constructions as study

EXACT, CLOSED, DIFFERENTIATED = 1e-12, 1e-6, 1e-5
# Squared norm, trace with all parameters, trace with few: worked out apart from this program, to six decimals.
EXPECTED = {
    "G1": (1378.157242, 431.066445, 330.064196),
    "G2": (1805.654776, 1426.270328, 1294.267562),
    "G3": (2436.774532, 589.839521, 76.352550),
    "G4": (3603.026696, 3502.947969, 3356.500445),
    "G5": (19424.263381, 20976.186740, 20976.186740),
    "G6": (1964.477016, 1188.827135, 904.063458),
}
BUDGETS = ("quick", "standard", "paper")


def _c1(readings: Sequence[Reading]) -> list[Part]:
    reading = readings[0]
    done = reading.frame.filter(pl.col("status") == "ok")
    largest = _largest(done, "max_error")
    blurred = _smallest(done, "blurred_error")
    return [
        Part(
            "no error beyond rounding on any input",
            _decided(reading, largest is not None and largest <= EXACT),
            {"cases": f"{len(done)} of {len(reading.frame)}", "largest error": largest},
        ),
        Part(
            "an error beyond rounding in every case when attention is half as sharp",
            _decided(reading, blurred is not None and blurred > EXACT),
            {"smallest largest error, half as sharp": blurred},
        ),
    ]


def _c2(readings: Sequence[Reading]) -> list[Part]:
    reading = readings[0]
    done = reading.frame.filter(pl.col("status") == "ok")
    rows = list(done.iter_rows(named=True))
    apart = [
        abs(row[name] / expected - 1)
        for row in rows
        for name, expected in zip(("norm_squared", "trace_full", "trace_minimal"), EXPECTED[row["case"]], strict=True)
    ]
    off = max(apart, default=None)
    norm = _largest(done, "norm_gap")
    slopes, second = (done.filter(pl.col("method") == method) for method in ("gradients", "Hessian"))
    block, trace = _largest(slopes, "block_gap"), _largest(second, "trace_gap")
    return [
        Part(
            "closed forms of norm and trace have the values worked out apart",
            _decided(reading, off is not None and off <= CLOSED),
            {"cases": len({row["case"] for row in rows}), "largest relative difference of closed forms": off},
        ),
        Part(
            "squared norms of all blocks agree with Theorem 10",
            _decided(reading, norm is not None and norm <= CLOSED),
            {"largest relative difference of a norm": norm},
        ),
        Part(
            "squared gradients of all blocks agree with Theorem 14, completed",
            _decided(reading, block is not None and block <= CLOSED),
            {
                "largest difference of a block's gradient, relative to the trace": block,
                "largest share of the trace that the printed theorem leaves out": _largest(done, "unpublished"),
            },
        ),
        Part(
            "the trace of the Hessian by automatic differentiation agrees with Theorem 13",
            _decided(reading, trace is not None and trace <= DIFFERENTIATED),
            {"traces by all Hessian-vector products": len(second), "largest relative difference of a trace": trace},
        ),
    ]


def _decided(reading: Reading, agrees: bool) -> Decision:
    """A difference in what was computed decides; agreement only when everything was."""
    done = reading.frame.filter(pl.col("status") == "ok")
    if len(done) and not agrees:
        return "fails"
    return "holds" if agrees and not reading.missing and len(done) == len(reading.frame) else "undecided"


def _largest(frame: pl.DataFrame, column: str) -> float | None:
    """The largest number of a column; one that is not a number is larger than all."""
    values = frame[column].to_list() if len(frame) else []
    return max((float("inf") if value is None or value != value else value for value in values), default=None)


def _smallest(frame: pl.DataFrame, column: str) -> float | None:
    values = frame[column].to_list() if len(frame) else []
    return min((-float("inf") if value is None or value != value else value for value in values), default=None)


C1 = Claim(
    id="C1",
    statement="The Fourier construction is exact on the whole cube",
    source="lintilhac2026, Appendix B",
    rule=(
        "Largest error over all inputs at most 1e-12 when positions without a component get a share of 1e-14 of the "
        "second attention, in eight shapes of 6 to 14 bits, degrees 2 to 12 and 1 to 8 components; and above 1e-12 in "
        "each of them when the first attention is half as sharp"
    ),
    studies=dict.fromkeys(BUDGETS, (study.CUBES,)),
    decide=_c1,
    weighs_failures=True,
    departures=dict.fromkeys(
        BUDGETS,
        (
            "positions without a component get logits -M, where the paper has 0, and the residual drops the bit: with "
            "the printed weights the network computes another function (see docs/errata.md)",
        ),
    ),
)

C2 = Claim(
    id="C2",
    statement="Its norms, gradients and Hessian trace agree with the closed forms",
    source="lintilhac2026, Theorems 10, 13 and 14",
    rule=(
        "Six functions: closed forms within 1e-6 of values worked out apart, squared norms and squared gradients of "
        "every block within 1e-6 of those of the weights, the trace of the Hessian by automatic differentiation within "
        "1e-5"
    ),
    studies=dict.fromkeys(BUDGETS, (study.TRACES,)),
    decide=_c2,
    weighs_failures=True,
    departures={
        "quick": (
            "the rows of F that write positions are added to Theorem 14",
            "gradients of three functions, Hessians of the other three, with all parameters",
        ),
        "standard": ("the rows of F that write positions are added to Theorem 14", "Hessians of four functions"),
        "paper": ("the rows of F that write positions are added to Theorem 14",),
    },
)
