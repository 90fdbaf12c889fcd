"""Thresholds of a reading as a question's answers: the one place that knows how `lab` tells them.

Guarantee: exact; numbers are those of the reading.
"""

from collections.abc import Mapping
from typing import Any

import polars as pl

from genscope.lab import Reading, Threshold


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
