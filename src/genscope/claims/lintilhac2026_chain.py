"""Claim C7: a chain of thought against one pass, in the bounds and in training.

Source: lintilhac2026, Section 3, Theorems 7, 8 and 16.
Departures: the claim names its own.
Guarantee: the rule as in docs/claims.md, fixed before the data. The bounds are arithmetic. For training, intervals are
at 95 % after Bonferroni correction over four, if logarithms of samples are normal with one spread; where a search that
ended without success could turn a decision, none is taken.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import scipy  # whose parts load on first use: a listing of studies needs none of them

from genscope.claims._base import Claim, Decision, Part
from genscope.claims._ratios import SampleCounts, decide
from genscope.lab import Reading
from genscope.studies import lintilhac2026_chain, lintilhac2026_chain_bounds

LINEAR = 1.0
ROUNDING = 1e-9
SUSTAINED = 0.5  # last rise of the local exponent over its first one: 1 for T^log T, more for exponentials
CONFIDENCE = 1 - 0.05 / 4
RESOLUTION = math.log(2) / 2 / math.sqrt(12)  # standard deviation of rounding up to a ladder with ratio √2

_READINGS = {"risk": "bound on the risk", "delta": "inverted confidence"}
_TARGETS = {"all": "all bits", "half": "half the bits"}


def _c7(readings: Sequence[Reading]) -> list[Part]:
    arithmetic, training = (_finished(reading.frame) for reading in readings)
    return [
        *itertools.chain.from_iterable(_bound_parts(arithmetic, reading) for reading in _READINGS),
        *itertools.chain.from_iterable(_training_parts(training, target) for target in _TARGETS),
    ]


def _finished(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.filter(pl.col("status") == "ok") if len(frame) else frame


def _bound_parts(frame: pl.DataFrame, reading: str) -> list[Part]:
    name = _READINGS[reading]
    exponents = {
        (weights, method): _exponents(frame, reading, weights, method)
        for weights in lintilhac2026_chain_bounds.WEIGHTS
        for method in lintilhac2026_chain_bounds.METHODS
    }
    parts = []
    for method, statement, judge in (
        ("one-pass", f"{name}: one pass grows faster than every power of T", _accelerates),
        ("chain", f"{name}: the chain grows at most linearly", _at_most_linear),
    ):
        found = exponents["paper", method]
        numbers = {
            f"{name}, {method}: local exponent, first and last": found[:: max(len(found) - 1, 1)],
            f"{name}, {method}, rescaled weights, beside": exponents["tuned", method][:: max(len(found) - 1, 1)],
        }
        parts.append(Part(statement, "undecided" if len(found) < 3 else judge(found), numbers))
    return parts


def _exponents(frame: pl.DataFrame, reading: str, weights: str, method: str) -> list[float]:
    """Local exponents by length, if all lengths are there."""
    if not len(frame):
        return []
    chosen = frame.filter(pl.col("weights") == weights, pl.col("method") == method).sort("context_length")
    complete = chosen["context_length"].to_list() == lintilhac2026_chain_bounds.LENGTHS
    return chosen[f"{reading}_exponent"].to_list() if complete else []


def _accelerates(exponents: Sequence[float]) -> Decision:
    """Whether exponents rise at every doubling and go on rising: those of a polynomial level off."""
    rises = [later - earlier for earlier, later in itertools.pairwise(exponents)]
    return "holds" if min(rises) > 0 and rises[-1] >= SUSTAINED * rises[0] else "fails"


def _at_most_linear(exponents: Sequence[float]) -> Decision:
    return "holds" if max(exponents) <= LINEAR + ROUNDING else "fails"


@dataclass(frozen=True)
class Coefficient:
    """The leading coefficient of a polynomial in log T, its interval, and its weight on each length's mean."""

    value: float
    low: float | None
    high: float | None
    weights: Mapping[int, float]


