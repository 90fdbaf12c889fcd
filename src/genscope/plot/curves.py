"""Pictures of results: success curves, thresholds with their laws, bounds along a parameter, spectra.

Guarantee: exact; what is drawn are the numbers of the result; what has no number is left out, and the title counts it.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from genscope.bounds import Bound
from genscope.estimate import wilson
from genscope.fourier import WalshFunction, level_weights
from genscope.lab import Threshold
from genscope.lab.statistics.scaling import fit_laws
from genscope.lab.statistics.threshold import share_of, words_of
from genscope.plot.picture import Picture, Series
from genscope.refusal import Refusal

STEPS = 200


def success_curve(threshold: Threshold, counts: Mapping[float, tuple[int, int]] | None = None) -> Picture:
    """The fitted success rate against the size; `counts` adds successes of trials at each size, with 95 % intervals."""
    if threshold.curve is None or not threshold.log_sizes:
        raise Refusal("success_curve got a threshold without trials: there is no curve to draw. Run some trials first.")
    low, high = math.exp(threshold.log_sizes[0]), math.exp(threshold.log_sizes[-1])
    sizes = np.geomspace(min(counts) if counts else low, max(counts) if counts else high, STEPS)
    drawn = [Series("fitted", sizes.tolist(), threshold.probability(sizes).tolist())]
    if counts:
        shares = [won / tried for won, tried in counts.values()]
        low, high = zip(*(wilson(won, tried) for won, tried in counts.values()), strict=True)
        drawn.append(Series("measured", list(counts), shares, "points", low, high))
    share, of_plateau = share_of(threshold.level)
    height = share * threshold.plateau.value if of_plateau and threshold.plateau else share
    words = threshold.axis.replace("_", " ")
    title = "How often a trial succeeds"
    return Picture(title, words, "share of trials", drawn, log_x=True, levels={words_of(threshold.level): height})


def scaling(
    lengths: Sequence[float], thresholds: Sequence[Threshold], *, laws: Sequence[str] = ("log", "power")
) -> Picture:
    """Thresholds with their intervals against the context length, and the fitted laws that are asked for."""
    known = [(x, y) for x, y in zip(lengths, thresholds, strict=True) if y.size and y.low and y.high]
    if not known:
        raise Refusal(
            "scaling got no threshold with an interval, so there is nothing to draw. Give thresholds that were found."
        )
    x, y = zip(*known, strict=True)
    sizes = [each.size for each in y]
    drawn = [Series("measured", x, sizes, "points", [each.low for each in y], [each.high for each in y])]
    fits = fit_laws(list(lengths), list(thresholds))
    fine = np.geomspace(min(x), max(x), STEPS)
    for name in laws:
        if name in fits.laws:
            law = fits.laws[name]
            drawn.append(Series(law.formula, fine.tolist(), law.size(fine).tolist(), dashed=name != fits.best))
    left = len(thresholds) - len(known)
    title = "Samples needed" + (f" ({left} without an interval left out)" if left else "")
    return Picture(title, "context length T", f"samples at {words_of(y[0].level)}", drawn, log_x=True, log_y=True)


def bound_curve(function: Callable[..., Bound], *, vary: str, values: Sequence[float], **arguments: Any) -> Picture:
    """A bound and its terms along one of its parameters, the others as given."""
    found = [function(**arguments, **{vary: value}) for value in values]
    drawn = [Series(found[0].name, list(values), [each.value for each in found])]
    if len(found[0].terms) > 1:
        drawn += [
            Series(name, list(values), [each.terms[name] for each in found], dashed=True) for name in found[0].terms
        ]
    trivial = {"trivial": found[0].trivial} if found[0].trivial else {}
    title = f"{found[0].name} ({found[0].source})"
    return Picture(title, vary.replace("_", " "), "bound", drawn, log_x=True, log_y=True, levels=trivial)


def spectrum(function: WalshFunction, *, by: str = "level") -> Picture:
    """The weight of each level (`by="level"`), or the largest coefficients (`by="component"`)."""
    if by == "level":
        weights = level_weights(function)
        bars = Series("weight", list(range(len(weights))), weights.tolist(), "bars")
        return Picture("Fourier weight by level", "size of the component", "sum of squared coefficients", [bars])
    if by != "component":
        raise Refusal(f"spectrum got by={by!r}: it shows levels or components. Use by='level' or by='component'.")
    chi = function.to_chi()
    components = [*zip(chi.supports, chi.coefficients, strict=True)]
    components += [((), chi.constant)] if chi.constant else []
    order = sorted(components, key=lambda each: -abs(each[1]))[:20]
    names = [" ".join(f"x{bit}" for bit in support) or "constant" for support, _ in order]
    bars = Series("coefficient", names, [value for _, value in order], "bars")
    return Picture("Largest Fourier coefficients", "component", "coefficient", [bars])
