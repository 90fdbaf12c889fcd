"""How cost grows: fitted exponents of what users make larger, beside those of the arithmetic at the same sizes.

The classifier's step against the context length (time, and memory of a process of its own), token regression against
the number of tokens, the trace against the number of weights, the store against the number of trials, the transform
against the size of its table. CPU seconds on one thread, the least of some runs; an exponent is the slope of a line
through the logarithms, over the upper half of the sizes, where fixed costs no longer hide it. Where the data of one
size fit a cache and those of another do not, the arithmetic is not all: a plain copy of as many bytes, timed beside,
says what memory alone adds. `python -m benchmarks.growth FILE` draws all of them.
"""

import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks._timing import cpu_seconds, show

SAMPLE = 20  # examples of the classifier; at T = 1,000,000 their tokens are 160 MB


@dataclass(frozen=True)
class Growth:
    """Costs at some sizes, and the operations that they stand for; only ratios of the latter mean something."""

    name: str
    size: str
    unit: str
    sizes: Sequence[float]
    costs: Sequence[float]
    operations: Sequence[float]
    copies: Sequence[float] = ()

    @property
    def exponent(self) -> float:
        """Of the cost."""
        return _slope(self.sizes, self.costs)

    @property
    def limit(self) -> float:
        """Of the operations."""
        return _slope(self.sizes, self.operations)

    @property
    def references(self) -> str:
        """Exponents to compare with."""
        copy = f"; a plain copy's: {_slope(self.sizes, self.copies):.2f}" if self.copies else ""
        return f"the arithmetic's: {self.limit:.2f}{copy}"


