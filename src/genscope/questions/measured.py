"""Thresholds of a reading as a question's answers: the one place that knows how `lab` tells them.

Guarantee: exact; numbers are those of the reading.
"""

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl
import scipy  # whose parts load on first use

from genscope.lab import Reading, Threshold
from genscope.lab.results.cautions import cautions
from genscope.questions.networks import shown

FALSE_ALARM = 0.01  # of a curve


def answers(reading: Reading) -> list[dict[str, Any]]:
    """Per network and context length: threshold, interval, plateau, trials, seconds, and the state of the search."""
    took = _seconds(reading.frame)
    return [
        {
            "network": point["network"],
            "context_length": point["context_length"],
            "sample_size": found.size,
            "low": found.low,
            "high": found.high,
            "plateau": plateau(found),
            "trials": found.trials,
            "seconds": took.get((str(point["network"]), int(point["context_length"])), 0.0),
            "state": found.state,
        }
        for point, found in reading.thresholds
    ]


def plateau(found: Threshold) -> dict[str, float] | None:
    """The success rate that large samples tend to, with its interval."""
    return None if found.plateau is None else found.plateau._asdict()


def remarks(reading: Reading) -> tuple[str, ...]:
    """What a reader of the answers has to know: cautions about trials, and curves that are not monotone."""
    return (*cautions(reading), *_falls(reading.frame))


def _falls(frame: pl.DataFrame) -> Iterator[str]:
    if "success" not in frame.columns:
        return
    known = frame.filter(pl.col("status") == "ok").group_by("network", "context_length", maintain_order=True)
    for (network, length), trials in known:
        counts = trials.group_by("sample_size").agg(pl.col("success").sum(), pl.len()).rows()
        if found := fall({int(size): (int(won), int(number)) for size, won, number in counts}):
            yield (
                f"{shown(str(network))} at T = {length:,}: {found}, but the fitted curve only rises, so that its "
                "threshold cannot be trusted"
            )


def fall(counts: Mapping[int, tuple[int, int]]) -> str | None:
    """Where a success rate falls as samples grow, beyond what chance explains; None if it need not.

    Sizes are pooled between powers of two, and of all pairs of such groups the least probable one decides, by Fisher's
    exact test and Bonferroni's correction: at fixed sizes, a rate that never falls is reported with a probability of at
    most `FALSE_ALARM`.
    """
    pooled: dict[int, list[tuple[int, int, int]]] = {}
    for size, (won, tried) in sorted(counts.items()):
        pooled.setdefault(size.bit_length(), []).append((size, won, tried))
    groups = [
        (rows[0][0], rows[-1][0], sum(row[1] for row in rows), sum(row[2] for row in rows)) for rows in pooled.values()
    ]
    pairs = list(itertools.combinations(groups, 2))
    if not pairs:
        return None
    (small, large), chance = min(((pair, _chance(*pair)) for pair in pairs), key=lambda each: each[1])
    if chance * len(pairs) > FALSE_ALARM:
        return None
    return f"{_share(*small)} succeed, and {_share(*large)}"


def _share(low: int, high: int, won: int, tried: int) -> str:
    sizes = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    return f"{won} of {tried} trials with {sizes} samples"


def _chance(small: tuple[int, int, int, int], large: tuple[int, int, int, int]) -> float:
    """That equal rates give the larger sizes as few of all successes."""
    (_, _, won, tried), (_, _, later, more) = small, large
    return float(scipy.stats.hypergeom.cdf(later, tried + more, won + later, more))


def laws(reading: Reading) -> dict[str, Mapping[str, Any]]:
    """By network, the law that its thresholds follow over the context length, where there are three or more."""
    lengths = {point["context_length"] for point, _ in reading.thresholds}
    if len(lengths) < 3:
        return {}
    return {name: fit.as_dict() for (name, _), fit in reading.laws.items()}


def _seconds(frame: pl.DataFrame) -> dict[tuple[str, int], float]:
    if not len(frame):
        return {}
    spent = frame.group_by("network", "context_length").agg((pl.col("seconds") + pl.col("compile_seconds")).sum())
    return {(network, length): float(seconds) for network, length, seconds in spent.rows()}
