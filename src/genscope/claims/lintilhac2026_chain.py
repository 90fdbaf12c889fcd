"""Claim C7: a chain of thought against one pass, in the bounds and, as an extension, in training.

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
from genscope.lab.results.reading import Reading
from genscope.lab.results.verdict import combine
from genscope.studies import lintilhac2026_chain, lintilhac2026_chain_bounds

LINEAR = 1.0
LOGARITHMS = 2.0  # largest power of log T beside T that still counts as linear
SETTLED = 64  # T from which on: shorter codes of positions have few dimensions to choose from
SUSTAINED = 0.5  # last rise of the local exponent over its first one: 1 for T^log T, more for exponentials
CONFIDENCE = 1 - 0.05 / 4
RESOLUTION = math.log(2) / 2 / math.sqrt(12)  # standard deviation of rounding up to a ladder with ratio √2

_READINGS = {"risk": "bound on the risk", "delta": "inverted confidence"}
_TARGETS = {"all": "all bits", "half": "half the bits"}


def _c7(readings: Sequence[Reading]) -> list[Part]:
    arithmetic = _finished(readings[0].frame)
    training = _finished(readings[1].frame) if len(readings) > 1 else pl.DataFrame()
    return [
        *(_one_pass_part(arithmetic, reading) for reading in ("delta", "risk")),
        _chain_part(arithmetic),
        _training_part(training),
    ]


def _finished(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.filter(pl.col("status") == "ok") if len(frame) else frame


def _one_pass_part(frame: pl.DataFrame, reading: str) -> Part:
    name = _READINGS[reading]
    found = _exponents(frame, reading, "paper", "one-pass")
    numbers = {
        f"{name}, {method}, {weights} weights: local exponent, first and last": _ends(
            _exponents(frame, reading, weights, method)
        )
        for weights in lintilhac2026_chain_bounds.WEIGHTS
        for method in lintilhac2026_chain_bounds.METHODS
    }
    statement = f"{name}: one pass grows faster than every power of T"
    return Part(statement, "undecided" if len(found) < 3 else _accelerates(found), numbers)


def _chain_part(frame: pl.DataFrame) -> Part:
    """Whether T times logarithms: with T log^p T the local exponent between T and 2T is 1 + p / log T, T in between."""
    found = dict(
        zip(lintilhac2026_chain_bounds.LENGTHS, _exponents(frame, "risk", "paper", "coded-chain"), strict=False)
    )
    powers = {
        length: (exponent - LINEAR) * math.log(math.sqrt(2) * length)
        for length, exponent in found.items()
        if length >= SETTLED
    }
    decision: Decision = "undecided" if not powers else "holds" if max(powers.values()) <= LOGARITHMS else "fails"
    numbers = {"coded chain: power of log T beside T, by T": {str(length): power for length, power in powers.items()}}
    return Part("bound on the risk: the chain with coded positions is linear up to logarithms", decision, numbers)


def _ends(values: Sequence[float]) -> list[float]:
    return [*values[:: max(len(values) - 1, 1)]]


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


def _training_part(frame: pl.DataFrame) -> Part:
    """One part of four questions: a power of T for the chain and more than every power in one pass, on both targets."""
    found = [answer for target in _TARGETS for answer in _training(frame, target)]
    numbers = {name: number for part in found for name, number in part.numbers.items()}
    numbers |= {part.statement: part.decision for part in found}
    statement = "training, an extension: one pass faster than every power of T, the chain at most linear"
    return Part(statement, combine([part.decision for part in found]), numbers)


def _training(frame: pl.DataFrame, target: str) -> list[Part]:
    lengths = sorted(frame["context_length"].unique()) if len(frame) else []
    arms = {
        method: {
            length: SampleCounts.of(frame, method=method, target=target, context_length=length) for length in lengths
        }
        for method in ("one-pass", "chain")
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


_CODED = "the chain's positions have cyclic codes of dimension 2.4 log₂ T, where the paper counts a single entry"
C7 = Claim(
    id="C7",
    statement="Chain of thought: linear instead of exponential, in the bound",
    source="lintilhac2026, Section 3",
    rule=(
        "Four parts. Inverted confidence, and bound on the risk (T = 8 … 1024, the paper's weights): one pass grows "
        "faster than every power of T: its local exponent rises at every doubling, by the last at least half as much "
        "as by the first. Bound on the risk of a chain whose positions have short codes: linear up to logarithms, that "
        "is local exponents of at most 1 + 2 / log T from T = 64 on. Training, an extension (samples to accuracy 0.99 "
        "on the parity of all and of half the bits, 98.75 % intervals): in one pass the curvature of log samples in "
        "log T is above 0 (it fails below 0, or where the exponent itself is below 1); with a chain the exponent is at "
        "most 1"
    ),
    studies={"quick": (lintilhac2026_chain_bounds.STUDY,)}
    | dict.fromkeys(("standard", "paper"), (lintilhac2026_chain_bounds.STUDY, lintilhac2026_chain.STUDY)),
    decide=_c7,
    departures={
        "quick": (_CODED, "no training: what decides its part takes 9 processor minutes"),
        "standard": (_CODED, "training at T = 8, 12, 16, 3 runs; samples up to 8,192"),
        "paper": (_CODED, "training at T = 8 … 24, 8 runs; samples up to 8,192"),
    },
)