def _slope(sizes: Sequence[float], values: Sequence[float]) -> float:
    upper = slice(len(sizes) // 2, None)
    return float(np.polyfit(np.log(sizes[upper]), np.log(values[upper]), 1)[0])


def _copy(size: int) -> float:
    """Seconds of copying bytes into memory that is there already."""
    given = np.ones(size, np.uint8)
    target = np.zeros_like(given)
    return cpu_seconds(lambda: np.copyto(target, given), repeats=9)[0]


def classifier() -> tuple[Growth, Growth]:
    """Time and memory of full-batch Adam steps, each length in a process of its own."""
    lengths = (10_000, 30_000, 100_000, 300_000, 1_000_000)
    seconds, peaks = [], []
    for length in lengths:
        command = [sys.executable, "-m", "benchmarks.growth", "--context-length", str(length)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        found = json.loads(done.stdout.splitlines()[-1])
        seconds.append(found["seconds"])
        peaks.append(found["mebibytes"])
    from benchmarks.classifier_step import multiply_adds

    work = [multiply_adds(length, SAMPLE) for length in lengths]
    copies = [_copy(4 * SAMPLE * length) for length in lengths]
    time = Growth("classifier's step", "context length T", "CPU seconds", lengths, seconds, work, copies)
    return time, Growth("classifier's memory", "context length T", "MiB", lengths, peaks, lengths)


def _one_length(length: int) -> dict[str, float]:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    from benchmarks.classifier_step import training

    start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    run, [trial] = training(length, SAMPLE, 1, steps=2)
    seconds = cpu_seconds(lambda: run(trial), repeats=3)[0] / 2
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"seconds": seconds, "mebibytes": (peak - max(start, before)) / 2**10}


def tokens() -> Growth:
    """A step of the Transformer of token regression."""
    from benchmarks.token_regression import multiply_adds, training

    lengths, steps, seconds = (8, 16, 32, 64, 128), 5, []
    for length in lengths:
        run, [key] = training(length, 1, steps)
        seconds.append(cpu_seconds(lambda run=run, key=key: run(key), repeats=3)[0] / steps)
    work = [multiply_adds(length)[1] for length in lengths]
    return Growth("token regression's step", "tokens N", "CPU seconds", lengths, seconds, work)


def trace() -> Growth:
    """The Hessian's trace of bit Transformers of growing width, with eight probes on 64 strings."""
    import jax
    import jax.random as jr

    from benchmarks.bit_transformer import KEY, LENGTH
    from genscope.measure import hessian_trace
    from genscope.models.bit_transformer import BitTransformer
    from genscope.random import stream
    from genscope.tasks import WalshSum

    task = WalshSum.draw(stream(KEY, "task"), context_length=LENGTH, degree=2, sparsity=5)
    batch = task.sample(stream(KEY, "data"), 64)
    weights, seconds = [], []
    for width in (32, 64, 128, 256):
        model = BitTransformer(LENGTH, embedding=width, hidden=4 * width, key=stream(KEY, "init"))
        options = {"method": "hutchinson", "probes": 8, "key": jr.key(1), "chunk": 64}
        weights.append(sum(leaf.size for leaf in jax.tree.leaves(model)))
        seconds += cpu_seconds(lambda model=model, options=options: hessian_trace(model, batch, **options), repeats=3)
    return Growth("trace, 8 probes", "weights", "CPU seconds", weights, seconds, weights)


def store() -> Growth:
    """Stored trials into a data frame."""
    from benchmarks.store import records
    from genscope.lab import Store

    trials, seconds = (1000, 3000, 10_000, 30_000, 100_000), []
    for number in trials:
        with tempfile.TemporaryDirectory() as directory, Store(f"sqlite:///{directory}/bench.db") as opened:
            opened.add(records(number))
            seconds += cpu_seconds(lambda opened=opened: opened.frame("bench"), repeats=3)
    return Growth("trials into a data frame", "trials", "CPU seconds", trials, seconds, trials)


def transform() -> Growth:
    """The Walsh-Hadamard transform in float64."""
    from genscope.fourier import fwht

    exponents, seconds = (14, 16, 18, 20, 22, 24, 26), []
    for n in exponents:
        table = np.random.default_rng(0).normal(size=2**n)
        seconds += cpu_seconds(lambda table=table: fwht(table), repeats=3)
    sizes = [2.0**n for n in exponents]
    work = [n * 2.0**n for n in exponents]
    copies = [_copy(8 * 2**n) for n in exponents]
    return Growth("transform, float64", "points 2^n", "CPU seconds", sizes, seconds, work, copies)


def draw(found: Sequence[Growth], path: Path) -> None:
    """Costs with fitted lines, one panel each."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import EngFormatter, LogLocator, NullFormatter

    figure, axes = plt.subplots(2, 3, figsize=(11, 6.2), layout="constrained")
    for axis, growth in zip(axes.flat, found, strict=True):
        sizes, costs = np.asarray(growth.sizes, float), np.asarray(growth.costs, float)
        upper = sizes[len(sizes) // 2 :]
        middle = np.exp(np.log(costs[len(sizes) // 2 :]).mean()), np.exp(np.log(upper).mean())
        axis.loglog(sizes, costs, "o", color="#1f4e79", label="measured")
        for exponent, style, word in ((growth.exponent, "-", "fitted"), (growth.limit, ":", "arithmetic")):
            label = f"{word}: {exponent:.2f}"
            axis.loglog(upper, middle[0] * (upper / middle[1]) ** exponent, style, color="#c55a11", label=label)
        axis.set(title=growth.name.capitalize(), xlabel=growth.size, ylabel=growth.unit)
        for scale, values, written, most in (
            (axis.xaxis, sizes, EngFormatter(sep=""), 30),
            (axis.yaxis, costs, "{x:g}", 200),
        ):
            narrow = values.max() < most * values.min()
            scale.set_major_locator(LogLocator(subs=(1, 2, 5) if narrow else (1,)))
            scale.set_major_formatter(written)
            scale.set_minor_formatter(NullFormatter())
        axis.legend(frameon=False)
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)


def curves() -> list[Growth]:
    """All of them."""
    alone: list[Callable[[], Growth]] = [tokens, trace, store, transform]
    return [*classifier(), *(measure() for measure in alone)]


def main(picture: Path | None = None) -> None:
    rows: dict[str, object] = {}
    found = curves()
    for growth in found:
        for size, cost in zip(growth.sizes, growth.costs, strict=True):
            rows[f"{growth.name}, {growth.size} = {size:.7g}: {growth.unit}"] = float(cost)
        rows[f"{growth.name}: fitted exponent ({growth.references})"] = growth.exponent
    show("growth: exponents over the upper half of the sizes", rows)
    if picture is not None:
        draw(found, picture)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--context-length"]:
        print(json.dumps(_one_length(int(sys.argv[2]))))
    else:
        main(Path(sys.argv[1]) if sys.argv[1:] else None)
