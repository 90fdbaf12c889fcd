"""One head, several heads, refinements: formulas again by hand, and relations that must hold."""

import math

import pytest

from genscope import bounds
from genscope.bounds import Refine, head, heads
from genscope.bounds.covering import linear_size, matrix_size
from tests.bounds.cases import HEAD


def test_order_form_by_hand():
    """All norms different, so that no factor can hide behind a 1."""
    given = {
        "value_21": 2.0,
        "value_spectral": 1.5,
        "query_key_21": 3.0,
        "input_norm": 1.2,
        "context_norm": 0.7,
        "lipschitz": 1.1,
        "epsilon": 0.4,
        "width": 8,
        "dimension": 16,
        "points": 1000,
    }
    inner = 2.0 ** (2 / 3) + (2 * 3.0 * 1.5 * 1.2 * 0.7) ** (2 / 3)
    expected = (1.1 * 1.2) ** 2 * inner**3 / 0.4**2 * math.log(16 * 1000)
    assert head(**given, form="order").value == pytest.approx(expected)
    assert heads(**given, heads=5, form="order").value == pytest.approx(125 * expected)
    once = 2.0 ** (2 / 3) + (3.0 * 1.5 * 1.2 * 0.7) ** (2 / 3)
    assert head(**given, form="order", softmax_constant=1.0).value == pytest.approx(expected * (once / inner) ** 3)


def budget(bound, value_radius, score_radius, epsilon):
    """The least that any of 400 splits gives, by the formula of Theorem 4.2."""
    return min(
        matrix_size(2 * math.log(value_radius / (share * epsilon)), math.log(8 * 1000))
        + bound(2 * math.log(score_radius / ((1 - share) * epsilon)))
        for share in (step / 400 for step in range(1, 400))
    )


SMALL = {
    "value_21": 2.0,
    "value_spectral": 1.5,
    "query_key_21": 3.0,
    "input_norm": 1.2,
    "context_norm": 0.7,
    "lipschitz": 1.1,
    "epsilon": 1.0,
    "width": 8,
    "dimension": 16,
    "points": 1000,
}
LOSS = 1.1 * 1.5 * 1.2  # what the output loses per unit of the scores, with the softmax constant 1


@pytest.mark.parametrize(
    ("refine", "score_radius", "size"),
    [
        (Refine(), LOSS * 0.7 * 1.2 * 3.0, lambda k: matrix_size(k, math.log(16 * 1000))),
        (
            Refine(query_key_context_21=2.0, context_points=10),
            LOSS * 1.2 * 0.7 * 2.0,
            lambda k: matrix_size(k, math.log(16 * 10)),
        ),
        (
            Refine(fixed_context=True, query_key_context_21=2.0),
            LOSS * 1.2 * 0.7 * 2.0,
            lambda k: matrix_size(k, math.log(16)),
        ),
        (
            Refine(fixed_context=True, query_key_spectral=1.0),
            LOSS * 0.7 * 1.2 * 1.0,
            lambda k: linear_size(k, math.log(1000)),
        ),
    ],
    ids=["tokens", "contexts", "one context", "scalar scores"],
)
def test_explicit_forms_are_the_best_split_of_their_formula(refine, score_radius, size):
    found = head(**SMALL, refine=refine).value
    assert found == pytest.approx(budget(size, 1.1 * 1.2 * 2.0, score_radius, 1.0), rel=0.01)


def test_trained_embeddings_are_covered_on_their_one_hot_features():
    refine = Refine(fixed_context=True, query_key_spectral=1.0, embedding_spectral=0.9)
    scores = LOSS * 0.7 * (math.sqrt(2) * 0.9) * 1.0
    expected = budget(lambda k: linear_size(k, math.log(1000)), 1.1 * math.sqrt(2) * 0.9 * 2.0, scores, 1.0)
    assert head(**SMALL, refine=refine).value == pytest.approx(expected, rel=0.01)


