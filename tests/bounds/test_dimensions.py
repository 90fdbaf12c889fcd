import itertools
import math

import pytest

from genscope.bounds import crossover, fat_cover, head, lower, pseudo_cover, vc_cover, volumetric, volumetric_head
from tests.bounds.cases import HEAD


@pytest.mark.parametrize(("dimension", "points"), [(1, 1), (1, 9), (5, 5), (5, 100), (90, 100), (300, 2000)])
def test_labelings_of_a_vc_class(dimension, points):
    exact = math.log(sum(math.comb(points, i) for i in range(dimension + 1)))
    found = vc_cover(vc_dimension=dimension, points=points).value
    assert found == pytest.approx(exact)
    assert found <= dimension * (1 + math.log(points / dimension)) + 1e-9


def test_thresholds_on_a_line_have_as_many_labelings_as_promised():
    """VC dimension 1, counted: m + 1 labelings of m points."""
    labelings = {tuple(x >= cut for x in range(7)) for cut in range(8)}
    assert math.log(len(labelings)) == pytest.approx(vc_cover(vc_dimension=1, points=7).value)


def test_pseudo_and_fat_by_hand():
    found = pseudo_cover(pseudo_dimension=3, range=2.0, epsilon=0.1, points=50).value
    assert found == pytest.approx(3 * math.log(math.e * 50 * 2 / (0.1 * 3)))
    assert pseudo_cover(pseudo_dimension=3, range=2.0, epsilon=2.0, points=50).value == 0
    exponent = math.ceil(3 * math.log2(2 * math.e * 50 / (3 * 0.1)))
    expected = math.log(2) + exponent * math.log(50 * 21**2)
    assert fat_cover(fat_dimension=3, epsilon=0.1, points=50).value == pytest.approx(expected)


@pytest.mark.parametrize("bound", [vc_cover, pseudo_cover, fat_cover])
def test_fewer_points_than_the_dimension_are_refused(bound):
    name = {vc_cover: "vc_dimension", pseudo_cover: "pseudo_dimension", fat_cover: "fat_dimension"}[bound]
    epsilon = {} if bound is vc_cover else {"epsilon": 0.5}
    with pytest.raises(ValueError, match=r"dimension 5 with points=4.* Give more points"):
        bound(**{name: 5}, **epsilon, points=4)


def test_lower_bound_counts_supports():
    supports = len(list(itertools.combinations(range(9), 4)))
    assert lower(context_length=9, support_size=4, confidence=1).value == pytest.approx(math.log2(supports))
    half = lower(context_length=9, support_size=4, confidence=0.5)
    assert half.value == pytest.approx(math.log2(supports) - 1)
    assert not half.vacuous
    assert lower(context_length=4, support_size=4, confidence=1).vacuous
    assert lower(context_length=10**100, support_size=3).value == pytest.approx(3 * 100 * math.log2(10), rel=0.02)
    with pytest.raises(ValueError, match=r"support_size=5 with context_length=4.* Choose a smaller support"):
        lower(context_length=4, support_size=5)


NORMS = {name: HEAD[name] for name in ("value_spectral", "input_norm", "context_norm")} | {"width": 4, "dimension": 8}


def test_head_by_volumes():
    given = NORMS | {"value_radius": 2.0, "epsilon": 0.1}
    merged = volumetric_head(**given, query_key_radius=3.0)
    # 32 and 64 parameters: a third of ε for the values, two thirds for the scores.
    expected = 32 * math.log(1 + 2 * 2 * 3 / 0.1) + 64 * math.log(1 + 2 * 3 * 1.5 / 0.1)
    assert merged.value == pytest.approx(expected)
    apart = volumetric_head(**given, query_radius=1.5, key_radius=2.0)
    assert apart.value == pytest.approx(32 * math.log(1 + 2 * 2 * 3 / 0.1) + 2 * 32 * math.log(1 + 2 * 3 * 3 / 0.1))
    best = volumetric_head(**given, query_key_radius=3.0, query_radius=1.5, key_radius=2.0)
    assert best.value == min(merged.value, apart.value)
    for missing in ({}, {"query_radius": 1.0}, {"query_key_radius": 1.0, "key_radius": 1.0}):
        with pytest.raises(ValueError, match="Give query_key_radius alone, or both"):
            volumetric_head(**given, **missing)


def test_crossover_separates_norms_from_parameters():
    def by_norm(epsilon):
        return head(**HEAD | {"epsilon": epsilon}, form="order")

    def by_volume(epsilon):
        return volumetric(parameters=8192, radius=3.0, epsilon=epsilon)

    at = crossover(by_norm, by_volume, low=1e-3, high=10.0)
    assert by_norm(at * 1.01).value < by_volume(at * 1.01).value
    assert by_norm(at / 1.01).value > by_volume(at / 1.01).value
    assert crossover(by_norm, by_volume, low=1e-3, high=1e-2) is None
    with pytest.raises(ValueError, match=r"low=2, high=1: .* Correct the range"):
        crossover(by_norm, by_volume, low=2, high=1)
