"""How often A8 and A9 hold and fail at the sizes of each budget, if the truth were this or that.

Two truths. *Explored*: restarts need 1.62 (T/50)^0.05 times the ideal learner's samples, and half of the single runs
succeed at 13.9 ln T - 20. *Published*: as Figure 2 of EGKZ22 grows, the ratio with the exponent 0.26, and the sample
size at 50 % with 0.38. Curves of success have the slope 6 at 80 % and the plateau 0.97 with restarts, the slope 4 at
50 % and the plateau 0.93 for single runs, of which the two on one sample correlate by 0.35.

Trials are placed by the search of the study, and verdicts are those of the claims' own rules.
"""

import math
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from benchmarks._timing import show
from genscope.claims.edelman2022_restarts import A8, halves, sufficient
from genscope.lab import Search
from genscope.lab.results.verdict import combine
from genscope.lab.statistics.clusters import counts_of
from genscope.lab.statistics.estimation import estimate, next_round
from genscope.studies.edelman2022_and import AND, BALANCED
from genscope.studies.edelman2022_and_restarts import TOGETHER
from genscope.tasks import ideal_sample_size

STUDIES, CORRELATION = 40, 0.35


class Truth(NamedTuple):
    """Sample sizes by context length: at which restarts succeed on 80 % of samples, and half of the single runs."""

    restarts: Callable[[int], float]
    single: Callable[[int], float]


def _ratio(exponent: float) -> Callable[[int], float]:
    def samples(length: int) -> float:
        ideal = ideal_sample_size(AND, context_length=length, probability=BALANCED)
        return 1.62 * (length / 50) ** exponent * ideal

    return samples


TRUTHS = {
    "explored": Truth(_ratio(0.05), lambda length: 13.9 * math.log(length) - 20),
    "published": Truth(_ratio(0.26), lambda length: 34.4 * (length / 50) ** 0.38),
}


def success(size: float, at: float, *, level: float, slope: float, height: float) -> float:
    """A logistic curve that tends to its height and crosses the level at a size."""
    share = level / height
    return height / (1 + (1 - share) / share * (at / size) ** slope)


def play(search: Search, truth: Truth, length: int, rng: np.random.Generator):
    """The thresholds of A8 and A9 at one context, from simulated trials."""
    counts: dict[int, tuple[int, int]] = {}
    shares: dict[float, list[float]] = {}
    spread = (1 - CORRELATION) / CORRELATION
    while asked := next_round(search, counts):
        for size, number in asked.items():
            right = success(size, truth.restarts(length), level=0.8, slope=6, height=0.97)
            alone = success(size, truth.single(length), level=0.5, slope=4, height=0.93)
            won, tried = counts.get(size, (0, 0))
            counts[size] = won + int(rng.binomial(number, right)), tried + number
            of_sample = rng.beta(alone * spread, (1 - alone) * spread, number)
            shares.setdefault(size, []).extend((rng.binomial(TOGETHER, of_sample) / TOGETHER).tolist())
    return estimate(search, counts, 0.8), estimate(search, counts_of(shares), 0.5)


def verdicts(searches: Mapping[int, Search], truth: Truth, studies: int) -> Mapping[str, str]:
    """Shares of verdicts among simulated studies, and mean deviations of the log thresholds, by context length."""
    rng, told = np.random.default_rng(0), {"A8": Counter(), "A9": Counter()}
    widths = {name: {length: [] for length in searches} for name in told}
    for _ in range(studies):
        played = {length: play(search, truth, length, rng) for length, search in searches.items()}
        for number, (name, rule) in enumerate((("A8", sufficient), ("A9", halves))):
            found = {length: both[number] for length, both in played.items()}
            told[name][combine([part.decision for part in rule(found)])] += 1
            for length, each in found.items():
                widths[name][length].append(each.deviation)
    return {
        name: ", ".join(f"{word} {count / studies:.2f}" for word, count in sorted(told[name].items()))
        + "; deviations "
        + ", ".join(f"{np.mean(each):.3f}" for each in widths[name].values())
        for name in told
    }


def main(studies: int = STUDIES) -> None:
    rows: dict[str, object] = {}
    for budget in ("standard", "paper"):
        plans = [study.plan(budget) for study in A8.studies[budget]]
        searches = {int(point["context_length"]): plan.search for plan in plans for point in plan.points if plan.search}
        for name, truth in TRUTHS.items():
            for claim, told in verdicts(searches, truth, studies).items():
                rows[f"{budget}, {name}: {claim}"] = told
                print(f"{budget}, {name}: {claim} {told}", flush=True)
    show(f"restarts design: verdicts of {studies} simulated studies", rows)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
