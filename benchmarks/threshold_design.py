"""Trials for one threshold: the adaptive design against equal numbers at 20 sizes from a tenth to ten times the truth.

Both use the same estimator; the even design gets as many trials as it needs for intervals as narrow as the adaptive
design's, by bisection on the median over repetitions.
"""

import math

import numpy as np

from benchmarks._timing import show
from genscope.lab.threshold import Search, Threshold, estimate, next_round

TRUTH, REPEATS = 80.0, 15


def probability(size: float, slope: float) -> float:
    """A logistic success curve that is 0.8 at the truth."""
    return 1 / (1 + math.exp(-(math.log(4) + slope * math.log(size / TRUTH))))


def width(found: Threshold) -> float:
    """Length of the interval in log size."""
    return math.log(found.high / found.low) if found.low and found.high else math.inf


def adaptive(slope: float, rng: np.random.Generator) -> Threshold:
    search, counts = Search(start=60, width=0.1), {}
    while (asked := next_round(search, counts)) is not None:
        for size, number in asked.items():
            won, tried = counts.get(size, (0, 0))
            counts[size] = won + int(rng.binomial(number, probability(size, slope))), tried + number
    return estimate(search, counts)


def even(slope: float, number: int, rng: np.random.Generator) -> float:
    sizes = np.unique(np.geomspace(TRUTH / 10, TRUTH * 10, 20).round().astype(int))
    drawn = {int(size): (int(rng.binomial(number, probability(size, slope))), number) for size in sizes}
    return width(estimate(Search(lowest=1, highest=4000), drawn))


def main() -> None:
    rows: dict[str, object] = {}
    for slope in (3, 5, 10, 30):
        rng = np.random.default_rng(slope)
        found = [adaptive(slope, rng) for _ in range(REPEATS)]
        target = float(np.median([width(each) for each in found]))
        used = float(np.mean([each.trials for each in found]))
        low, high = 1, 400
        while high - low > max(1, low // 12):
            middle = (low + high) // 2
            narrow = np.median([even(slope, middle, rng) for _ in range(REPEATS)]) <= target
            low, high = (low, middle) if narrow else (middle, high)
        rows[f"slope {slope} per e-fold: trials of the adaptive design"] = used
        rows[f"slope {slope} per e-fold: trials of the even design for the same width"] = 20.0 * high
        rows[f"slope {slope} per e-fold: ratio"] = 20 * high / used
    show("threshold design: trials for an interval within 10 %", rows)


if __name__ == "__main__":
    main()
