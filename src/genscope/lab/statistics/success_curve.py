r"""What counts of successes say about a monotone success curve and the size at which it crosses a level.

The success probability at size $m$ is a curve of one of two kinds. A *crossing* curve reaches the level $q$ at
$\log m = \theta$ and tends to a height $h \in (q, 1]$; a *levelling* curve tends to $h \le q$ and has no threshold:

$$p(m) = h\,F_\lambda\bigl(s\,(\log m - \theta) + z\bigr),\quad h\,F_\lambda(z) = q;
\qquad p(m) = h\,F_1\bigl(s\,(\log m - \mu)\bigr),$$

or, where the level is a share $q$ of the height itself, of a third: $F_\lambda(z) = q$ with any height, so that every
curve crosses. That one also says what is known of the height,

with $F_\lambda(z) = 1 - (1 + \lambda e^z)^{-1/\lambda}$: logistic for $\lambda = 1$, complementary log-log for
$\lambda \to 0$, a slow approach to its height for $\lambda > 1$. The steepness of a crossing curve is counted where it
crosses, as the slope of $\operatorname{logit} p$ there, so that what is known of $\theta$ hardly depends on $h$ and
$\lambda$. The posterior is integrated on grids that close in on its bulk.

Source: Aranda-Ordaz (1981) for the family of links; house design for the rest. Wichmann and Hill (2001) for lapses:
failures that no sample size cures, which move a threshold at a fixed level and not one at a share of the height.
Guarantee: estimate; quantiles within a few per cent of the posterior's width, tested against brute force.
"""

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

Counts = Mapping[Any, tuple[float, float]]  # size -> (successes, trials); whole numbers, unless outcomes are clustered
Box = tuple[tuple[float, float], ...]  # of log size, log slope and bend

REACH = 2.0  # thresholds are considered this many e-folds beyond the sizes in question
SLOPES = (0.4, 10_000.0)  # of logit p per e-fold of size; the steepest are steps for all practical purposes
TILT = 0.25  # the prior density of the log slope falls as slope^-TILT
SKEWS = (0.15, 1.0, 4.0)
LEVELLING = 5.0  # before any trial, a levelling curve is as probable as a threshold within given 5 e-folds

LEAST_HEIGHT = 0.02  # of a curve whose level is a share of its height

_BENDS, _HEIGHTS = 8, 16  # cells in the bend; more of them where the height itself is asked for
_COARSE, _RESTART, _FINE = (56, 10), (24, 8), (20, 6)  # cells in log size and log slope
_CELLS = 100  # of the posterior of the threshold
_BULK = 8.0  # curves whose log posterior is further below the best one are left out
_ZOOMS = 5


@dataclass(frozen=True)
class Curve:
    r"""$p(m) = h F_\lambda(s (\log m - x) + z)$; the fields are numbers, or arrays that broadcast."""

    height: Any
    scale: Any
    centre: Any
    offset: Any
    skew: Any

    def __call__(self, log_size: Any) -> Any:
        """Probability of success."""
        return -self.height * np.expm1(-self._depth(log_size))

    def logarithms(self, log_size: Any) -> tuple[Any, Any]:
        """Of the probability of success, and of failure."""
        rest = np.exp(-self._depth(log_size))
        return np.log(self.height * (1 - rest)), np.log(1 - self.height + self.height * rest)

    def _depth(self, log_size: Any) -> Any:
        r"""$-\log(1 - F)$, within limits that keep all logarithms finite."""
        z = np.clip(self.scale * (log_size - self.centre) + self.offset, -30, 150)
        return np.minimum(np.log1p(self.skew * np.exp(z)) / self.skew, 30)


