"""The threshold search alone, for a trial function of your own: no store, no study.

Guarantee: as `lab.Search`; the trials of a round follow from the finished rounds alone, and the key of a trial from its
size and number.
"""

import numbers
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
from jaxtyping import Array, Key

from genscope.lab import Crossing, Reading, Search, Selection, Threshold
from genscope.lab.plans.design import rounds
from genscope.random import derived, root, stream
from genscope.refusal import Refusal


def sample_complexity(
    trial: Callable[[Key[Array, ""], int], bool],
    low: int,
    high: int,
    *,
    level: float = 0.8,
    width: float = 0.1,
    trials: int = 400,
    start: int | None = None,
    seed: int = 0,
) -> Threshold:
    """The sample size between two at which `trial(key, sample_size)` is true with a probability of `level`.

    It ends when both ends of the 95 % interval lie within a factor `1 + width` of the estimate, or after so many
    trials.
    """
    low, high, trials, seed = _whole(low=low, high=high, trials=trials, seed=seed)
    [start] = [None] if start is None else _whole(start=start)
    batch = min(4, trials)
    search = Search(
        level=level, lowest=low, highest=high, start=start, width=width, trials=trials, round=4 * batch, batch=batch
    )
    outcomes: dict[str, dict[str, Any]] = {}
    counts: dict[float, tuple[int, int]] = {}
    key = stream(root(seed), "sample_complexity")
    for asked in rounds(Selection("sample_complexity", 1, search=search), {}, lambda _: outcomes):
        for one in asked:
            size = int(one.point[search.axis])
            success = _claim(trial(derived(derived(key, size), one.seed), size))
            outcomes[one.id] = {search.outcome: success}
            won, tried = counts.get(size, (0, 0))
            counts[size] = won + success, tried + 1
    nothing = Reading(pl.DataFrame(), (), 0, search)
    return nothing.crossing(Crossing(search.axis, search.outcome, level), counts)


def _claim(found: Any) -> bool:
    """Whether a run has succeeded: True or False of any library, or a number 0 or 1."""
    value = np.asarray(found)
    if value.shape == () and value.dtype.kind in "biuf" and value in (0, 1):
        return bool(value)
    raise Refusal(
        f"sample_complexity got {found!r} of type {type(found).__name__} from the trial: it must say whether the run "
        "succeeded. Return True or False."
    )


def _whole(**given: Any) -> list[int]:
    """The numbers as Python's; trials are at least one."""
    for name, value in given.items():
        if not isinstance(value, numbers.Integral) or (name == "trials" and value < 1):
            least = " of at least 1" if name == "trials" else ""
            raise Refusal(f"sample_complexity got {name}={value!r}: it must be a whole number{least}. Change it.")
    return [int(value) for value in given.values()]