def leading(arms: Mapping[int, SampleCounts], order: int) -> Coefficient | None:
    """Least squares of log samples on powers of log T up to `order`; what does not fit widens the interval."""
    arms = {length: arm for length, arm in arms.items() if len(arm.logs)}
    if len(arms) <= order:
        return None
    x = np.concatenate([np.full(len(arm.logs), math.log(length)) for length, arm in arms.items()])
    y = np.concatenate([arm.logs for arm in arms.values()])
    design = np.vander(x - x.mean(), order + 1)
    row = np.linalg.pinv(design)[0]
    value, freedom = float(row @ y), len(x) - order - 1
    weights = {length: float(row[x == math.log(length)].sum()) for length in arms}
    if not freedom:
        return Coefficient(value, None, None, weights)
    residual = y - design @ (np.linalg.pinv(design) @ y)
    spread = max(math.sqrt(float(residual @ residual) / freedom), RESOLUTION)
    reach = float(scipy.special.stdtrit(freedom, (1 + CONFIDENCE) / 2)) * spread * float(np.linalg.norm(row))
    return Coefficient(value, value - reach, value + reach, weights)


def _training_parts(frame: pl.DataFrame, target: str) -> list[Part]:
    lengths = sorted(frame["context_length"].unique()) if len(frame) else []
    arms = {
        method: {
            length: SampleCounts.of(frame, method=method, target=target, context_length=length) for length in lengths
        }
        for method in lintilhac2026_chain_bounds.METHODS
    }
    one_pass, chain = arms["one-pass"], arms["chain"]
    curvature, power, exponent = leading(one_pass, 2), leading(one_pass, 1), leading(chain, 1)
    decision = _judge(curvature, one_pass, 0.0)
    if decision == "undecided" and _judge(power, one_pass, LINEAR) == "fails":
        decision = "fails"  # no more than linear on the range, whatever its curvature
    about = f"training, {_TARGETS[target]}"
    return [
        Part(
            f"{about}: one pass grows faster than every power of T",
            decision,
            _numbers(f"{about}, one pass: curvature", curvature)
            | _numbers(f"{about}, one pass: exponent", power)
            | _samples(f"{about}, one pass", one_pass),
        ),
        Part(
            f"{about}: the chain grows at most linearly",
            _inverse(_judge(exponent, chain, LINEAR)),
            _numbers(f"{about}, chain: exponent", exponent) | _samples(f"{about}, chain", chain),
        ),
    ]


def _judge(found: Coefficient | None, arms: Mapping[int, SampleCounts], limit: float) -> Decision:
    """Whether a coefficient is above a limit, whatever the searches that ended without success would have given."""
    if found is None:
        return "undecided"
    signed = [(1 if weight > 0 else -1, arms[length]) for length, weight in found.weights.items()]
    return decide((found.value, found.low, found.high), limit, signed)


def _inverse(decision: Decision) -> Decision:
    return {"holds": "fails", "fails": "holds"}.get(decision, decision)  # pyright: ignore[reportReturnType]


def _numbers(name: str, found: Coefficient | None) -> dict[str, Any]:
    if found is None:
        return {name: None}
    return {name: found.value, f"{name}, interval": [found.low, found.high]}


def _samples(about: str, arms: Mapping[int, SampleCounts]) -> dict[str, Any]:
    means = {
        f"{about}: samples at T = {length}{' (lower limit)' if arm.censored else ''}": arm.mean
        for length, arm in arms.items()
    }
    return {name: mean for name, mean in means.items() if mean is not None}


C7 = Claim(
    id="C7",
    statement="Chain of thought: linear instead of exponential, in the bound and in training",
    source="lintilhac2026, Section 3",
    rule=(
        "For the bound on the risk, for the inverted confidence (both T = 8 … 1024, the paper's weights) and for "
        "training on the parity of all and of half the bits: one pass grows faster than every power of T, and the "
        "chain at most linearly. Bounds: the local exponent of one pass rises at every doubling of T, and by the last "
        "at least half as much as by the first; that of the chain is never above 1. Training (samples to accuracy "
        "0.99, 98.75 % intervals): in one pass the curvature of log samples in log T is above 0 (it fails below 0, or "
        "where the exponent itself is below 1); with a chain the exponent is at most 1"
    ),
    studies=dict.fromkeys(
        ("quick", "standard", "paper"), (lintilhac2026_chain_bounds.STUDY, lintilhac2026_chain.STUDY)
    ),
    decide=_c7,
    departures={
        "quick": ("training on half the bits at T = 8, 10 with one run each, too few to decide its parts",),
        "standard": ("training at T = 8, 12, 16, 3 runs; samples up to 8,192",),
        "paper": ("training at T = 8 … 24, 8 runs; samples up to 8,192",),
    },
)