@dataclass(frozen=True)
class _Kind:
    """Curves that cross a level, that level off below it, or that reach a share of their height: `level` is it.

    They are equally probable a priori over a box and the skews.
    """

    name: Literal["crossing", "levelling", "share"]
    level: float
    box: Box

    @property
    def crossing(self) -> bool:
        return self.name != "levelling"

    @property
    def skews(self) -> tuple[float, ...]:
        return SKEWS if self.crossing else (1.0,)

    @property
    def bends(self) -> int:
        return _HEIGHTS if self.name == "share" else _BENDS

    def height(self, bend: Any) -> Any:
        """The more bend, the lower; most of those that may reach 1 lie close to it."""
        if self.name == "levelling":
            return self.level * (1 - bend**2)
        return 1 - (1 - (LEAST_HEIGHT if self.name == "share" else self.level)) * bend**2

    @property
    def log_density(self) -> float:
        """Prior per volume of the box and skew, in units in which thresholds have 1 per e-fold."""
        sides = [high - low for low, high in self.box]
        return math.log((sides[0] if self.crossing else LEVELLING) / math.prod(sides) / len(self.skews))

    def curves(self, bend: np.ndarray, skew: np.ndarray, log_size: np.ndarray, log_slope: np.ndarray) -> Curve:
        """Curves that cross the level, or have their middle, at `log_size`; the more bend, the lower their height."""
        height = self.height(bend)
        if not self.crossing:
            return Curve(height, np.exp(log_slope), log_size, 0.0, skew)
        among = 1.0 if self.name == "share" else height  # what the slope counts as certain success
        share = self.level / among
        offset = np.log(np.expm1(-skew * np.log1p(-share)) / skew)  # F(offset) = share
        derivative = np.exp(offset) * (1 - share) / (1 + skew * np.exp(offset))  # of F there
        scale = np.exp(log_slope) * self.level * (1 - self.level) / (among * derivative)
        return Curve(height, scale, log_size, offset, skew)


@dataclass(frozen=True)
class _Grid:
    """For each of several bends and skews, cells over a parallelogram of log size and log slope.

    Slopes are counted from a line of inclination `shear` through (`centre`, 0): the ridge along which slope and
    threshold make up for each other. Arrays have one row per member, that is, pair of bend and skew.
    """

    bends: np.ndarray
    skews: np.ndarray
    sizes: np.ndarray  # low and high
    slopes: np.ndarray  # low and high
    centre: np.ndarray
    shear: np.ndarray
    shape: tuple[int, int]

    @classmethod
    def plain(cls, kind: _Kind, box: Box, shape: tuple[int, int]) -> "_Grid":
        skews, bends = np.meshgrid(kind.skews, _centres(np.array(box[2]), kind.bends), indexing="ij")
        sizes, slopes = (np.tile(side, (bends.size, 1)) for side in box[:2])
        zero = np.zeros(bends.size)
        return cls(bends.ravel(), skews.ravel(), sizes, slopes, zero, zero, shape)

    @functools.cached_property
    def cells(self) -> tuple[np.ndarray, np.ndarray]:
        return np.ptp(self.sizes, axis=1) / self.shape[0], np.ptp(self.slopes, axis=1) / self.shape[1]

    @functools.cached_property
    def volumes(self) -> np.ndarray:
        return self.cells[0] * self.cells[1]

    @functools.cached_property
    def points(self) -> tuple[np.ndarray, np.ndarray]:
        """Centers of the cells: log sizes, member x size x 1, and log slopes, member x size x slope."""
        log_size = _centres(self.sizes, self.shape[0])[:, :, None]
        line = self.shear[:, None, None] * (log_size - self.centre[:, None, None])
        return log_size, line + _centres(self.slopes, self.shape[1])[:, None, :]

    def curves(self, kind: _Kind) -> Curve:
        return kind.curves(self.bends[:, None, None], self.skews[:, None, None], *self.points)

    def closer(self, log_likelihood: np.ndarray, limits: Box) -> "_Grid":
        """Over the bulk of each member and a cell more on all sides, along its ridge."""
        below = log_likelihood - log_likelihood.max(axis=(1, 2), keepdims=True)
        weight = np.exp(below)
        weight /= weight.sum(axis=(1, 2), keepdims=True)
        log_size, log_slope = np.broadcast_arrays(*self.points)
        centre = (weight * log_size).sum(axis=(1, 2))
        size = log_size - centre[:, None, None]
        size_cell, slope_cell = self.cells
        # Regression of slope on size; a bulk within one cell is as wide as the cell, and inclined as before.
        own = size_cell**2 / 12
        covariance = (weight * size * log_slope).sum(axis=(1, 2)) + self.shear * own
        shear = covariance / ((weight * size**2).sum(axis=(1, 2)) + own)
        slope = log_slope - shear[:, None, None] * size
        slope_cell = slope_cell + np.abs(shear - self.shear) * size_cell
        sizes = _extent(below, log_size, size_cell, np.array(limits[0]))
        line = shear[:, None] * (sizes - centre[:, None])
        ends = np.stack([limits[1][0] - line.max(axis=1), limits[1][1] - line.min(axis=1)], axis=1)
        return _Grid(self.bends, self.skews, sizes, _extent(below, slope, slope_cell, ends), centre, shear, _FINE)

    def box(self, log_likelihood: np.ndarray, bend_cell: float, limits: Box) -> Box:
        """Around the bends of the bulk and a cell more, and all sizes and slopes that fit one of these bends."""
        best = log_likelihood.max(axis=(1, 2))
        bends = self.bends[best > best.max() - _BULK]
        low, high = bends.min() - bend_cell, bends.max() + bend_cell
        near = (low <= self.bends) & (self.bends <= high)
        sides = (self.sizes[near], self.points[1][near], np.array([low, high]))
        return tuple(
            (max(float(of.min()), a), min(float(of.max()), b)) for of, (a, b) in zip(sides, limits, strict=True)
        )


