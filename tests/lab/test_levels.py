"""Several levels and the plateau, on simulated success curves with lapses and known truth."""

import math

import numpy as np
import pytest

from genscope.lab.plans.selection import search_from
from genscope.lab.statistics.estimation import estimate, next_round
from genscope.lab.statistics.success_curve import posterior_of_share
from genscope.lab.statistics.threshold import Search, share_of
from tests.chance import Seldom
from tests.lab.test_threshold import LINKS, covers, play
from tests.seeds import seed

LEVELS = (0.8, 0.5, "0.8 of plateau")
SEARCH = Search(level=LEVELS, start=60)
# Link, slope per e-fold and height: as single runs of the sparse AND at T = 50 ... 10,000, and steeper ones.
LAPSES = [("logit", 4, 0.97), ("logit", 4, 0.9), ("logit", 8, 0.85), ("probit", 4, 0.92), ("cloglog", 5, 0.95)]
LAPSES += [("logit", 10, 1.0), ("loglog", 5, 0.9), ("logit", 6, 0.7)]


def curve(kind, middle):
    """A curve with half of its height at `middle`, and where it crosses each level (None: nowhere)."""
    link, slope, height = kind
    forward, inverse = LINKS[link]

    def crosses(level):
        share, of_plateau = share_of(level)
        share = share if of_plateau else share / height
        return middle * math.exp((inverse(share) - inverse(0.5)) / slope) if share < 1 else None

    return lambda size: height * forward(inverse(0.5) + slope * math.log(size / middle)), crosses


def coverage(search, studies, rng, shrink):
    """By level, and of the plateau: studies asked, covered, and covered by an interval that is shrunk."""
    hits = {name: np.zeros(3, int) for name in (*search.levels, "plateau")}
    for number in range(studies):
        kind = LAPSES[number % len(LAPSES)]
        middle = 70 * math.exp(rng.uniform(-0.5, 0.5))
        probability, crosses = curve(kind, middle)
        counts = play(search, probability, rng)
        for level in search.levels:
            found, truth = estimate(search, counts, level), crosses(level)
            if truth is None:  # a threshold there is an error, whatever its interval
                hits[level] += [1, found.state != "crossed", found.state != "crossed"]
            else:
                hits[level] += [1, covers(found, truth), covers(found, truth, shrink)]
        value, low, high = estimate(search, counts).plateau or (0.0, 0.0, 0.0)
        near = [value + (end - value) * shrink for end in (low, high)]
        hits["plateau"] += [1, low <= kind[2] <= high, near[0] <= kind[2] <= near[1]]
    return hits


def test_intervals_cover_at_every_level_and_the_plateau():
    # One in twenty misses, and at a tenth of the length most. Searches end early, to be quick; see the slow test.
    search, rng = Search(level=LEVELS, start=60, trials=160, round=40), np.random.default_rng(seed(21))
    law = Seldom(56, 0.055, planted=0.65)
    for _, covered, shrunk in coverage(search, law.trials, rng, shrink=0.1).values():
        assert law.explains(law.trials - covered)
        assert not law.explains(law.trials - shrunk)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_intervals_cover_in_a_thousand_studies_with_lapses():
    # At every level at most one in twenty misses; at half the length more than one in six does.
    law = Seldom(1000, 0.055, planted=1 / 6)
    hits = coverage(Search(level=LEVELS, start=60, round=40), law.trials, np.random.default_rng(seed(22)), 0.5)
    for name, (studies, covered, shrunk) in hits.items():
        print(f"{name}: {covered / studies:.3f} of {studies}, {shrunk / studies:.3f} at half the length")
    for _, covered, shrunk in hits.values():
        assert law.explains(law.trials - covered)
        assert not law.explains(law.trials - shrunk)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")  # of psignifit, about many blocks of few trials
def test_psignifit_agrees():
    # An independent Bayesian fit of lapses, thresholds and widths (GPL, hence a peer): the same counts, with its own
    # priors and link. Its estimates lie within half of our intervals.
    psignifit = pytest.importorskip("psignifit")
    rng, search = np.random.default_rng(23), Search(level=LEVELS, start=60, trials=600, round=60)
    for kind in [("logit", 4, 0.95), ("logit", 8, 0.85), ("logit", 6, 0.7)]:
        probability, _ = curve(kind, 70)
        counts = play(search, probability, rng)
        data = np.array([[math.log(size), won, n] for size, (won, n) in sorted(counts.items())])
        options = {"fixed_parameters": {"gamma": 0.0}, "pool_max_blocks": 100}
        peer = psignifit.psignifit(data, experiment_type="yes/no", sigmoid="logistic", **options)
        height = 1 - peer.parameter_estimate_mean["lambda"]
        ours = estimate(search, counts)
        assert ours.plateau.low <= height <= ours.plateau.high
        assert abs(ours.plateau.value - height) < (ours.plateau.high - ours.plateau.low) / 2
        for level in LEVELS:
            found = estimate(search, counts, level)
            share, of_plateau = share_of(level)
            asked = share if not of_plateau else share * height
            if found.state != "crossed" or asked >= height:
                continue
            theirs = math.exp(float(peer.threshold(np.array([asked]), unscaled=False)[0][0]))
            assert abs(math.log(theirs / found.size)) < math.log(found.high / found.low) / 2


