import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genscope import bounds
from tests.bounds.cases import CASES, LINEAR

MATRIX = LINEAR | {"outputs": 64}
ACCURACIES = st.floats(1e-3, 10)
COUNTS = st.integers(1, 10**9)
NORMS = st.floats(1e-3, 1e3)


@given(NORMS, NORMS, ACCURACIES, COUNTS)
def test_explicit_is_at_most_the_classical_bound(weight_norm, input_norm, epsilon, points):
    given = {"weight_norm": weight_norm, "input_norm": input_norm, "epsilon": epsilon, "points": points}
    explicit = bounds.linear_cover(**given).value
    internal = bounds.linear_cover(**given, internal=True).value
    assert explicit <= internal * (1 + 1e-12)
    assert internal <= bounds.zhang_cover(**given).value


@pytest.mark.parametrize("name", ["linear-cover", "matrix-cover", "zhang-cover", "head", "heads", "deep"])
@settings(max_examples=8)
@given(data=st.data())
def test_monotone_in_accuracy_and_points(name, coarse, data):
    function = bounds.ALL[name]
    arguments = CASES[name]
    first, second = sorted(data.draw(st.tuples(st.floats(0.05, 20), st.floats(0.05, 20))))
    few, many = sorted(data.draw(st.tuples(COUNTS, COUNTS)))
    coarse = function(**arguments | {"epsilon": second, "points": few}).value
    fine = function(**arguments | {"epsilon": first, "points": few}).value
    wide = function(**arguments | {"epsilon": first, "points": many}).value
    assert coarse <= fine * (1 + 1e-12)
    assert fine <= wide * (1 + 1e-12)


def test_one_element_suffices_from_the_product_of_norms_on():
    for form in ("explicit", "order"):
        assert bounds.linear_cover(**LINEAR | {"epsilon": 1.0}, form=form).value == 0
        assert bounds.matrix_cover(**MATRIX | {"epsilon": 1.0}, form=form).value == 0
        assert bounds.linear_cover(**LINEAR | {"epsilon": 0.999}, form=form).value > 0
    assert bounds.zhang_cover(**LINEAR | {"epsilon": 1.0}).value == 0


def test_updates_are_fewer_than_kappa_also_when_it_is_whole_only_up_to_rounding():
    """0.3 / 0.1 is a little less than 3 in floating point; the true kappa is 9, and K = 9 must be counted."""
    nine = bounds.linear_cover(weight_norm=0.3, input_norm=1.0, epsilon=0.1, points=5).value
    assert nine == pytest.approx(math.log(math.comb(10 + 9, 9)))


def test_sizes_by_hand():
    # kappa = 4: multisets of at most 4 of 2 N = 6 signed points.
    assert bounds.linear_cover(weight_norm=2, input_norm=1, epsilon=1, points=3).value == pytest.approx(
        math.log(math.comb(6 + 4, 4))
    )
    # kappa = 4, r = 2: K = 8, L = 1 + floor(log2 8) = 4 scales, A = 2 * 5 * 3 * 4.
    assert bounds.matrix_cover(
        weight_norm=2, input_norm=1, epsilon=1, points=3, outputs=5, ratio=2.0
    ).value == pytest.approx(math.log(math.comb(120 + 8, 8)))


def test_order_forms_have_their_constant():
    for name in ("linear-cover", "matrix-cover", "head", "heads", "deep"):
        function, arguments = bounds.ALL[name], CASES[name] | {"form": "order"}
        once = function(**arguments)
        assert not once.explicit
        assert function(**arguments, constant=3.0).value == pytest.approx(3 * once.value)
    kappa = 100
    assert bounds.linear_cover(**LINEAR, form="order").value == pytest.approx(kappa * math.log(10 * 1000))
    assert bounds.matrix_cover(**MATRIX, form="order").value == pytest.approx(kappa * math.log(64 * 1000))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: bounds.linear_cover(**LINEAR | {"epsilon": 0}), ValueError, "epsilon=0: accuracy .* above 0. Change"),
        (lambda: bounds.linear_cover(**LINEAR | {"epsilon": math.nan}), ValueError, "epsilon=nan.* Change epsilon"),
        (lambda: bounds.linear_cover(**LINEAR | {"points": 2.5}), ValueError, "points=2.5.* whole number at least 1"),
        (lambda: bounds.linear_cover(**LINEAR | {"points": math.inf}), ValueError, "points=inf.* Change points"),
        (
            lambda: bounds.linear_cover(**LINEAR | {"weight_norm": -1}),
            ValueError,
            "weight_norm=-1.* at least 0. Change",
        ),
        (lambda: bounds.linear_cover(**LINEAR | {"points": "9"}), ValueError, "of type str.* Give a Python number"),
        (lambda: bounds.linear_cover(**LINEAR | {"points": True}), ValueError, "of type bool.* Give a Python number"),
        (lambda: bounds.linear_cover(**LINEAR, form="exact"), ValueError, r"form='exact'.* one of \('explicit', 'ord"),
        (lambda: bounds.linear_cover(**LINEAR, constant=2.0), ValueError, "constant with form='explicit'.* Leave it"),
        (lambda: bounds.linear_cover(**LINEAR, form="order", internal=True), ValueError, "internal with .* Leave it"),
        (lambda: bounds.matrix_cover(**MATRIX, ratio=1.0), ValueError, "ratio=1.0.* above 1. Change"),
        (lambda: bounds.matrix_cover(**MATRIX, form="order", ratio=2.0), ValueError, "ratio with form='order'"),
    ],
)
def test_refusals(call, error, message):
    with pytest.raises(error, match=message):
        call()
