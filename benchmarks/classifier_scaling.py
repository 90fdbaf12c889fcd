"""Cost of a training step and memory against the context length, up to 100,000: both should be linear."""

import resource

import numpy as np

from benchmarks._timing import show
from benchmarks.classifier_step import step_seconds

LENGTHS, SIZE = (300, 1000, 3000, 10_000, 30_000, 100_000), 100


def main() -> None:
    rows: dict[str, object] = {}
    seconds = []
    for length in LENGTHS:
        seconds.append(step_seconds(length, SIZE, steps=2))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
        rows[f"T = {length}: ms per step"] = 1e3 * seconds[-1]
        rows[f"T = {length}: peak memory of the process so far, MiB"] = peak
    slopes = np.polyfit(np.log(LENGTHS), np.log(seconds), 1)
    rows["fitted exponent of the cost"] = float(slopes[0])
    rows["bits of the largest sample as [1-b, b] in float32, MiB"] = SIZE * 2 * LENGTHS[-1] * 4 / 2**20
    show("classifier scaling: m = 100, one trial at a time", rows)


if __name__ == "__main__":
    main()
