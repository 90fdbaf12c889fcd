"""Claim B10: recurrent networks that solve 1STR are wide and heavy, and lighter ones fit a sample.

Source: mousavi2025, Proposition 6, Theorem 7 and Lemma 36.
Guarantee: rule as in docs/claims.md, fixed before the data. Limits of means are Student's, those of exponents as in
`_growth`, all at 95 % after Bonferroni correction over every limit of the claim. That no network is lighter than the
proved form of Proposition 6, and that Lemma 36's network interpolates, only an error of the code can fail.
"""

from collections.abc import Callable, Sequence

import numpy as np
import polars as pl

from genscope.claims._base import Claim, Decision, Part, above, code_check
from genscope.claims._growth import Coefficient, exponent
from genscope.claims.mousavi2025_stationary import _every, _limits
from genscope.lab import Reading
from genscope.studies import mousavi2025_recurrent_norms
from genscope.studies.mousavi2025_recurrent_norms import ALLOWED, FITTED, RISK

SPECTRAL = 0.5  # exponent in N of the norm that Proposition 6 asks for
LEMMA = 1 / 6  # of the samples that Theorem 7 says are fitted, 1/(3 L_y) with two layers
OVERFITTED = 0.5  # risk, where predicting 0 has 1
EXACT = 1e-6  # error of Lemma 36's network on its samples
_LENGTHS = 3  # of prompts, at least
_TOO_LONG = "without trials: those that the rule needs take minutes of a processor"
_SIZES = (
    "d = 2; transitions linear and by position; risks 0.1 and 0.01 for the paper's constants; least norms by descent"
)


def _b10(readings: Sequence[Reading]) -> list[Part]:
    frame = readings[0].frame
    rows = frame.filter(pl.col("status") == "ok")
    general, narrow, fit = (rows.filter(network=name) for name in ("general", "narrow", "fit"))
    arrived = bool((general["risk"] <= RISK).all() and (fit["training_risk"] <= ALLOWED * FITTED).all())
    complete = len(rows) == len(frame) and readings[0].missing == 0
    lengths = sorted(general["context_length"].unique())
    tests = 2 + 3 * max(len(lengths), 1)

    def grown(column: str) -> Coefficient:
        pairs = general["context_length"].to_numpy().astype(float), general[column].to_numpy().astype(float)
        usable = arrived and len(lengths) >= _LENGTHS and bool((pairs[1] > 0).all())
        return exponent([pairs], confidence=1 - 0.05 / tests) if usable else Coefficient(None)

    def at_each(decision: Callable[[int], Decision]) -> Decision:
        found: list[Decision] = [decision(length) for length in lengths] if arrived else []
        return _every(found, complete and len(lengths) >= _LENGTHS)

    def mean(found: pl.DataFrame, column: str, length: int) -> tuple[float, float]:
        return _limits(found.filter(context_length=length)[column], tests)

    def lighter(length: int) -> Decision:
        logs = [part.filter(context_length=length)["squared_norm"].log() for part in (fit, general)]
        (low, high), (least, most) = (_limits(each, 2 * tests) for each in logs)
        return above(least - high, most - low, 0.0)

    spectral, lemma = grown("spectral"), grown("lemma_samples")
    error = general["lemma_error"].max() if len(general) else None
    proved = (general["frobenius"] >= general["bound"]).all()
    exact = proved and (general["lemma_error"] <= EXACT).all()
    checked: Decision = "fails" if not exact else "holds" if complete and arrived else "undecided"
    return [
        code_check(
            "no network is lighter than Proposition 6 proves, and Lemma 36's network interpolates",
            checked,
            {"largest error on a sample": error},
        ),
        Part(
            "the norm on the states, times the Lipschitz constant behind it, grows at least like √N",
            _grows(spectral, SPECTRAL, complete),
            {
                "exponent": spectral.value,
                "interval": spectral.interval,
                "exponent of ‖Θ‖²": grown("squared_norm").value,
            },
        ),
        Part(
            "states of N/2 units do not reach the risk 0.1",
            at_each(lambda length: above(*mean(narrow, "risk", length), RISK)),
            _means(narrow, "risk", "risk"),
        ),
        Part(
            "a network that fits 4N samples is lighter than those that generalize",
            at_each(lighter),
            _means(general, "squared_norm", "‖Θ‖², general") | _means(fit, "squared_norm", "‖Θ‖², fit"),
        ),
        Part(
            "and does not generalize: its risk is above ½",
            at_each(lambda length: above(*mean(fit, "risk", length), OVERFITTED)),
            _means(fit, "risk", "risk"),
        ),
        Part(
            "the samples that Lemma 36's network fits below the norm of those grow at least like the sixth root of N",
            _grows(lemma, LEMMA, complete),
            {"exponent": lemma.value, "interval": lemma.interval} | _means(general, "lemma_samples", "samples"),
        ),
    ]


def _grows(found: Coefficient, limit: float, complete: bool) -> Decision:
    decision = above(found.low, found.high, limit)
    return decision if complete or decision == "fails" else "undecided"


def _means(found: pl.DataFrame, column: str, name: str) -> dict[str, float]:
    return {
        f"N = {length}: {name}": round(float(np.mean(cell[column].to_numpy())), 3)
        for (length,), cell in sorted(found.group_by("context_length"))
    }


B10 = Claim(
    id="B10",
    statement="RNNs that solve 1STR are wide and heavy; lighter ones fit a sample and do not generalize",
    source="mousavi2025, Proposition 6 and Theorem 7",
    rule=(
        "RNNs of Theorem 7 with two output layers, descended to the least norm: with risk 0.1 (N units in a state, and "
        "N/2), and with empirical risk 0.01 on 4N samples. Five parts. Exponent in N of 𝔏‖U‖√log(1 + d_h), spectral "
        "norm of the weights on the states times Lipschitz constant behind them: lower limit above ½ (an upper one "
        "below fails). At every N: mean risk with N/2 units above 0.1; mean log norm of fits below that of networks "
        "that generalize; mean risk of fits above ½ (by their limits; on the other side at one N fails). Exponent in N "
        "of the samples that Lemma 36's network fits below the norm of a network that generalizes: lower limit above "
        "1/6 (an upper one below fails). 95 % limits after Bonferroni correction over all of them; a run that misses "
        "its risk leaves the claim undecided. Checks of the code: Proposition 6 as proved, Lemma 36's network exact"
    ),
    studies={"quick": ()} | dict.fromkeys(("standard", "paper"), (mousavi2025_recurrent_norms.STUDY,)),
    decide=_b10,
    departures={"quick": (_TOO_LONG,), "standard": (_SIZES,), "paper": (_SIZES,)},
)
