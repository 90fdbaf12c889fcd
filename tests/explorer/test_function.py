"""The room Function: numbers against the library, limits, and speed."""

import time

import numpy as np
import pytest

from genscope.explorer import function_room
from genscope.explorer.function_room import GALLERY, LARGEST, SHOWN_COMPONENTS, analyse
from genscope.fourier import from_expression, parse, points


def test_majority_of_three_by_hand():
    found = analyse({"expression": "maj(x0, x1, x2)", "values": "signs"})
    assert found["degree"] == 3
    assert found["sparsity"] == 4
    assert found["levels"] == [0, 0.75, 0, 0.25]
    assert found["influences"] == [0.5, 0.5, 0.5]
    assert found["total_influence"] == 1.5
    assert found["ones"] == 4
    assert found["table"] == "00010111"
    chi = {tuple(each["set"]): each["chi"] for each in found["components"]}
    assert chi == {(0,): 0.5, (1,): 0.5, (2,): 0.5, (0, 1, 2): -0.5}


def test_both_bases_add_up_to_the_function():
    for values in ("bits", "signs"):
        found = analyse({"expression": "x0 & x2 | x5", "values": values})
        bits = points(6)
        target = parse("x0 & x2 | x5")(bits)
        target = 1.0 - 2 * target if values == "signs" else target.astype(float)
        for basis in ("chi", "phi"):
            total = np.full(len(bits), found["constant"][basis])
            for each in found["components"]:
                chi = (-1.0) ** bits[:, each["set"]].sum(axis=1)
                total += each[basis] * (chi if basis == "chi" else (1 + chi) / 2)
            np.testing.assert_allclose(total, target, atol=1e-12)


@pytest.mark.parametrize(("name", "expression"), [(name, expression) for name, expression, _ in GALLERY])
def test_the_gallery_agrees_with_the_library(name, expression):
    found, function = analyse({"expression": expression, "values": "bits"}), from_expression(expression)
    assert found["degree"] == function.degree
    assert found["sparsity"] == function.sparsity
    assert found["support"] == list(function.relevant)
    assert len(found["components"]) == min(function.sparsity, SHOWN_COMPONENTS)
    assert sum(found["levels"]) == pytest.approx(found["ones"] / found["inputs"])  # Parseval for values 0 and 1


def test_influences_are_those_of_textbooks_unless_asked_otherwise():
    """The majority of five: every variable decides with probability C(4, 2) / 16."""
    found = analyse({"expression": "maj(x0, x1, x2, x3, x4)"})
    assert found["total_influence"] == pytest.approx(5 * 6 / 16)
    asked = analyse({"expression": "maj(x0, x1, x2, x3, x4)", "values": "bits"})
    assert asked["total_influence"] == pytest.approx(5 * 6 / 16 / 4)


@pytest.mark.parametrize(("expression", "ones"), [("1", 1), ("0", 0), ("x3 ^ x3", 0)])
def test_constants(expression, ones):
    found = analyse({"expression": expression})
    assert found["degree"] == found["sparsity"] == 0
    assert found["support"] == found["components"] == []
    assert bool(found["ones"]) == bool(ones)


def test_variables_that_do_not_matter_are_listed_but_not_relevant():
    found = analyse({"expression": "x7 ^ x2 & ~x2"})
    assert found["variables"] == [2, 7]
    assert found["support"] == [7]
    assert found["influences"] == [0, 1]


def test_a_long_table_is_not_sent():
    assert analyse({"expression": "parity(" + ", ".join(f"x{j}" for j in range(9)) + ")"})["table"] is None


@pytest.mark.parametrize(
    ("expression", "advice"),
    [
        ("parity(" + ", ".join(f"x{j}" for j in range(30)) + ")", "genscope probe EXPR --bits 30"),
        ("x0 & " * 4000 + "x1", "Shorten it"),
        ("|".join(f"x{j % LARGEST}" for j in range(3000)), "use fewer variables"),
    ],
)
def test_too_large_a_question_is_refused_kindly(expression, advice):
    with pytest.raises(ValueError, match=advice):
        analyse({"expression": expression})


def test_twelve_variables_take_no_time():
    # CPU time, since other tests share the machine; the page adds a few milliseconds of HTTP and drawing.
    expression = GALLERY[-1][1]
    seconds = []
    for number in range(40):
        start = time.process_time()
        found = function_room.analyse({"expression": f"{expression} ^ (x{number % 12} & 0)"})
        seconds.append(time.process_time() - start)
        assert found["inputs"] == 4096
    assert np.quantile(seconds, 0.95) < 0.15
