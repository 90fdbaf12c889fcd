r"""Scaling laws over a length, fitted to thresholds with all that is known of each of them.

A law gives the threshold at every length $T$: $a + b\log T$ (log), $a T^b$ (power), $a + bT$ (linear). Each threshold
brings its own likelihood, a function of its logarithm, so that wide intervals count little and a threshold that is only
bounded from one side counts on that side. The likelihood of a law is the product over the lengths. A length at which
the success rate levels off has no threshold: it is left out and named.

Departures: edelman2022 fits by eye.
Guarantee: estimate; intervals are profile-likelihood intervals (95 % for each number by itself), to about one per cent
of their length.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy  # whose parts load on first use: a listing of studies needs none of them

from genscope.lab.statistics.threshold import Threshold
from genscope.refusal import Refusal

CLEAR = 3.0  # lead in log-likelihood from which one law is clearly better than another
_CELLS, _ZOOMS = 121, 8
_REGION = 1.959963984540054**2 / 2  # fall in log-likelihood at the ends of a profile interval: z of 0.975
_BULK = 8.0  # laws whose log-likelihood is further below the best are not looked at more closely
_BEYOND = 1.0  # e-folds that are searched beyond all that is known of the thresholds


@dataclass(frozen=True)
class _Form:
    """A law that is linear in its two numbers after both axes are transformed."""

    abscissa: Callable[[Any], Any]
    ordinate: Callable[[Any], Any]
    size: Callable[[Any], Any]
    formula: str


FORMS: Mapping[str, _Form] = {
    "log": _Form(np.log, lambda size: size, lambda value: value, "a + b log T"),
    "power": _Form(np.log, np.log, np.exp, "a Tᵇ"),
    "linear": _Form(lambda length: length, lambda size: size, lambda value: value, "a + b T"),
}


@dataclass(frozen=True)
class Law:
    """A fitted law."""

    name: str
    intercept: float
    slope: float
    log_likelihood: float
    """Relative to a fit that goes through every threshold; minus half the deviance."""
    degrees: int
    """Thresholds that are known from both sides, less two."""
    region: np.ndarray = field(repr=False, compare=False)
    """Intercepts and slopes within the likelihood region, one row each."""
    bounded: np.ndarray = field(repr=False, compare=False)
    """Whether a row lies inside all that was searched: a censored threshold may leave the region open."""

    @property
    def formula(self) -> str:
        """The law in letters."""
        return FORMS[self.name].formula

    @property
    def p_value(self) -> float | None:
        """Of a deviance as large as this if the law were true; None without a degree of freedom."""
        return float(scipy.special.chdtrc(self.degrees, -2 * self.log_likelihood)) if self.degrees > 0 else None

    def size(self, length: Any) -> Any:
        """The threshold at a length."""
        form = FORMS[self.name]
        return form.size(self.intercept + self.slope * form.abscissa(np.asarray(length, float)))

    def predict(self, length: float) -> tuple[float, float, float]:
        """The threshold at a length with its interval, which reaches to 0 or infinity where nothing bounds it."""
        form = FORMS[self.name]
        low, high = self._ends(form.size(self.region[:, 0] + self.region[:, 1] * form.abscissa(float(length))))
        return float(self.size(length)), 0.0 if low is None else max(low, 0.0), math.inf if high is None else high

    def parameters(self) -> dict[str, dict[str, float | None]]:
        """The numbers a and b with their intervals; None where nothing bounds them."""
        size = FORMS[self.name].size  # a is the size at abscissa 0
        numbers = {"a": (size(self.intercept), size(self.region[:, 0])), "b": (self.slope, self.region[:, 1])}
        found = {}
        for name, (value, values) in numbers.items():
            low, high = self._ends(values)
            found[name] = {"value": float(value), "low": low, "high": high}
        return found

    def _ends(self, values: np.ndarray) -> list[float | None]:
        return [float(values[at]) if self.bounded[at] else None for at in (values.argmin(), values.argmax())]


@dataclass(frozen=True)
class Fits:
    """The laws fitted to one set of thresholds; no laws if these are too few."""

    laws: Mapping[str, Law]
    lengths: tuple[float, ...]
    left_out: tuple[float, ...]
    """Lengths without a threshold: the success rate levels off there, or nothing is known."""

    @property
    def best(self) -> str | None:
        """The law with the largest likelihood."""
        return max(self.laws, key=lambda name: self.laws[name].log_likelihood, default=None)

    def lead(self, law: str, rival: str) -> float | None:
        """How far one law is ahead of another in log-likelihood."""
        if not self.laws:
            return None
        return self.laws[law].log_likelihood - self.laws[rival].log_likelihood

    def predict(self, law: str, length: float) -> tuple[float, float | None, float | None] | None:
        """The threshold at a length by a law, with its interval, an end of which may be open.

        None without laws, and where the law gives no positive size.
        """
        size, low, high = self.laws[law].predict(length) if self.laws else (0.0, 0.0, 0.0)
        if size <= 0:
            return None
        return size, None if low == 0 else low, None if math.isinf(high) else high

    @property
    def verdict(self) -> str:
        """Which law fits best and how strongly the thresholds say so."""
        gone = ", ".join(f"{length:g}" for length in self.left_out)
        note = f" No threshold at {gone}." if gone else ""
        if self.best is None:
            return (
                f"Three thresholds are needed to compare laws, two of them known from both sides; there are "
                f"{len(self.lengths)}.{note}"
            )
        leads = {name: self.laws[self.best].log_likelihood - law.log_likelihood for name, law in self.laws.items()}
        rivals = sorted(leads.items() - {(self.best, 0.0)}, key=lambda pair: pair[1])
        said = [f"{lead:.1f} ahead of the {name} law" for name, lead in rivals]
        closest = rivals[0][1]
        strength = "clearly" if closest >= CLEAR else "not decisively" if closest >= 1 else "by a hair"
        p_value = self.laws[self.best].p_value
        poor = " It fits poorly itself." if p_value is not None and p_value < 0.01 else ""
        return f"The {self.best} law fits best, {strength}: {' and '.join(said)} in log-likelihood.{poor}{note}"

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers and words for JSON."""
        laws = {
            name: {
                "formula": law.formula,
                "parameters": law.parameters(),
                "log_likelihood": law.log_likelihood,
                "behind": self.lead(self.best, name) if self.best else None,
                "deviance": -2 * law.log_likelihood,
                "degrees": law.degrees,
                "p_value": law.p_value,
            }
            for name, law in self.laws.items()
        }
        return {"best": self.best, "laws": laws, "left_out": list(self.left_out), "verdict": self.verdict}


