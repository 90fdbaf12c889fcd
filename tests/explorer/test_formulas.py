"""Formulas as MathML: well-formed, whole, and nothing left of LaTeX."""

import inspect
import xml.etree.ElementTree as ET

import pytest

from genscope import bounds
from genscope.explorer.formulas import mathml, typeset

MATH = "{http://www.w3.org/1998/Math/MathML}"


def test_pieces_keep_their_order():
    text, formula, rest = typeset(r"At most $\frac{a}{b}$, hence finite.")
    assert (text, rest) == ({"text": "At most "}, {"text": ", hence finite."})
    root = ET.fromstring(formula["math"])
    assert root.tag == f"{MATH}math"
    assert root.get("display") == "inline"
    assert [leaf.text for leaf in root.find(f".//{MATH}mfrac") or []] == [None, None]  # two rows, of one letter each
    assert [leaf.text for leaf in root.iter(f"{MATH}mi")] == ["a", "b"]


def test_a_formula_between_two_signs_is_a_block():
    [formula] = typeset("$$x$$")
    assert ET.fromstring(formula["math"]).get("display") == "block"


@pytest.mark.parametrize(
    ("latex", "spaces"),
    [(r"a + b\log T", ("0.17em", "0.17em")), (r"1 + \log n", ("0", "0.17em")), (r"p\log(x)", ("0.17em", "0"))],
)
def test_names_of_functions_are_set_apart_as_tex_does(latex, spaces):
    [name] = [each for each in ET.fromstring(mathml(latex)).iter(f"{MATH}mo") if each.text == "log"]
    assert (name.get("lspace"), name.get("rspace")) == spaces


def test_a_text_without_formulas_is_one_piece():
    assert typeset("no formula here") == [{"text": "no formula here"}]


@pytest.mark.parametrize("name", bounds.ALL)
def test_every_bound_is_typeset(name):
    pieces = typeset(inspect.getdoc(bounds.ALL[name]) or "")
    formulas = [piece["math"] for piece in pieces if "math" in piece]
    assert formulas
    for formula in formulas:
        ET.fromstring(formula)
        assert "\\" not in formula
        assert "merror" not in formula
    assert not any("$" in piece.get("text", "") for piece in pieces)
