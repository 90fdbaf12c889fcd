import math
import random

import pytest

from genscope.bounds import split_cubic
from genscope.bounds.covering import matrix_size
from genscope.bounds.split import Cover, allocate


def test_cubic_split_is_the_minimum_and_uses_up_the_accuracy():
    """Golden: C = (1, 8), a = (1, 1), ε = ½ gives 108, by hand; and nothing random is better."""
    assert split_cubic([1, 8], [1, 1], 0.5).value == pytest.approx(108)
    choose = random.Random(0)
    for _ in range(20):
        constants, coefficients = ([choose.uniform(0.1, 10) for _ in range(4)] for _ in range(2))
        best = split_cubic(constants, coefficients, 0.3)
        spent = sum(a * e for a, e in zip(coefficients, best.accuracies, strict=True))
        assert spent == pytest.approx(0.3)
        value = sum(c / e**2 for c, e in zip(constants, best.accuracies, strict=True))
        assert value == pytest.approx(best.value)
        for _ in range(50):
            shares = [choose.random() for _ in range(4)]
            others = [0.3 * s / sum(shares) / a for s, a in zip(shares, coefficients, strict=True)]
            assert sum(c / e**2 for c, e in zip(constants, others, strict=True)) >= best.value


@pytest.mark.parametrize("bad", [([1, 0], [1, 1], 1.0), ([1], [1, 1], 1.0), ([1, 1], [1, 1], -1.0)])
def test_cubic_split_refuses(bad):
    with pytest.raises(ValueError, match=r"split_cubic got .* Leave out covers that cost nothing"):
        split_cubic(*bad)


def cover(name, radius, cells, copies=1):
    return Cover(name, name, math.log(radius), lambda log_kappa: matrix_size(log_kappa, math.log(cells)), copies)


@pytest.mark.parametrize("radii", [(2, 3), (2, 0.5), (0.2, 3), (10, 0.01)])
@pytest.mark.parametrize("cells", [(1e6, 1e6), (64, 1e9)])
def test_no_split_on_a_fine_grid_is_better_by_a_percent(radii, cells):
    covers = [cover(str(i), *pair) for i, pair in enumerate(zip(radii, cells, strict=True))]
    found = sum(allocate(covers, math.log(0.5)).values())
    grid = (step / 500 for step in range(1, 500))
    best = min(
        sum(
            each.size(2 * (each.log_radius - math.log(0.5 * share)))
            for each, share in zip(covers, (s, 1 - s), strict=True)
        )
        for s in grid
    )
    assert best <= found * 1.01 + 1e-9 or found <= best
    assert found <= best * 1.01


def test_trivial_covers_cost_nothing():
    assert sum(allocate([cover("a", 0.2, 100), cover("b", 0.2, 100)], math.log(0.5)).values()) == 0
    assert allocate([cover("a", 3, 100)._replace(log_radius=-math.inf)], 0.0) == {"a": 0.0}
    # A tiny cover is made trivial, and the other gets nearly everything.
    both = allocate([cover("a", 3, 100), cover("b", 1e-9, 100)], 0.0)
    assert both["b"] == 0
    assert both["a"] == pytest.approx(matrix_size(2 * math.log(3), math.log(100)), rel=0.05)


def test_copies_are_covers_with_equal_shares():
    one = allocate([cover("a", 2, 1e4, copies=3), cover("b", 5, 1e4)], 0.0)
    separate = allocate([cover("a", 2, 1e4)._replace(name=f"a{i}") for i in range(3)] + [cover("b", 5, 1e4)], 0.0)
    assert sum(one.values()) == pytest.approx(sum(separate.values()), rel=0.01)