def _centres(ends: np.ndarray, number: int) -> np.ndarray:
    low, high = ends[..., :1], ends[..., 1:]
    return low + (np.arange(number) + 0.5) / number * (high - low)


def _extent(below: np.ndarray, of: np.ndarray, cell: np.ndarray, limits: np.ndarray) -> np.ndarray:
    bulk = below > -_BULK
    low = np.where(bulk, of, np.inf).min(axis=(1, 2)) - cell
    high = np.where(bulk, of, -np.inf).max(axis=(1, 2)) + cell
    return np.stack([np.maximum(low, limits[..., 0]), np.minimum(high, limits[..., 1])], axis=1)


@functools.lru_cache(maxsize=256)
def _coarse(kind: _Kind, size: float) -> tuple[np.ndarray, np.ndarray]:
    return _Grid.plain(kind, kind.box, _COARSE).curves(kind).logarithms(math.log(size))


def _log_sum(values: np.ndarray, axis: int = 0) -> Any:
    return np.logaddexp.reduce(values, axis=axis)


@dataclass(frozen=True)
class _Bulk:
    """The curves of a kind that explain the counts, with log weights up to a constant that both kinds share."""

    kind: _Kind
    grid: _Grid
    log_weights: np.ndarray

    @functools.cached_property
    def log_mass(self) -> float:
        return float(_log_sum(self.log_weights.ravel()))

    def log_density(self, log_sizes: np.ndarray) -> np.ndarray:
        """Of the log size, summed over all else."""
        densities = _log_sum(self.log_weights, axis=2) - np.log(self.grid.cells[0])[:, None]
        members = []
        for (low, high), known, values in zip(self.grid.sizes, self.grid.points[0][:, :, 0], densities, strict=True):
            inside = (low <= log_sizes) & (log_sizes <= high)
            members.append(np.where(inside, np.interp(log_sizes, known, values), -np.inf))
        return _log_sum(np.array(members))

    def heights(self, share: float) -> tuple[float, float, float]:
        """The median height, and the ends of the smallest set of bends that holds a share of the posterior.

        Bends, whose prior is uniform: an interval of heights with equal tails would never reach 1.
        """
        bends = np.unique(self.grid.bends)
        log_density = _log_sum(_log_sum(self.log_weights, axis=2).T).reshape(-1, len(bends))  # by skew
        half = (bends[1] - bends[0]) / 2
        fine = np.linspace(bends[0] - half, bends[-1] + half, 801)[1::2]
        mass = np.exp(np.interp(fine, bends, _log_sum(log_density) - log_density.max()))
        mass /= mass.sum()
        kept = np.sort(np.argsort(-mass, kind="stable")[: np.searchsorted(np.cumsum(np.sort(mass)[::-1]), share) + 1])
        step = (fine[1] - fine[0]) / 2
        middle = fine[np.searchsorted(np.cumsum(mass), 0.5)]
        ends = (middle, fine[kept[-1]] + step, fine[kept[0]] - step)
        value, low, high = (float(self.kind.height(np.clip(bend, 0.0, 1.0))) for bend in ends)
        return value, low, high

    def select(self, kept: np.ndarray) -> Curve:
        """Chosen curves, in one row."""
        fields = vars(self.grid.curves(self.kind)).values()
        return Curve(*(np.broadcast_to(field, kept.shape)[kept] for field in fields))


