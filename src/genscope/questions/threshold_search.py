"""The threshold search alone, for a trial function of your own: no store, no study.

Guarantee: as `lab.Search`; the trials of a round follow from the finished rounds alone, and the key of a trial from its
size and number.
"""

from collections.abc import Callable
from typing import Any

import polars as pl
from jaxtyping import Array, Key

from genscope.lab import Crossing, Reading, Search, Selection, Threshold
from genscope.lab.plans.design import rounds
from genscope.random import derived, root, stream


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
            success = bool(trial(derived(derived(key, size), one.seed), size))
            outcomes[one.id] = {search.outcome: success}
            won, tried = counts.get(size, (0, 0))
            counts[size] = won + success, tried + 1
    nothing = Reading(pl.DataFrame(), (), 0, search)
    return nothing.crossing(Crossing(search.axis, search.outcome, level), counts)
