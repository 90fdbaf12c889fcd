r"""Scaling laws over a length, fitted to thresholds with all that is known of each of them.

A law gives the threshold at every length $T$: $a + b\log T$ (log), $a T^b$ (power), $a + bT$ (linear). Each threshold
brings its own likelihood, a function of its logarithm, so that wide intervals count little and a threshold that is only
bounded from one side counts on that side. The likelihood of a law is the product over the lengths.

Source: product.md, Section 5; house design.
Departures: edelman2022 fits by eye.
Guarantee: estimate; intervals are profile-likelihood intervals (95 % for each number by itself).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import stats

from genscope.lab.threshold import Threshold

CLEAR = 3.0  # lead in log-likelihood from which one law is clearly better than another
_CELLS, _ZOOMS = 61, 5
_REGION = stats.chi2.ppf(0.95, 1) / 2  # fall in log-likelihood at the ends of a profile interval


@dataclass(frozen=True)
class _Form:
    """A law that is linear in its two numbers after both axes are transformed."""

    abscissa: Callable[[Any], Any]
    ordinate: Callable[[Any], Any]
    size: Callable[[Any], Any]
    formula: str


FORMS: Mapping[str, _Form] = {
    "log": _Form(np.log, lambda size: size, lambda value: value, "a + b log T"),
    "power": _Form(np.log, np.log, np.exp, "a T^b"),
    "linear": _Form(lambda length: length, lambda size: size, lambda value: value, "a + b T"),
}


@dataclass(frozen=True)
class Law:
    """A fitted law."""

    name: str
    intercept: float
    slope: float
    log_likelihood: float
    """Relative to a fit that goes through every threshold."""
    p_value: float
    """Of a deviance as large as this if the law were true."""
    region: np.ndarray = field(repr=False)
    """Intercepts and slopes within the likelihood region, one row each."""

    @property
    def formula(self) -> str:
        """The law in letters."""
        return FORMS[self.name].formula

    def size(self, length: Any) -> Any:
        """The threshold at a length."""
        form = FORMS[self.name]
        return form.size(self.intercept + self.slope * form.abscissa(np.asarray(length, float)))

    def predict(self, length: float) -> tuple[float, float, float]:
        """The threshold at a length with its interval."""
        form = FORMS[self.name]
        sizes = form.size(self.region[:, 0] + self.region[:, 1] * form.abscissa(float(length)))
        return float(self.size(length)), float(sizes.min()), float(sizes.max())

    def parameters(self) -> dict[str, dict[str, float]]:
        """The numbers a and b with their intervals."""
        size = FORMS[self.name].size  # a is the size at abscissa 0
        a, b = size(self.region[:, 0]), self.region[:, 1]
        return {
            "a": {"value": float(size(self.intercept)), "low": float(a.min()), "high": float(a.max())},
            "b": {"value": self.slope, "low": float(b.min()), "high": float(b.max())},
        }


@dataclass(frozen=True)
class Fits:
    """The laws fitted to one set of thresholds; no laws with fewer than three usable thresholds."""

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

    def predict(self, law: str, length: float) -> tuple[float, float, float] | None:
        """The threshold at a length by a law, with its interval."""
        return self.laws[law].predict(length) if self.laws else None

    @property
    def verdict(self) -> str:
        """Which law fits best and how strongly the thresholds say so."""
        gone = ", ".join(f"{length:g}" for length in self.left_out)
        note = f" No threshold at {gone}." if gone else ""
        if self.best is None:
            return f"Three thresholds are needed to compare laws; there are {len(self.lengths)}.{note}"
        leads = {name: self.laws[self.best].log_likelihood - law.log_likelihood for name, law in self.laws.items()}
        rivals = sorted(leads.items() - {(self.best, 0.0)}, key=lambda pair: pair[1])
        said = [f"{lead:.1f} ahead of the {name} law" for name, lead in rivals]
        closest = rivals[0][1]
        strength = "clearly" if closest >= CLEAR else "not decisively" if closest >= 1 else "by a hair"
        poor = " It fits poorly itself." if self.laws[self.best].p_value < 0.01 else ""
        return f"The {self.best} law fits best, {strength}: {' and '.join(said)} in log-likelihood.{poor}{note}"

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers and words for JSON."""
        laws = {
            name: {
                "formula": law.formula,
                "parameters": law.parameters(),
                "log_likelihood": law.log_likelihood,
                "behind": self.lead(self.best, name) if self.best else None,
                "p_value": law.p_value,
            }
            for name, law in self.laws.items()
        }
        return {"best": self.best, "laws": laws, "left_out": list(self.left_out), "verdict": self.verdict}


