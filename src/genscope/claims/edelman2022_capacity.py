"""Claims A1 and A2: the capacity of bounded-norm attention in EGKZ22.

Source: edelman2022, Lemma 4.3, Corollary 4.5, the sum of heads in Section 4, and Theorem 4.7.
Departures: each claim names its own.
Guarantee: rules as in docs/claims.md, fixed before the data; A1 rests on the largest ratio that a search found, A2 is
exact.
"""

import math
from collections.abc import Sequence

import polars as pl

from genscope.claims._base import Claim, Decision, Part
from genscope.lab import Reading
from genscope.measure.lipschitz import ROUNDING
from genscope.studies import edelman2022_capacity, edelman2022_lipschitz

AFFINE = 1e-9  # relative change of an order form's slope that rounding explains
RISE = 0.05
LENGTHS = (10**3, 10**9)  # the range that decides


def _a1(readings: Sequence[Reading]) -> list[Part]:
    frame = readings[0].frame.filter(pl.col("status") == "ok")
    if frame.is_empty():
        return [Part("no ratio above 1", "undecided", {})]
    head, deep = (frame.filter(pl.col("inequality") == name) for name in ("head", "deep"))
    drawn, climbed, halved = (_largest(head[name]) for name in ("worst_random", "worst_gradient", "worst_weakened"))
    numbers = {
        "worst ratio, random search": drawn,
        "worst ratio, gradient search": climbed,
        "1 minus that": 1 - climbed,
        "worst ratio, two layers, beside": _largest(deep["worst_gradient"]),
    }
    return [
        Part("no ratio above 1", _decided(max(drawn, climbed) <= 1 + ROUNDING), numbers),
        Part(
            "a violation when the constant is halved",
            _decided(halved > 1 + ROUNDING),
            {"worst ratio, constant halved": halved},
        ),
    ]


def _a2(readings: Sequence[Reading]) -> list[Part]:
    frame = readings[0].frame.filter(pl.col("status") == "ok")
    if frame.is_empty():
        return [Part("the bounds grow like log T", "undecided", {})]
    parts = []
    for (form, bound), each in frame.sort("context_length").group_by("form", "bound", maintain_order=True):
        slopes = each["slope"].to_list()
        whole = LENGTHS[0] in each["context_length"] and LENGTHS[1] in each["context_length"]
        rise = max(later / earlier - 1 for i, earlier in enumerate(slopes) for later in slopes[i:])
        change = max(slopes) / min(slopes) - 1
        if form == "order":
            statement, decided = f"{bound}, order form: affine in log T", change <= AFFINE
        else:
            statement, decided = f"{bound}, explicit form: slope in log T rises by less than 5 %", rise < RISE
        numbers = {
            f"{bound}, {form}: slope, first and last": [slopes[0], slopes[-1]],
            f"{bound}, {form}: rise of the slope": rise,
        }
        parts.append(Part(statement, _decided(decided) if whole else "undecided", numbers))
    return parts


def _largest(ratios: pl.Series) -> float:
    """The largest, where one that is no number counts as a violation."""
    return max((math.inf if math.isnan(ratio) else ratio for ratio in ratios), default=-math.inf)


def _decided(holds: bool) -> Decision:
    return "holds" if holds else "fails"


A1 = Claim(
    id="A1",
    statement="The head's Lipschitz inequality holds, and no ratio found by search exceeds 1",
    source="edelman2022, Lemma 4.3",
    rule=(
        "No ratio of the two sides above 1 (by more than 1e-8, rounding) in random and gradient search; the same "
        "search finds a ratio above 1 when the constant is halved"
    ),
    studies=dict.fromkeys(("quick", "standard", "paper"), (edelman2022_lipschitz.STUDY,)),
    decide=_a1,
    departures=dict.fromkeys(
        ("quick", "standard", "paper"), ("softmax constant 1, which is sharp, where the paper has 2",)
    ),
)
A2 = Claim(
    id="A2",
    statement="The capacity bounds grow like log T in the context length and not faster",
    source="edelman2022, Corollary 4.5, Section 4, Theorem 4.7",
    rule=(
        "Over T = 10³ … 10⁹, for one head, eight heads and two layers: order forms have a constant slope in log T (to "
        "1e-9); the slope of explicit forms nowhere rises by 5 % or more above an earlier one"
    ),
    studies=dict.fromkeys(("quick", "standard", "paper"), (edelman2022_capacity.STUDY,)),
    decide=_a2,
)
