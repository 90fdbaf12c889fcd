"""Claims A8 and A9: how the sample sizes that suffice, and at which half of the runs succeed, grow with the context.

Source: edelman2022, Figure 2 and Section 6, read as statements about samples: its own figure counts single runs at
80 %, which measures unlucky initializations as well (A4).
Departures: restarts are ours, and so is the comparison with an ideal learner.
Guarantee: rules as in docs/claims.md, fixed before the data; intervals at 95 % after Bonferroni correction over the
contexts and the slope.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import scipy  # whose parts load on first use: a listing of studies needs none of them

from genscope.claims._base import Claim, Decision, Part, above
from genscope.claims.edelman2022 import law_leads
from genscope.lab import Reading, Study, Threshold
from genscope.studies._bit_restarts import RUNS, TOGETHER, UNLABELLED
from genscope.studies.edelman2022_and import AND, BALANCED
from genscope.studies.edelman2022_and_restarts import HALF, STUDY
from genscope.studies.edelman2022_and_restarts_long import LENGTHS
from genscope.studies.edelman2022_and_restarts_long import STUDY as LONG
from genscope.tasks import ideal_sample_size

RATIO = 2.5  # to the ideal learner's sample
SLOPE = 0.15  # of the logarithm of that ratio against the logarithm of the context length
LONGEST = max(LENGTHS["standard"])  # contexts to which A9 has to reach


def below(low: float | None, high: float | None, limit: float) -> Decision:
    """Whether a number with the interval [low, high] is below a limit."""
    decision = above(low, high, limit)
    return {"holds": "fails", "fails": "holds"}.get(decision, "undecided")  # pyright: ignore[reportReturnType]


def sufficient(found: Mapping[int, Threshold]) -> list[Part]:
    """A8 from the thresholds of the restarts, by context length."""
    confidence = 1 - 0.05 / (len(found) + 1)
    parts = []
    for length, threshold in found.items():
        ideal = ideal_sample_size(AND, context_length=length, probability=BALANCED)
        low, high = (None if end is None else end / ideal for end in threshold.limits(confidence))
        ratio = None if threshold.size is None else threshold.size / ideal
        parts.append(
            Part(
                f"at T = {length} fewer than {RATIO} times the ideal learner's samples suffice",
                below(low, high, RATIO),
                {f"T = {length}: ratio": ratio, f"T = {length}: interval": [low, high]},
            )
        )
    slope, low, high = growth(found, confidence)
    statement = f"the ratio grows more slowly than T^{SLOPE}"
    return [*parts, Part(statement, below(low, high, SLOPE), {"slope": slope, "interval": [low, high]})]


def growth(found: Mapping[int, Threshold], confidence: float) -> tuple[float | None, float | None, float | None]:
    """Slope of the log of the ratio to the ideal learner's sample against log T, by weighted least squares.

    Each threshold counts with the mean and the deviation of its own posterior.
    """
    known = {length: each for length, each in found.items() if each.size is not None}
    if len(known) < 2 or len(known) < len(found):
        return None, None, None
    x = np.log([*known])
    y = np.array([_mean(each) for each in known.values()])
    y -= np.log([ideal_sample_size(AND, context_length=length, probability=BALANCED) for length in known])
    weight = np.array([each.deviation**-2 for each in known.values()])
    centred = x - weight @ x / weight.sum()
    slope = float((weight * centred) @ y / ((weight * centred) @ centred))
    reach = float(scipy.special.ndtri((1 + confidence) / 2)) / math.sqrt(float((weight * centred) @ centred))
    return slope, slope - reach, slope + reach


def _mean(threshold: Threshold) -> float:
    mass = np.exp(threshold.log_likelihood)
    return float(mass @ threshold.log_sizes / mass.sum())


def _a8(readings: Sequence[Reading]) -> list[Part]:
    found = (pair for reading in readings for pair in reading.at(0.8))
    return sufficient({int(point["context_length"]): threshold for point, threshold in found})


def halves(found: Mapping[int, Threshold]) -> list[Part]:
    """A9 from the thresholds of single runs at 50 %, by context length."""
    deviations = {length: each.deviation if each.size is not None else None for length, each in found.items()}
    enough = None not in deviations.values() and max(found, default=0) >= LONGEST
    numbers = {f"T = {length}: deviation of the log threshold": each for length, each in deviations.items()}
    sizes = {f"T = {length}: samples at 50 %": each.size for length, each in found.items()}
    first, second = law_leads([*found], [*found.values()], decided=enough)
    return [
        Part(first.statement, first.decision, {**sizes, **first.numbers}),
        Part(second.statement, second.decision, {**numbers, **second.numbers}),
    ]


def _a9(readings: Sequence[Reading]) -> list[Part]:
    from genscope.lab.results.reduction import lines  # which loads scipy.stats: a listing of claims needs none of it

    marks = [mark for reading in readings for series in lines(HALF, reading) for mark in series.marks]
    return halves({int(mark.x): mark.threshold for mark in marks if mark.threshold is not None})


_STUDIES: Mapping[str, Sequence[Study]] = {"quick": ()} | dict.fromkeys(("standard", "paper"), (STUDY, LONG))
_TOO_LONG = "without trials: those that the rule needs take an hour of a processor"

A8 = Claim(
    id="A8",
    statement=(
        "The number of samples that suffices for a 3-sparse AND grows like an ideal learner's, which grows like log T"
    ),
    source="edelman2022, Section 6, with restarts",
    rule=(
        f"Preset tuned, at most {RUNS} runs on each sample, {TOGETHER} at a time until two agree on {UNLABELLED:,} "
        f"unlabelled inputs, one of them chosen without held-out labels; the sample size m at which it is right for "
        f"80 % of samples. At every T the upper limit of m over the ideal learner's number below "
        f"{RATIO} (a lower limit above: fails), and the upper limit of the slope of its logarithm against log T below "
        f"{SLOPE} (a lower limit above: fails); 95 % after Bonferroni correction over the contexts and the slope"
    ),
    studies=_STUDIES,
    decide=_a8,
    departures={
        "quick": (_TOO_LONG,),
        "standard": ("T = 50, 200, 800 and 10,000",),
        "paper": ("T = 50 … 100,000",),
    },
)
A9 = Claim(
    id="A9",
    statement="The number of samples at which half of the single runs learn a 3-sparse AND grows like log T",
    source="edelman2022, Figure 2, at 50 %",
    rule=(
        f"Preset tuned, the first {TOGETHER} runs of each of A8's trials, counted for what they are worth together: "
        "the log law ahead of the power law, and of the line, by at least 3 in log-likelihood (behind either by 3: "
        f"fails). Undecided unless contexts reach {LONGEST:,} and there is a threshold at each of them"
    ),
    studies=_STUDIES,
    decide=_a9,
    departures={
        "quick": (_TOO_LONG,),
        "standard": ("T = 50, 200, 800 and 10,000",),
        "paper": ("T = 50 … 100,000",),
    },
)
