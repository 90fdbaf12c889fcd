"""Where the success probability crosses a level: an adaptive design, and an estimate with its interval.

Trials are spent in rounds at the sizes that tell most about the threshold; those of several levels share a round. A
round is a function of the counts so far and of nothing else. A success rate that levels off below the level has no
threshold, which is reported and never extrapolated; beyond the sizes that were tried, a threshold is only known to lie
on that side.

Source: Chaloner and Verdinelli (1995) for designs that minimize an expected posterior variance.
Departures: the papers read the first success off a fixed grid; `threshold.first_reaching` does that.
Guarantee: estimate; intervals cover the truth at their nominal level for logistic, probit and log-log curves with and
without lapses, measured by simulation (tests/lab/test_threshold.py).
"""

import dataclasses
import functools
import itertools
import math
from typing import Any

import numpy as np

from genscope.lab.statistics.success_curve import Counts, Posterior, posterior, posterior_of_share
from genscope.lab.statistics.threshold import Interval, Level, Search, State, Threshold, share_of, tried_only

_SPREAD = 1.6  # between the sizes of a first round around a first guess
_FAR = 1.0  # e-folds; a threshold further from the middle than this counts as this far, and so does having none
_CANDIDATES = 20
_SURE = 0.95  # share of levelling curves among those without a threshold up to here, before a plateau is spoken of
_HOPELESS = 500.0  # log-likelihoods below the best by more than this are cut there, so that all are finite


PLATEAU = 0.8  # the share of it whose posterior also says what is known of the plateau

_Given = tuple[tuple[Any, tuple[float, float]], ...]  # counts that can be a key


def estimate(search: Search, counts: Counts, level: Level | None = None) -> Threshold:
    """The threshold, as the counts have it: the median of its posterior and a central interval of it.

    At the given level, or at the first of the search. The plateau's interval is the shortest in the root of the share
    of failures.
    """
    counts = tried_only(counts)
    return _estimated(search, _given(counts), search.levels[0] if level is None else level)


# A search is asked for its rounds, and a reading for its thresholds, again and again with the same counts.
@functools.lru_cache(maxsize=512)
def _estimated(search: Search, given: _Given, level: Level) -> Threshold:
    found, _ = _estimate(search, dict(given), level)
    return dataclasses.replace(found, plateau=_plateau(search, given)) if given else found


@functools.lru_cache(maxsize=512)
def _plateau(search: Search, given: _Given) -> Interval:
    counts = dict(given)
    known = posterior_of_share(PLATEAU, *_range(search, counts), counts).crossing
    return Interval(*known.heights(search.confidence))


def _given(counts: Counts) -> _Given:
    return tuple((size, (won, n)) for size, (won, n) in counts.items())


def next_round(search: Search, counts: Counts) -> dict[int, int] | None:
    """Further trials by size, in whole batches; None when the search is finished."""
    found = _next_round(search, _given(tried_only(counts)))
    return None if found is None else dict(found)


