"""The studies of capacity on shrunken points, and what their points may be."""

import math

import jax.random as jr
import pytest

from genscope.bounds import head
from genscope.measure.lipschitz import ROUNDING
from genscope.studies import edelman2022_capacity, edelman2022_lipschitz

KEY = jr.key(3)


@pytest.mark.slow
def test_a_search_finds_the_inequality_kept_and_its_weakening_violated():
    record = edelman2022_lipschitz.trial(KEY, inequality="head", sigma="relu", context_length=2, starts=32, steps=200)
    assert record["worst_random"] <= record["worst_gradient"] <= 1 + ROUNDING
    assert record["worst_gradient"] > 0.9
    assert record["worst_weakened"] > 1


@pytest.mark.slow
def test_a_search_of_two_layers():
    record = edelman2022_lipschitz.trial(KEY, inequality="deep", sigma="tanh", context_length=2, starts=32, steps=200)
    assert record["worst_random"] <= record["worst_gradient"] <= 1 + ROUNDING
    assert record["worst_weakened"] > 1


@pytest.mark.parametrize("bound", ["head", "deep"])
def test_capacity_is_the_bound_and_its_slope_a_difference(bound):
    order = edelman2022_capacity.trial(KEY, bound=bound, form="order", context_length=1000)
    later = edelman2022_capacity.trial(KEY, bound=bound, form="order", context_length=10_000)
    assert order["slope"] == pytest.approx((later["nats"] - order["nats"]) / math.log(10))
    if bound == "head":
        assert order["nats"] == head(**edelman2022_capacity.HEAD, points=100_000, form="order").value


def test_points_that_no_trial_can_have_are_refused():
    for study, point, message in (
        (edelman2022_lipschitz, {"sigma": "sine"}, "sigma must be one of identity, relu, tanh. Choose"),
        (edelman2022_lipschitz, {"inequality": "tail"}, "inequality must be one of head, deep. Choose"),
        (edelman2022_lipschitz, {"context_length": 1}, "between 2 and 1000"),
        (edelman2022_capacity, {"bound": "tail"}, "bound must be one of head, heads, deep. Choose"),
        (edelman2022_capacity, {"form": "exact"}, "form must be one of order, explicit. Choose"),
    ):
        with pytest.raises(ValueError, match=message):
            study.STUDY.check(point)
