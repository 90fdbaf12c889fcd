"""Claim C9: PAC-Bayes against covering numbers on tilings of parities in LS26.

Source: lintilhac2026, Appendix E.3.
Departures: the claim names its own.
Guarantee: the rule as in docs/claims.md, fixed before the data; arithmetic on closed forms.
"""

from collections.abc import Sequence

import polars as pl

from genscope.claims._base import Claim, Part
from genscope.lab import Reading
from genscope.studies import lintilhac2026_tilings
from genscope.studies.lintilhac2026_tilings import VARIANCE

AT = {"context_length": 64, "degree": 2, "sample_size": 10**8}
_WORDS = {
    ("tuned", 0.1): "tuned weights",
    ("covering", 0.1): "covering bound",
    ("paper", 0.1): "paper's weights, beside",
    ("tuned", 0.5): "tuned, C = ½ (losses clipped at 1), beside",
    ("tuned-clipped", 0.5): "tuned, form for losses clipped at 1, beside",
}


def _c9(readings: Sequence[Reading]) -> list[Part]:
    frame = readings[0].frame.filter(pl.col("status") == "ok")
    if frame.is_empty():
        return [Part("below ¼ and below the covering bound", "undecided", {})]
    frame = frame.filter(pl.col(axis) == value for axis, value in AT.items())
    values = {(bound, c): value for bound, c, value in frame.select("bound", "constant", "value").iter_rows()}
    numbers = {word: values[key] for key, word in _WORDS.items() if key in values}
    tuned, cover = values.get(("tuned", 0.1)), values.get(("covering", 0.1))
    if tuned is None or cover is None:
        return [Part("below ¼ and below the covering bound", "undecided", numbers)]
    return [
        Part("non-vacuous: below the variance ¼", "holds" if tuned < VARIANCE else "fails", numbers),
        Part("below the covering bound", "holds" if tuned < cover else "fails", {"ratio": tuned / cover}),
    ]


C9 = Claim(
    id="C9",
    statement="The PAC-Bayes bound is non-vacuous, and below the covering bound on tilings of parities",
    source="lintilhac2026, Appendix E.3",
    rule=(
        "T = 64, k = 2, n = 10⁸, C = 0.1, tuned weights: the truncated bound is below ¼, the variance of the labels, "
        "and below the covering bound of the same network; the paper's weights and a clipped loss are shown beside"
    ),
    studies=dict.fromkeys(("quick", "standard", "paper"), (lintilhac2026_tilings.STUDY,)),
    decide=_c9,
    departures=dict.fromkeys(
        ("quick", "standard", "paper"),
        (
            "weights rescaled to the least product of norm and trace; with the paper's own the bound is vacuous here",
            "C = 0.1 is the paper's fit to trained networks, and the remainder beyond the quadratic term is left out: "
            "not a certificate",
            "the covering bound is a composition of ours, with universal constants at 1",
        ),
    ),
)