def _explain(kind: _Kind, counts: Counts) -> _Bulk:
    """Zoom in until the bulk fills the grid: in size and slope for each bend and skew, then in the bend."""
    sizes = np.log(np.array(list(counts), dtype=float)).reshape(-1, 1, 1, 1)
    won, trials = np.array(list(counts.values()), dtype=float).reshape(-1, 2).T

    def likelihood(grid: _Grid) -> np.ndarray:
        success, failure = grid.curves(kind).logarithms(sizes)
        value = np.tensordot(won, success, 1) + np.tensordot(trials - won, failure, 1)
        low, high = kind.box[1]
        log_slope = grid.points[1]
        return np.where((log_slope >= low) & (log_slope <= high), value - TILT * log_slope, -np.inf)

    def zoom(grid: _Grid, log_likelihood: np.ndarray) -> tuple[_Grid, np.ndarray]:
        for _ in range(_ZOOMS):
            before, grid = grid, grid.closer(log_likelihood, kind.box)
            log_likelihood = likelihood(grid)
            if (grid.volumes > before.volumes / 3).all():
                break
        return grid, log_likelihood

    grid = _Grid.plain(kind, kind.box, _COARSE)
    log_likelihood = np.zeros((len(grid.bends), *_COARSE))
    for size, (successes, n) in counts.items():
        success, failure = _coarse(kind, size)
        log_likelihood += successes * success + (n - successes) * failure
    grid, log_likelihood = zoom(grid, log_likelihood)
    bend_cell = (kind.box[2][1] - kind.box[2][0]) / kind.bends
    for _ in range(_ZOOMS):
        box = grid.box(log_likelihood, bend_cell, kind.box)
        if box[2][1] - box[2][0] > 0.6 * kind.bends * bend_cell:
            break
        bend_cell = (box[2][1] - box[2][0]) / kind.bends
        grid = _Grid.plain(kind, box, _RESTART)
        grid, log_likelihood = zoom(grid, likelihood(grid))
    log_prior = kind.log_density + np.log(grid.volumes * bend_cell)
    return _Bulk(kind, grid, log_likelihood + log_prior[:, None, None])