def measured(size: float, low: float, high: float) -> Threshold:
    """A threshold that somebody else measured, its 95 % interval read as that of a normal law.

    Symmetric as intervals are printed; the likelihood is a function of the logarithm, as for our own.
    """
    if not 0 < low < size < high:
        raise Refusal(
            f"a measured threshold got {size} in [{low}, {high}]: the interval must contain it. Check the numbers."
        )
    deviation = (high - low) / 2 / 1.959963984540054
    sizes = np.linspace(max(size - 6 * deviation, size / 50), size + 6 * deviation, 201)
    log_sizes = np.linspace(math.log(sizes[0]), math.log(sizes[-1]), 201)
    values = -(((np.exp(log_sizes) - size) / deviation) ** 2) / 2
    return Threshold(
        size,
        low,
        high,
        trials=1,
        state="crossed",
        log_sizes=tuple(log_sizes),
        log_likelihood=tuple(values - values.max()),
    )


def fit_laws(lengths: Sequence[float], thresholds: Sequence[Threshold]) -> Fits:
    """Fit every law to the thresholds at the given lengths."""
    if len(lengths) != len(thresholds) or any(not length > 0 for length in lengths):
        raise Refusal(
            f"fit_laws got {len(lengths)} lengths and {len(thresholds)} thresholds: every threshold needs one "
            "positive length. Give as many of one as of the other."
        )
    pairs = [(float(length), found) for length, found in zip(lengths, thresholds, strict=True)]
    known = [(length, found) for length, found in pairs if _usable(found)]
    left_out = tuple(length for length, found in pairs if not _usable(found))
    kept = tuple(length for length, _ in known)
    two_sided = [length for length, found in known if _two_sided(found)]
    if len(set(kept)) < 3 or len(set(two_sided)) < 2:
        return Fits({}, kept, left_out)
    found = [found for _, found in known]
    return Fits({name: _fit(name, kept, found, len(two_sided) - 2) for name in FORMS}, kept, left_out)