def test_a_read_out_is_one_more_linear_cover(coarse):
    """The head's share goes through ‖w‖; outputs are within L B_V B_X, projected there if need be."""
    refine = Refine(readout_norm=2.0, readout_points=50)
    found = head(**SMALL, refine=refine)
    assert set(found.terms) == {"value", "query-key", "readout"}
    scale = 2.0
    best = min(
        linear_size(2 * math.log(scale * 1.1 * 1.5 * 1.2 / share), math.log(50))
        + head(**SMALL | {"epsilon": (1 - share) / scale}).value
        for share in (0.02, 0.05, 0.1, 0.2)
    )
    assert found.value <= best * 1.05
    assert found.value >= head(**SMALL | {"epsilon": 1.0 / scale}).value


def test_refinements_never_raise_the_bound(coarse):
    plain = head(**SMALL).value
    assert head(**SMALL, refine=Refine(query_key_context_21=1e9, context_points=10**9)).value == plain
    assert head(**SMALL, refine=Refine(fixed_context=True, query_key_spectral=1e9)).value == plain


def test_lists_of_norms_and_equal_heads_agree(coarse):
    equal = heads(**HEAD, heads=3)
    listed = heads(**HEAD | {"value_21": [2.0] * 3, "query_key_21": (3.0,) * 3})
    assert set(listed.terms) == {f"head {i}: {kind}" for i in (1, 2, 3) for kind in ("value", "query-key")}
    assert listed.value == pytest.approx(equal.value, rel=0.01)
    assert heads(**HEAD, heads=1).terms == head(**HEAD).terms
    weaker = heads(**HEAD | {"value_21": [2.0, 2.0, 1.0]}).value
    assert weaker < listed.value
    # A head with no weights costs nothing.
    none = {"value_21": [2.0, 0.0], "value_spectral": [1.0, 0.0], "query_key_21": [3.0, 0.0]}
    assert heads(**HEAD | none).value == pytest.approx(head(**HEAD).value, rel=0.01)


def test_the_slope_in_the_logarithm_of_points_is_the_number_of_updates():
    few, many = (head(**HEAD | {"points": points}).value for points in (3 * 10**4, 3 * 10**5))
    assert (many - few) / math.log(10) == pytest.approx(206, rel=0.01)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: heads(**HEAD), "lists of lengths {} for an unknown number of parts.* Say how many"),
        (
            lambda: heads(**HEAD | {"value_21": [1.0, 2.0]}, heads=3),
            "'value_21': 2.* for 3 parts.* give that many norms",
        ),
        (lambda: heads(**HEAD | {"value_21": [1.0, -2.0]}), "value_21=-2.0.* at least 0. Change value_21"),
        (lambda: heads(**HEAD, heads=10**7), "heads=10000000.* at most 1e.06. Change heads"),
        (lambda: head(**HEAD, form="order", refine=Refine(readout_norm=1.0)), "readout_norm with form='order'.* Leave"),
        (lambda: head(**HEAD, constant=2.0), "constant with form='explicit'"),
        (lambda: Refine(query_key_spectral=1.0), "query_key_spectral=1.0 without fixed_context.* Give fixed_context"),
        (lambda: Refine(embedding_spectral=1.0), "embedding_spectral=1.0 without fixed_context"),
        (lambda: Refine(context_points=3), "context_points=3 without query_key_context_21"),
        (lambda: Refine(readout_points=3), "readout_points=3 without readout_norm"),
        (lambda: Refine(readout_norm=-1.0), "Refine got readout_norm=-1.0.* Change readout_norm"),
        (
            lambda: Refine(fixed_context=True, embedding_spectral=1.0, query_key_context_21=1.0),
            "embedding_spectral and query_key_context_21.* Leave one",
        ),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_bounds_are_public():
    assert bounds.ALL["head"] is head
    assert bounds.ALL["heads"] is heads
