import itertools

import numpy as np
import pytest
from scipy.stats import kendalltau

from genscope.claims._concordance import PERMUTATIONS, Stratum, concordance
from tests.chance import Seldom
from tests.seeds import seed

NONE = np.empty(0)


def test_one_stratum_without_ties_is_kendalls_tau():
    generator = np.random.default_rng(1)
    x, values = np.arange(9.0), generator.normal(size=9)
    expected, _ = kendalltau(x, values)
    found = concordance([Stratum(x, values, NONE)])
    assert found.value == pytest.approx(expected)
    _, exact = kendalltau(x, values, alternative="greater")
    # 9,999 permutations: six standard errors of a share.
    assert abs(found.greater - exact) < 6 * np.sqrt(exact * (1 - exact) / PERMUTATIONS) + 1e-4


def test_p_values_against_all_permutations():
    strata = [
        Stratum(np.array([1, 1, 2, 3]), np.array([0.1, 0.3, 0.2, 0.4]), NONE),
        Stratum(np.array([1, 2, 3]), np.array([1.0, 3.0, 2.0]), NONE),
    ]

    def total(x, values):
        return sum(np.sign(x[i] - x[j]) * np.sign(values[i] - values[j]) for i in range(len(x)) for j in range(i))

    every = [[total(each.x, np.array(values)) for values in itertools.permutations(each.values)] for each in strata]
    sums = np.add.outer(*map(np.array, every)).ravel()
    observed = sum(total(each.x, each.values) for each in strata)
    found = concordance(strata)
    assert found.value == pytest.approx(observed / (5 + 3))
    for p, exact in ((found.greater, np.mean(sums >= observed)), (found.less, np.mean(sums <= observed))):
        assert abs(p - exact) < 6 * np.sqrt(exact * (1 - exact) / PERMUTATIONS) + 1e-4


def test_missing_values_span_what_they_could_be():
    x, values, missing = np.array([1, 1, 2]), np.array([0.0, 0.1, 0.2]), np.array([3, 2])
    found = concordance([Stratum(x, values, missing)])

    def filled(*extra):
        every = Stratum(np.concatenate([x, missing]), np.concatenate([values, extra]), NONE)
        return concordance([every]).value

    trials = [filled(a, b) for a in (-1, 0.05, 0.15, 1, 2) for b in (-1, 0.05, 0.15, 1, 2)]
    assert found.lowest <= min(trials) <= max(trials) <= found.highest
    assert found.highest == pytest.approx(filled(2, 1))  # here it is attained


def test_decisions():
    x = np.repeat([1, 2, 3], 5)
    rising = Stratum(x, x + 0.1 * np.tile(np.arange(5), 3), NONE)
    falling = Stratum(x, -rising.values, NONE)
    assert concordance([rising]).decision(0.0125) == "holds"
    assert concordance([falling]).decision(0.0125) == "fails"
    assert concordance([rising, falling]).decision(0.0125) == "undecided"
    assert concordance([]).decision(0.0125) == "undecided"
    assert concordance([Stratum(np.array([1, 1]), np.array([0.0, 1.0]), NONE)]).value is None
    # As many runs missing as there are: values there could turn the sign either way.
    assert concordance([Stratum(x, rising.values, np.full(15, 4))]).decision(0.0125) == "undecided"
    assert concordance([Stratum(x, falling.values, np.full(15, 4))]).decision(0.0125) == "undecided"


REJECTED = Seldom(300, 0.05, planted=0.6)


def rejections(shift):
    """How often two groups of five are called different, at a level of 5 %."""
    generator = np.random.default_rng(seed(5))
    x = np.repeat([1, 2], 5)
    draws = generator.normal(size=(REJECTED.trials, 10)) + shift * (x == 2)
    return sum(concordance([Stratum(x, values, NONE)]).greater <= 0.05 for values in draws)


@pytest.mark.slow
def test_false_alarms_are_as_rare_as_the_level_says():
    """A shift of two deviations, which 84 % see, is found."""
    assert REJECTED.explains(rejections(0.0))
    assert not REJECTED.explains(rejections(2.0))
