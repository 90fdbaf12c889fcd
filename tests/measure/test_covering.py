"""Covers and packings of small point sets, against all subsets."""

import itertools

import numpy as np
import pytest

from genscope.measure.covering import greedy_cover, largest_packing, smallest_cover


def distances(points):
    return np.linalg.norm(points[:, None] - points, axis=-1)


def covers(apart, chosen, epsilon):
    return bool((apart[list(chosen)].min(axis=0) <= epsilon + 1e-12).all())


def packs(apart, chosen, epsilon):
    return all(apart[i, j] > epsilon + 1e-12 for i, j in itertools.combinations(chosen, 2))


def brute(apart, epsilon):
    """Covering and packing number by all subsets."""
    subsets = [s for size in range(1, len(apart) + 1) for s in itertools.combinations(range(len(apart)), size)]
    smallest = min(len(s) for s in subsets if covers(apart, s, epsilon))
    return smallest, max(len(s) for s in subsets if packs(apart, s, epsilon))


def test_the_worked_example_repaired():
    """At ε = 0.5 the distance is the boundary itself, √(0.3² + 0.4²)."""
    used = distances(np.array([[0.5, 0.7], [0.2, 0.3], [0.6, 0.65]]))
    assert [len(smallest_cover(used, epsilon)) for epsilon in (0.05, 0.2, 0.5)] == [3, 2, 1]
    printed = distances(np.array([[0.5, 0.7], [0.2, 3.0], [0.6, 2.5]]))
    assert [len(smallest_cover(printed, epsilon)) for epsilon in (0.05, 0.5)] == [3, 3]


def test_agrees_with_all_subsets():
    rng = np.random.default_rng(0)
    for trial in range(60):
        apart = distances(rng.random((1 + trial % 8, 2)))
        epsilon = rng.choice([0.0, 0.1, 0.3, 0.5, 2.0])
        cover, packing = smallest_cover(apart, epsilon), largest_packing(apart, epsilon)
        assert (len(cover), len(packing)) == brute(apart, epsilon)
        assert covers(apart, cover, epsilon)
        assert packs(apart, packing, epsilon)


def test_packing_and_covering_bound_each_other():
    rng = np.random.default_rng(1)
    for size in (12, 20, 30):
        apart = distances(rng.random((size, 2)))
        for epsilon in (0.1, 0.2, 0.4):
            number = len(smallest_cover(apart, epsilon))
            greedy = greedy_cover(apart, epsilon)
            assert len(largest_packing(apart, 2 * epsilon)) <= number <= len(largest_packing(apart, epsilon))
            assert number <= len(greedy) <= (1 + np.log(size)) * number
            assert covers(apart, greedy, epsilon)


def test_covering_numbers_cannot_rise_with_the_accuracy():
    apart = distances(np.random.default_rng(2).random((20, 2)))
    numbers = [len(smallest_cover(apart, epsilon)) for epsilon in np.linspace(0, 1.5, 30)]
    assert numbers == sorted(numbers, reverse=True)
    assert (numbers[0], numbers[-1]) == (20, 1)


def test_points_at_distance_zero_are_one():
    """A pseudometric: distinct points may coincide."""
    assert len(smallest_cover(np.zeros((4, 4)), 0.0)) == len(largest_packing(np.zeros((4, 4)), 0.0)) == 1


def test_greedy_can_be_too_large():
    """The classic: two triples side by side, and a ball of four across them that greed takes first."""
    names = range(8)
    near = [{0, 1, 2, 6}, {3, 4, 5, 7}, {1, 2, 3, 4}]
    apart = np.ones((8, 8)) - np.eye(8)
    centres = {6: near[0], 7: near[1]}
    for centre, members in centres.items():
        for member in members - {centre}:
            apart[centre, member] = apart[member, centre] = 0.1
    assert len(smallest_cover(apart, 0.1)) == 2
    assert set(smallest_cover(apart, 0.1)) == {6, 7}
    assert len(greedy_cover(apart, 0.1)) >= 2
    assert set(names) == set().union(*(np.flatnonzero(apart[c] <= 0.1) for c in (6, 7)))


@pytest.mark.parametrize("call", [smallest_cover, greedy_cover, largest_packing])
@pytest.mark.parametrize(
    "matrix", [np.ones((2, 2)), np.array([[0, 1], [2, 0.0]]), np.full((2, 2), np.nan), np.ones((0, 0))]
)
def test_what_is_no_matrix_of_distances_is_refused(call, matrix):
    with pytest.raises(ValueError, match=r"got distances of shape .* Compute it from the points"):
        call(matrix, 0.1)


def test_other_refusals():
    with pytest.raises(ValueError, match=r"epsilon=-1.*: it must be a number that is 0 or more"):
        smallest_cover(np.zeros((2, 2)), -1.0)
    with pytest.raises(ValueError, match=r"got 65 points: .* Use greedy_cover, or fewer points"):
        smallest_cover(np.zeros((65, 65)), 0.1)
    assert len(greedy_cover(np.zeros((65, 65)), 0.1)) == 1