def _usable(found: Threshold) -> bool:
    return found.state != "plateau" and found.levels_off < 0.5 and found.trials > 0


def _two_sided(found: Threshold) -> bool:
    return bool(max(found.log_likelihood[0], found.log_likelihood[-1]) < -_REGION)


def _fit(name: str, lengths: Sequence[float], thresholds: Sequence[Threshold], degrees: int) -> Law:
    """The best pair of numbers, by a grid over the law's log sizes at the first and the last length that zooms in."""
    form = FORMS[name]
    at = form.abscissa(np.asarray(lengths))
    first, last = at.min(), at.max()
    lowest = min(found.log_sizes[0] for found in thresholds) - _BEYOND
    highest = max(found.log_sizes[-1] for found in thresholds) + _BEYOND

    def evaluate(box: np.ndarray) -> tuple[np.ndarray, ...]:
        ends = np.stack(np.meshgrid(*np.linspace(box[:, 0], box[:, 1], _CELLS, axis=1), indexing="ij"))
        left, right = form.ordinate(np.exp(ends))
        slope = (right - left) / (last - first)
        intercept = left - slope * first
        values = np.zeros_like(slope)
        for x, found in zip(at, thresholds, strict=True):  # the law is positive between its positive ends
            values += _log_likelihood(found, np.log(form.size(intercept + slope * x)))
        return ends, intercept, slope, values

    box = np.array([[lowest, highest]] * 2)
    ends, intercept, slope, values = evaluate(box)
    for _ in range(_ZOOMS):
        near = ends[:, values >= values.max() - _BULK]
        margin = 2 * np.ptp(box, axis=1) / (_CELLS - 1)
        smaller = np.stack([near.min(axis=1) - margin, near.max(axis=1) + margin], axis=1).clip(lowest, highest)
        if (np.ptp(smaller, axis=1) > 0.7 * np.ptp(box, axis=1)).all():
            break
        box = smaller
        ends, intercept, slope, values = evaluate(box)
    best = np.unravel_index(values.argmax(), values.shape)
    inside = values >= values.max() - _REGION
    slack = 1e-6 * (highest - lowest)
    return Law(
        name,
        float(intercept[best]),
        float(slope[best]),
        float(values[best]),
        degrees,
        np.stack([intercept[inside], slope[inside]], axis=1),
        np.all((ends[:, inside] > lowest + slack) & (ends[:, inside] < highest - slack), axis=0),
    )


def _log_likelihood(found: Threshold, log_size: np.ndarray) -> np.ndarray:
    """Interpolated; beyond what is known it goes on as steeply as it ends there, and never rises."""
    known, values = np.array(found.log_sizes), np.array(found.log_likelihood)
    below = max((values[1] - values[0]) / (known[1] - known[0]), 0.0) * np.minimum(log_size - known[0], 0.0)
    above = min((values[-1] - values[-2]) / (known[-1] - known[-2]), 0.0) * np.maximum(log_size - known[-1], 0.0)
    return np.interp(log_size, known, values) + below + above
