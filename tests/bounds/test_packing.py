"""Packing numbers against point sets that one can count, and the printed bound against its counterexample."""

import itertools
import math
import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from genscope.bounds.packing import packing, packing_l1, packing_printed

GOLDEN = tomllib.loads((Path(__file__).parents[1] / "golden" / "mousavi2025.toml").read_text())["packing"]


def e8_roots():
    pairs = [
        np.eye(8)[i] * a + np.eye(8)[j] * b
        for i, j in itertools.combinations(range(8), 2)
        for a in (1, -1)
        for b in (1, -1)
    ]
    halves = [np.array(signs) / 2 for signs in itertools.product((1, -1), repeat=8) if np.prod(signs) > 0]
    return np.array([*pairs, *halves]) / math.sqrt(2)


def separation(points):
    squares = np.sum(points**2, axis=1)
    distances = squares[:, None] + squares - 2 * points @ points.T
    return math.sqrt(distances[~np.eye(len(points), dtype=bool)].min())


def test_the_roots_of_e8_refute_the_printed_branch():
    roots = e8_roots()
    assert roots.shape == (240, 8)
    assert np.linalg.norm(roots, axis=1) == pytest.approx(1)
    assert separation(roots) == pytest.approx(1)
    options = {"dimension": GOLDEN["dimension"], "epsilon": GOLDEN["epsilon"]}
    found, printed = packing(**options), packing_printed(**options)
    assert found.value == pytest.approx(GOLDEN["volume"], rel=GOLDEN["tolerance"])
    assert printed.value == pytest.approx(GOLDEN["printed"], rel=GOLDEN["tolerance"])
    assert math.log(len(roots)) == pytest.approx(GOLDEN["log_roots"], rel=GOLDEN["tolerance"])
    assert printed.value < math.log(len(roots)) < found.value
    assert found.explicit
    assert not printed.explicit
    assert "erratum" in printed.source


def test_the_printed_branch_is_below_the_volume_of_the_ball():
    # A maximal packing covers, so that there are at least (1/epsilon)^d points.
    at_least = 100 * math.log(2)
    assert packing_printed(dimension=100, epsilon=0.5).value < 20 < at_least < packing(dimension=100, epsilon=0.5).value


@pytest.mark.parametrize("dimension", [1, 2, 3, 5])
@pytest.mark.parametrize("epsilon", [0.3, 0.5, 1.0, 1.4])
def test_packings_found_greedily_are_within_the_bounds(dimension, epsilon):
    generator = np.random.default_rng(0)
    candidates = generator.uniform(-1, 1, (4000, dimension))
    for bound, order in ((packing, 2), (packing_l1, 1)):
        kept = []
        for point in candidates[np.linalg.norm(candidates, order, axis=1) <= 1]:
            if all(np.linalg.norm(point - other) >= epsilon for other in kept):
                kept.append(point)
        assert math.log(len(kept)) <= bound(dimension=dimension, epsilon=epsilon).value


def test_the_l1_ball_holds_its_vertices_and_little_more():
    vertices = np.concatenate([np.eye(500), -np.eye(500)])
    assert separation(vertices) == pytest.approx(math.sqrt(2))
    bound = packing_l1(dimension=500, epsilon=math.sqrt(2))
    assert math.log(1000) <= bound.value <= 3 * math.log(1001)  # multisets of three vertices
    assert list(bound.terms) == ["Maurey"]
    assert bound.value < packing(dimension=500, epsilon=math.sqrt(2)).value / 10
    assert packing_l1(dimension=2, epsilon=0.01).value == packing(dimension=2, epsilon=0.01).value


def test_multisets_are_counted():
    # k = floor(4 / 1.9^2) + 1 = 2 of the four vertices: 10 multisets.
    assert packing_l1(dimension=2, epsilon=1.9).value == pytest.approx(math.log(min(10, (1 + 2 / 1.9) ** 2)))


@given(st.integers(1, 10**6), st.floats(1e-100, 1e100), st.floats(1.01, 10))
def test_monotone_in_dimension_and_separation(dimension, epsilon, factor):
    for bound in (packing, packing_l1):
        size = bound(dimension=dimension, epsilon=epsilon).value
        assert size >= bound(dimension=dimension, epsilon=epsilon * factor).value * (1 - 1e-12)
        assert size <= bound(dimension=2 * dimension, epsilon=epsilon).value * (1 + 1e-12)


def test_extreme_arguments_have_values():
    assert packing(dimension=1, epsilon=1e-300).value == pytest.approx(math.log(2) + 300 * math.log(10))
    assert packing(dimension=10**400, epsilon=1.0).value == math.inf
    assert packing_l1(dimension=1, epsilon=1e-200).value < math.inf


@pytest.mark.parametrize("options", [{"dimension": 0, "epsilon": 1.0}, {"dimension": 8, "epsilon": 0.0}])
def test_bad_arguments_are_named(options):
    with pytest.raises(ValueError, match="Change "):
        packing(**options)