def fit_laws(lengths: Sequence[float], thresholds: Sequence[Threshold]) -> Fits:
    """Fit every law to the thresholds at the given lengths."""
    if len(lengths) != len(thresholds) or any(not length > 0 for length in lengths):
        raise ValueError(
            f"fit_laws got {len(lengths)} lengths and {len(thresholds)} thresholds: each threshold has its positive "
            "length. Give as many of one as of the other."
        )
    known = [(length, found) for length, found in zip(lengths, thresholds, strict=True) if _usable(found)]
    left_out = tuple(float(length) for length, found in zip(lengths, thresholds, strict=True) if not _usable(found))
    kept = tuple(float(length) for length, _ in known)
    if len(set(kept)) < 3:
        return Fits({}, kept, left_out)
    return Fits({name: _fit(name, kept, [found for _, found in known]) for name in FORMS}, kept, left_out)


def _usable(found: Threshold) -> bool:
    return found.state != "plateau" and found.trials > 0


def _fit(name: str, lengths: Sequence[float], thresholds: Sequence[Threshold]) -> Law:
    """The best pair of numbers, by a grid over the law's values at the first and the last length that zooms in."""
    form = FORMS[name]
    at = form.abscissa(np.asarray(lengths))
    first, last = at.min(), at.max()

    def evaluate(centres: np.ndarray, reach: np.ndarray):
        axes = np.linspace(centres - reach, centres + reach, _CELLS, axis=1)
        left, right = form.ordinate(np.exp(axes[0]))[:, None], form.ordinate(np.exp(axes[1]))[None]
        slope = (right - left) / (last - first)
        intercept = left - slope * first
        return axes, intercept, slope, _log_likelihood(form, intercept, slope, at, thresholds)

    cells = np.zeros(2)
    centres = np.array([_middle(thresholds[int(at.argmin())]), _middle(thresholds[int(at.argmax())])])
    reach = np.full(2, 2.5)
    for _ in range(_ZOOMS):
        axes, _, _, values = evaluate(centres, reach)
        near = np.argwhere(values >= values.max() - 2 * _REGION)
        centres = axes[[0, 1], np.unravel_index(values.argmax(), values.shape)]
        cells = axes[:, 1] - axes[:, 0]
        reach = 1.2 * np.abs(axes[[0, 1], near] - centres).max(axis=0) + cells
    _, intercepts, slopes, values = evaluate(centres, reach)
    inside = values >= values.max() - _REGION
    _, intercept, slope, values = evaluate(centres, cells)
    best = np.unravel_index(values.argmax(), values.shape)
    return Law(
        name,
        float(intercept[best]),
        float(slope[best]),
        float(values[best]),
        float(stats.chi2.sf(-2 * values[best], len(set(lengths)) - 2)),
        np.stack([intercepts[inside], slopes[inside]], axis=1),
    )


def _middle(found: Threshold) -> float:
    """The log threshold that is most likely."""
    return found.log_sizes[int(np.argmax(found.log_likelihood))]


def _log_likelihood(form: _Form, intercept, slope, at, thresholds: Sequence[Threshold]) -> np.ndarray:
    total = np.zeros_like(intercept)
    for x, found in zip(at, thresholds, strict=True):
        size = form.size(intercept + slope * x)
        log_size = np.log(np.maximum(size, 1e-12))  # a law below zero is as wrong as the smallest size
        total += np.interp(log_size, found.log_sizes, found.log_likelihood)
    return total
