"""Claim A3: the representation theorem of EGKZ22, by building what it promises.

Source: edelman2022, Section 5.
Departures: the claim names them.
Guarantee: rule as in docs/claims.md; the check of each case is that of `constructions.verify`.
"""

from collections.abc import Sequence

import polars as pl

from genscope.claims._base import Claim, Decision, Part
from genscope.lab import Reading
from genscope.studies import edelman2022_constructions

WORDS = {
    "threshold": "thresholds of positional tokens by tf-scalar, exactly",
    "bag-threshold": "thresholds of a bag of vectors by tf-scalar, to within ε = 0.01",
    "symmetric": "symmetric functions of positional tokens by tf+mlp, exactly",
    "bag-symmetric": "symmetric functions of a bag of vectors by tf+mlp, exactly",
    "any": "all functions of positional tokens by tf+mlp, exactly",
    "bag-any": "all functions of a bag of vectors by tf+mlp, exactly",
    "random-any": "all functions of random tokens of low dimension by tf+mlp, exactly",
}
ROUNDING = 1e-9  # of a norm against its formula


def _a3(readings: Sequence[Reading]) -> list[Part]:
    return [_part(readings[0], name, words) for name, words in WORDS.items()]


def _part(reading: Reading, construction: str, words: str) -> Part:
    rows = reading.frame.filter(pl.col("construction") == construction)
    done = rows.filter(pl.col("status") == "ok")
    bad = done.filter(~pl.col("verified") | ~(pl.col("norm_excess") <= 1 + ROUNDING))
    decision: Decision = "holds"
    if len(bad):
        decision = "fails"
    elif reading.missing or not len(rows) or len(done) < len(rows):
        decision = "undecided"
    numbers = {
        f"{construction}: cases": f"{len(done) - len(bad)} of {len(rows)}",
        f"{construction}: largest error": done["max_error"].max() if len(done) else None,
        f"{construction}: largest norm over its formula": done["norm_excess"].max() if len(done) else None,
    }
    return Part(words, decision, numbers)


A3 = Claim(
    id="A3",
    statement=(
        "tf-scalar approximates a monotone symmetric s-sparse function; tf+mlp represents every symmetric and every "
        "general s-sparse function exactly, within the stated norms, for each encoding"
    ),
    source="edelman2022, Section 5",
    rule=(
        "Every case is built and verified in float64 (all inputs to T = 20; beyond, all patterns of the support "
        "against equal, random and adversarial irrelevant bits): no error beyond the promised one, and each weight's "
        "norm at most its formula"
    ),
    studies=dict.fromkeys(("quick", "standard", "paper"), (edelman2022_constructions.STUDY,)),
    decide=_a3,
    weighs_failures=True,
    departures=dict.fromkeys(
        ("quick", "standard", "paper"), ("cases of 3 to 5 relevant bits out of 12 to 1,000, three of each",)
    ),
)
