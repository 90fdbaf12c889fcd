"""Trials for one threshold: the adaptive design against equal numbers at 20 sizes from a tenth to ten times the truth.

Both use the same estimator. The width of an interval is `Search.width`, the ratio of its farther end to the estimate;
the even design gets as many trials as its median width needs to be that of the adaptive design, by bisection. Curves
are logistic, some with lapses; an early table of 15 trials per cell had a slope of 4.1 per e-fold (2.9 to 5.4 at 95 %).

The limit of the ratio for a curve of known form and slope s is 1.23 s: an estimate of log m at 80 % from n trials has
variance 6.25 / (n s^2) with all of them there, which is the best design, and 7.7 s / (n s^2) with an even grid.
"""

import math

import numpy as np

from benchmarks._timing import show
from genscope.lab import Search, Threshold
from genscope.lab.statistics.estimation import estimate, next_round

TRUTH, REPEATS, MOST = 100.0, 41, 400
CURVES = ((3.0, 1.0), (4.1, 1.0), (5.0, 1.0), (4.5, 0.95), (10.0, 1.0), (10.0, 0.95), (30.0, 1.0))
SEARCH = Search(start=70, trials=4000)


def probability(size: float, slope: float, height: float) -> float:
    """A logistic success curve that is 0.8 at the truth and tends to its height."""
    share = 0.8 / height
    return height / (1 + math.exp(-(math.log(share / (1 - share)) + slope * math.log(size / TRUTH))))


def width(found: Threshold) -> float:
    if found.size is None or found.low is None or found.high is None:
        return math.inf
    return max(found.high / found.size, found.size / found.low) - 1


def adaptive(curve: tuple[float, float], rng: np.random.Generator) -> Threshold:
    counts: dict[int, tuple[int, int]] = {}
    while (asked := next_round(SEARCH, counts)) is not None:
        for size, number in asked.items():
            won, tried = counts.get(size, (0, 0))
            counts[size] = won + int(rng.binomial(number, probability(size, *curve))), tried + number
    return estimate(SEARCH, counts)


def even_width(curve: tuple[float, float], number: int) -> float:
    rng = np.random.default_rng(number)
    sizes = np.geomspace(TRUTH / 10, TRUTH * 10, 20).round().astype(int).tolist()
    drawn = (
        {size: (int(rng.binomial(number, probability(size, *curve))), number) for size in sizes} for _ in range(REPEATS)
    )
    return float(np.median([width(estimate(SEARCH, counts)) for counts in drawn]))


def main() -> None:
    rows: dict[str, object] = {}
    for curve in CURVES:
        rng = np.random.default_rng(0)
        found = [adaptive(curve, rng) for _ in range(REPEATS)]
        target = float(np.median([width(each) for each in found]))
        used = float(np.mean([each.trials for each in found]))
        name = f"slope {curve[0]:g}, height {curve[1]:g}"
        rows[f"{name}: trials of the adaptive design for a width of {target:.3f}"] = used
        low, high = 1, MOST
        if even_width(curve, MOST) > target:
            rows[f"{name}: ratio"] = f"more than {20 * MOST / used:.0f}: the even sizes lie too far apart"
            continue
        while high > 1.04 * low + 1:
            middle = round(math.sqrt(low * high))
            low, high = (low, middle) if even_width(curve, middle) <= target else (middle, high)
        rows[f"{name}: trials of the even design"] = 20.0 * high
        rows[f"{name}: ratio"] = 20 * high / used
    show("threshold design: trials for an interval within 10 %", rows)


if __name__ == "__main__":
    main()