@functools.lru_cache(maxsize=4096)
def _next_round(search: Search, given: _Given) -> dict[int, int] | None:
    counts = dict(given)
    batches = int(min(search.round, search.trials - sum(n for _, n in counts.values())) // search.batch)
    if batches < 1:
        return None
    if not counts:
        return _batches(search, _first_sizes(search, batches))
    estimates = [_estimate(search, counts, level) for level in search.levels]
    open_levels = [known for found, known in estimates if not _resolved(search, found, known)]
    turn = int(sum(n for _, n in counts.values())) // search.round  # so that a batch left over goes to each in turn
    sizes = []
    for place, known in enumerate(open_levels):
        share = len(range((place - turn) % len(open_levels), batches, len(open_levels)))
        sizes += _informative_sizes(search, known, share)
    return _batches(search, sizes) if sizes else None


def _resolved(search: Search, found: Threshold, known: Posterior) -> bool:
    low, high = known.quantile(_ends(search))
    above, below = low >= math.log(search.highest), high <= math.log(search.lowest)
    perhaps_plateau = found.state == "above" and found.levels_off > 0.5  # more trials tell
    return bool((above and not perhaps_plateau) or below or (found.state == "crossed" and _tight(search, found)))


def _ends(search: Search) -> tuple[float, float]:
    return (1 - search.confidence) / 2, (1 + search.confidence) / 2


def _range(search: Search, counts: Counts) -> tuple[float, float]:
    return min(search.lowest, *counts), max(search.highest, *counts)


def _estimate(search: Search, counts: Counts, level: Level) -> tuple[Threshold, Posterior]:
    smallest, largest = min(counts, default=search.lowest), max(counts, default=search.highest)
    share, of_plateau = share_of(level)
    ask = posterior_of_share if of_plateau else posterior
    known = ask(share, min(smallest, search.lowest), max(largest, search.highest), counts)
    below, above = _ends(search)
    low, middle, high = (float(end) for end in known.quantile([below, 0.5, above]))
    bottom, top = math.log(smallest), math.log(largest)
    size, ends = None, (math.exp(low) if low >= bottom else None, math.exp(high) if high <= top else None)
    if not counts:
        state, ends = "unresolved", (None, None)
    elif low >= top:
        state: State = "plateau" if known.levels_off > _SURE * (known.levels_off + known.beyond(top)) else "above"
        ends = (float(largest), None)
    elif high <= bottom:
        state, ends = "below", (None, float(smallest))
    elif None in ends:
        state = "unresolved"
    else:
        state, size = "crossed", math.exp(middle)
    found = Threshold(
        size,
        *ends,
        trials=round(sum(n for _, n in counts.values())),
        state=state,
        axis=search.axis,
        level=level,
        levels_off=known.levels_off,
        log_sizes=tuple(known.log_sizes.tolist()),
        log_likelihood=tuple(np.maximum(known.log_likelihood, -_HOPELESS).tolist()),
        curve=known.best() if counts else None,
    )
    return found, known


def _tight(search: Search, found: Threshold) -> bool:
    if found.size is None or found.low is None or found.high is None:
        return False
    return max(found.high / found.size, found.size / found.low) <= 1 + search.width


def _batches(search: Search, sizes: list[int]) -> dict[int, int]:
    return {size: search.batch * len(list(same)) for size, same in itertools.groupby(sorted(sizes))}


def _first_sizes(search: Search, number: int) -> list[int]:
    low, high = math.log(search.lowest), math.log(search.highest)
    if search.start is None:
        wanted = low + (high - low) * (np.arange(number) + 0.5) / number
    else:
        wanted = math.log(search.start) + (np.arange(number) - (number - 1) / 2) * math.log(_SPREAD)
    ladder = search.sizes
    return [int(ladder[np.abs(np.log(ladder) - log_size).argmin()]) for log_size in wanted]


def _informative_sizes(search: Search, known: Posterior, number: int) -> list[int]:
    """One size after the other, each where a batch is expected to reduce the variance of the threshold most.

    The variance is that of the log threshold, cut at `_FAR` from the middle, which is also the place of a curve that
    never crosses: looking for a plateau and looking for the crossing are weighed by one number. Expectations are
    linear in the outcome, so that a batch lowers the variance by $c^2 / (v + w / n)$, where $c$ is the covariance of
    the threshold with the success probability $p$ at a size, $v$ the variance of $p$, and $w$ the mean of $p (1 - p)$.
    """
    low, middle, high = known.quantile([0.02, 0.5, 0.98], given_crossing=True)
    ladder = search.sizes
    near = np.flatnonzero((np.log(ladder) >= low - 0.7) & (np.log(ladder) <= high + 1.6))
    if not len(near):
        near = np.abs(np.log(ladder) - middle).argmin(keepdims=True)
    sizes = ladder[np.unique(np.linspace(near[0], near[-1], _CANDIDATES).round().astype(int))]
    weights, thresholds, success = known.ensemble(np.log(sizes))
    target = np.clip(thresholds - middle, -_FAR, _FAR)
    target -= weights @ target
    mean = success @ weights
    centred = success - mean[:, None]
    between = (centred * weights) @ centred.T
    noise = (mean * (1 - mean) - np.diag(between)) / search.batch
    covariance = (centred * weights) @ target
    chosen = []
    for _ in range(number):
        variance = np.diag(between) + noise
        best = int(np.round(covariance**2 / variance, 12).argmax())  # rounded: ties fall alike on all machines
        chosen.append(int(sizes[best]))
        gain = between[best] / variance[best]
        covariance = covariance - gain * covariance[best]
        between = between - np.outer(gain, between[best])
    return chosen