@pytest.mark.parametrize(
    "counts",
    [
        {40: (5, 20), 60: (12, 20), 90: (17, 20), 150: (18, 20)},
        {40: (0, 12), 80: (6, 12), 120: (8, 12), 400: (9, 12), 1000: (8, 12)},
        {30: (0, 40), 60: (20, 40), 100: (39, 40), 300: (40, 40)},
    ],
)
def test_shares_and_heights_agree_with_brute_force(counts):
    """A dense sum over thresholds, slopes, heights and links, with every formula written down again."""
    sizes, slopes, bends = 220, 60, 60
    low, high = math.log(8) - 2, math.log(2000) + 2
    theta = low + (np.arange(sizes) + 0.5) / sizes * (high - low)
    slope = np.exp(np.linspace(math.log(0.4), math.log(1e4), 2 * slopes + 1)[1::2])[:, None]
    bend = (np.arange(bends) + 0.5) / bends
    by_size, by_bend = np.zeros(sizes), np.zeros(bends)
    for number, b in enumerate(bend):
        height = 1 - 0.98 * b**2
        for skew in (0.15, 1.0, 4.0):
            z = math.log((0.2**-skew - 1) / skew)  # where the link is 0.8
            steepness = (0.2 * math.exp(z) / (1 + skew * math.exp(z))) / 0.16  # of its logit there
            log = np.zeros((slopes, sizes))
            for size, (won, n) in counts.items():
                at = np.clip(slope / steepness * (math.log(size) - theta) + z, -500, 500)
                p = np.clip(height * (1 - (1 + skew * np.exp(at)) ** (-1 / skew)), 1e-13, 1 - 1e-13)
                log += won * np.log(p) + (n - won) * np.log1p(-p)
            weight = slope**-0.25 * np.exp(log)
            by_size += weight.sum(axis=0)
            by_bend[number] += weight.sum()
    reached = np.concatenate([[0], np.cumsum(by_size) / by_size.sum()])
    expected = np.interp([0.025, 0.5, 0.975], reached, np.linspace(low, high, sizes + 1))
    known = posterior_of_share(0.8, 8, 2000, counts)
    assert known.levels_off == 0
    assert known.quantile([0.025, 0.5, 0.975]) == pytest.approx(expected, abs=0.1 * (expected[2] - expected[0]))
    value, least, most = known.crossing.heights(0.95)
    mass = by_bend / by_bend.sum()
    inside = bend[np.argsort(-mass)[: np.searchsorted(np.cumsum(np.sort(mass)[::-1]), 0.95) + 1]]
    middle = bend[np.searchsorted(np.cumsum(mass), 0.5)]
    ends = [1 - 0.98 * b**2 for b in (middle, inside.max(), inside.min())]
    assert [value, least, most] == pytest.approx(ends, abs=0.15 * (ends[2] - ends[1]))


def test_a_plateau_below_the_level_still_has_two_thresholds():
    probability, crosses = curve(("logit", 8, 0.7), 70)
    counts = {size: (round(200 * probability(size)), 200) for size in (40, 60, 70, 80, 100, 200, 600)}
    at_level, at_half, of_plateau = (estimate(SEARCH, counts, level) for level in LEVELS)
    assert (at_level.state, at_level.size) == ("plateau", None)
    assert at_half.size == pytest.approx(crosses(0.5), rel=0.03)
    assert of_plateau.size == pytest.approx(crosses("0.8 of plateau"), rel=0.05)
    assert of_plateau.levels_off == 0
    assert at_level.plateau == at_half.plateau == of_plateau.plateau
    assert at_level.plateau.low < 0.7 < at_level.plateau.high < 0.8
    assert [found.level for found in (at_level, at_half, of_plateau)] == [*LEVELS]


def test_without_lapses_the_plateau_may_be_1():
    counts = {40: (0, 40), 60: (20, 40), 80: (36, 40), 120: (200, 200), 300: (200, 200)}
    found = estimate(SEARCH, counts)
    assert found.plateau.high == 1
    assert found.plateau.low > 0.97


def test_a_round_serves_every_level_that_is_open():
    # Half of the batches go where half succeed, half to where 95 % do; a level that is known gets none.
    probability, crosses = curve(("logit", 3, 1.0), 70)
    counts = {size: (round(64 * probability(size)), 64) for size in (20, 40, 70, 120, 200, 400)}
    both = Search(level=(0.2, 0.95), width=0.01, trials=4000, batch=4, round=64)
    asked = next_round(both, counts)
    low, high = (sum(n for size, n in asked.items() if crosses(at) / 2 < size < crosses(at) * 2) for at in both.levels)
    assert (low, high) == (32, 32)
    for level in both.levels:
        alone = next_round(Search(level=level, width=0.01, trials=4000, batch=4, round=64), counts)
        assert sum(n for size, n in alone.items() if crosses(level) / 2 < size < crosses(level) * 2) == 64
    wide = Search(level=(0.2, 0.95), width=0.5, trials=4000, batch=4, round=64)
    assert next_round(wide, counts) is None


def test_levels_come_back_from_json():
    assert search_from({"level": [0.8, "0.8 of plateau"], "lowest": 4}) == Search(
        level=(0.8, "0.8 of plateau"), lowest=4
    )
    assert search_from({"level": 0.8}) == Search()