@dataclass(frozen=True)
class Posterior:
    """What is known of the curve: whether it crosses the level, and where."""

    crossing: _Bulk
    levelling: _Bulk | None = None
    """None where the level is a share of the height, which every curve reaches."""

    @functools.cached_property
    def levels_off(self) -> float:
        """Probability that the curve levels off below the level."""
        if self.levelling is None:
            return 0.0
        both = np.logaddexp(self.crossing.log_mass, self.levelling.log_mass)
        return float(np.exp(self.levelling.log_mass - both))

    @functools.cached_property
    def _edges(self) -> np.ndarray:
        bulk = self.crossing
        best = bulk.log_weights.max(axis=(1, 2))
        sizes = bulk.grid.sizes[best > best.max() - _BULK]
        return np.linspace(sizes.min(), sizes.max(), _CELLS + 1)

    @property
    def log_sizes(self) -> np.ndarray:
        """Log thresholds for which `log_likelihood` is given, evenly spaced."""
        return (self._edges[1:] + self._edges[:-1]) / 2

    @functools.cached_property
    def log_likelihood(self) -> np.ndarray:
        """Of each log threshold, integrated over the other parameters; 0 at the best one."""
        values = self.crossing.log_density(self.log_sizes)
        return values - values.max()

    @functools.cached_property
    def _reached(self) -> np.ndarray:
        mass = np.exp(self.log_likelihood)
        return np.concatenate([[0.0], np.cumsum(mass) / mass.sum()])

    def quantile(self, probability: Any, *, given_crossing: bool = False) -> np.ndarray:
        """Of the log threshold; a curve that levels off crosses at infinity."""
        probability = np.asarray(probability) / (1.0 if given_crossing else max(1 - self.levels_off, 1e-300))
        return np.where(probability > 1, np.inf, np.interp(probability, self._reached, self._edges))

    def beyond(self, log_size: float) -> float:
        """Probability of a threshold that is larger."""
        return float((1 - self.levels_off) * (1 - np.interp(log_size, self._edges, self._reached)))

    def best(self) -> Curve:
        """The most probable curve of the more probable kind."""
        bulk = self.crossing if self.levelling is None or self.levels_off <= 0.5 else self.levelling
        curves = bulk.select(bulk.log_weights == bulk.log_weights.max())
        return Curve(*(float(field[0]) for field in vars(curves).values()))

    def ensemble(self, log_sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Curves that carry nearly all of the posterior: weights, log thresholds, success probabilities by size."""
        kinds = [bulk for bulk in (self.crossing, self.levelling) if bulk is not None]
        top = max(bulk.log_weights.max() for bulk in kinds)
        weights, thresholds, successes = [], [], []
        for bulk in kinds:
            kept = bulk.log_weights > top - _BULK
            curves = bulk.select(kept)
            weights.append(np.exp(bulk.log_weights[kept] - top))
            thresholds.append(curves.centre if bulk.kind.crossing else np.full(kept.sum(), np.inf))
            successes.append(curves(log_sizes[:, None]))
        weight = np.concatenate(weights)
        return weight / weight.sum(), np.concatenate(thresholds), np.concatenate(successes, axis=1)


def posterior(level: float, lowest: float, highest: float, counts: Counts) -> Posterior:
    """What the counts say, for thresholds from `lowest` to `highest` and some way beyond.

    Uniform a priori in the log threshold, the log slope and the root of the lapse rate; curves that level off do so
    somewhere below `highest`, since a later rise could not be told from a threshold out of reach.
    """
    crossing, levelling = (_Kind(name, level, _box(lowest, highest, reach)) for name, reach in _FIXED)
    return Posterior(_explain(crossing, counts), _explain(levelling, counts))


def posterior_of_share(share: float, lowest: float, highest: float, counts: Counts) -> Posterior:
    """What the counts say of the size at which the curve reaches a share of its own height, and of that height."""
    return Posterior(_explain(_Kind("share", share, _box(lowest, highest, REACH)), counts))


_FIXED: tuple[tuple[Literal["crossing", "levelling"], float], ...] = (("crossing", REACH), ("levelling", 0.0))


def _box(lowest: float, highest: float, beyond: float) -> Box:
    sizes = math.log(lowest) - REACH, math.log(highest) + beyond
    return sizes, (math.log(SLOPES[0]), math.log(SLOPES[1])), (0.0, 1.0)
