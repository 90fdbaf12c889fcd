"""Texts outside the grammar: always one kind of error, which shows the place and says what to write."""

import inspect
import pickle
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from genscope.fourier import ExpressionError, parse
from tests.reference import expression as reference
from tests.seeds import seed
from tests.strategies import expression_trees


def check_message(text, error):
    """The caret stands under the characters that `position` and `length` name."""
    head, shown, caret, advice = str(error).split("\n")
    assert head.startswith(f"Boolean expression, character {error.position + 1}: ")
    assert advice.startswith("Allowed: ")
    assert advice[-1] in ".?"
    assert 0 <= error.position <= len(text)
    assert error.length >= 1
    start = error.position - max(0, error.position - 50)
    assert caret == "  " + " " * start + "^" * min(error.length, 50)
    under = shown[2 + start : 2 + start + error.length]
    assert all(
        a == b
        for a, b in zip(under, text[error.position : error.position + error.length], strict=False)
        if b.isascii() and b.isprintable()
    )
    str(error).encode()


def parses_or_explains(text):
    try:
        parse(text, 64)
    except ExpressionError as error:
        check_message(text, error)
        return False
    return True


@pytest.mark.parametrize(
    ("text", "position", "length", "found", "advice"),
    [
        ("", 0, 1, "the end of the text where an operand", "Write an operand here"),
        ("  \n ", 0, 1, "the end of the text", "Write an operand here"),
        ("x0 &", 4, 1, "the end of the text", "after `&`"),
        ("x0 && x1", 4, 1, "found `&` where an operand", "a single `&`"),
        ("x0 and x1", 3, 3, "found `and` where an operator", "mean `&`"),
        ("x0 xor x1", 3, 3, "found `xor`", "mean `^`"),
        ("x0 + x1", 3, 1, "found `+`", "mean `|` or `^`"),
        ("x0 ∧ x1", 3, 1, "found `∧`", "mean `&`"),
        ("xor(x0, x1)", 0, 3, "found `xor`", "mean `parity`"),
        ("not x0", 0, 3, "found `not`", "mean `~`"),
        ("!x0", 0, 1, "found `!`", "mean `~`"),
        ("x0 = x1", 3, 1, "found `=` right after an operand", "instead of `=`"),
        ("majority(x0)", 0, 8, "found `majority`", "mean `maj`"),
        ("MAJ(x0)", 0, 3, "found `MAJ`", "mean `maj`"),
        ("tables(1; x0)", 0, 6, "found `tables`", "mean `table`"),
        ("x0 & X1", 5, 2, "found `X1`", "mean `x1`"),
        ("x_12", 0, 4, "found `x_12`", "mean `x12`"),
        ("2", 0, 1, "found `2`", "mean `x2`"),
        ("true", 0, 4, "found `true`", "mean `1`"),
        ("[x0]", 0, 1, "found `[`", "mean `(`"),
        ("(x0]", 3, 1, "found `]`", "mean `)`"),
        ("x0 x1", 3, 2, "found `x1` right after an operand", "before `x1`"),
        ("x0 ~x1", 3, 1, "found `~` right after", "before `~`"),
        ("(x0 | (x1)", 0, 1, "`(` is never closed", "Write `)`"),
        ("x0 | maj(x1", 5, 3, "`maj` is never closed", "Write `)`"),
        ("x0)", 2, 1, "`)` closes nothing", "Remove it"),
        ("()", 1, 1, "found `)` where an operand", "Write an operand"),
        ("maj()", 4, 1, "found `)` where an operand", "Write an operand"),
        ("maj(x0,)", 7, 1, "found `)` where an operand", "Write an operand"),
        ("maj x0", 4, 2, "found `x0`", "Write `maj(x0, x1, x2)`"),
        ("maj(x0; x1)", 6, 1, "found `;`", "Only thr and table"),
        ("x0, x1", 2, 1, "`,` outside of a function", "Commas separate arguments"),
        ("(x0, x1)", 3, 1, "`,` outside of a function", "Commas separate arguments"),
        ("x64", 0, 3, "`x64` is out of range", "more bits"),
        ("x12345678901", 0, 12, "out of range", "more bits"),
        ("x007", 0, 4, "begins with 0", "Write `x7`"),
        ("x00", 0, 3, "begins with 0", "Write `x0`"),
        ("thr(x0, x1)", 4, 2, "found `x0` where `thr` needs a number", "Write `thr(2; x0, x1, x2)`"),
        ("thr(2, x1)", 5, 1, "found `,`", "Write `thr(2; x0, x1, x2)`"),
        ("thr(3; x0, x1)", 0, 3, "thr(3; ...) has 2 arguments", "Lower k to 2"),
        ("thr(0x; x0)", 4, 2, "found `0x` where `thr` needs", "Write `thr"),
        ("thr(-1; x0)", 4, 1, "found `-` where `thr` needs", "Write `thr"),
        ("table(x0)", 6, 2, "found `x0` where `table` needs", "Write `table(0x96"),
        ("table(0x10; x0, x1)", 0, 5, "has 5 bits", "list more variables"),
        ("table(2; )", 9, 1, "found `)` where an operand", "Write an operand"),
        ("__import__('os')", 0, 10, "found `__import__`", "Write an operand"),
        ("x0.real", 2, 1, "found `.`", "instead of `.`"),
        ("x\u00b2", 0, 1, "found `x`", "Write an operand"),
        ("x\uff10", 0, 1, "found `x`", "Write an operand"),
    ],
)  # fmt: skip
def test_every_mistake_has_its_place_and_its_advice(text, position, length, found, advice):
    with pytest.raises(ExpressionError) as caught:
        parse(text, 64)
    error = caught.value
    assert (error.position, error.length) == (position, length)
    assert found in str(error).split("\n")[0]
    assert advice in str(error).split("\n")[3]
    check_message(text, error)


def test_the_message_as_a_whole():
    with pytest.raises(ExpressionError) as caught:
        parse("x0 & majority(x1, x2)", 3)
    assert str(caught.value) == (
        "Boolean expression, character 6: found `majority` where an operand is expected.\n"
        "  x0 & majority(x1, x2)\n"
        "       ^^^^^^^^\n"
        "Allowed: a variable x0, ..., x2, a constant 0 or 1, ~, `(`, or a function maj, thr, parity, and, or, table. "
        "Did you mean `maj`?"
    )
    with pytest.raises(ExpressionError, match=r"indices go up to x63 for 64 bits"):
        parse("x64", 64)
    with pytest.raises(ExpressionError, match=r"a variable x0, a constant"):
        parse("&", 1)
    with pytest.raises(ExpressionError, match=r"a variable x0, \.\.\., a constant"):
        parse("&")


def test_long_texts_are_shown_around_the_place():
    text = "x0 & " * 2000 + "oops & " + "x1 & " * 2000 + "x2"
    with pytest.raises(ExpressionError) as caught:
        parse(text)
    assert caught.value.position == 10_000
    check_message(text, caught.value)
    assert max(map(len, str(caught.value).split("\n"))) < 200


@given(st.text(max_size=40))
@settings(max_examples=500, deadline=None)
@example("\ud800 & x0")
@example("日本 & x0")
@example("x0 \u0301& \x00")
def test_any_text_parses_or_is_explained(text):
    parses_or_explains(text)


@given(st.text(alphabet="x0123456789 ~&^|(),;majthrpityndoble", max_size=30))
@settings(max_examples=500, deadline=None)
def test_any_text_of_the_right_letters_parses_or_is_explained(text):
    parses_or_explains(text)


def test_mutated_expressions_parse_or_are_explained():
    random = Random(seed())
    texts = [
        "x0 & ~x1 | x2 ^ 1",
        "maj(x0, x1 & x2, ~x3)",
        "thr(2; x0, parity(x1, x2), 0) ^ or(x3)",
        "table(0x96; x0, x1, x2) | and(x4, (x5 ^ x6))",
    ]
    outcomes = []
    for _ in range(4000):
        text = random.choice(texts)
        for _ in range(random.randint(1, 3)):
            start = random.randint(0, len(text))
            patch = "".join(random.choices("x019 ~&^|(),;ajthr\n=é", k=random.randint(0, 2)))
            text = text[:start] + patch + text[start + random.randint(0, 2) :]
        outcomes.append(parses_or_explains(text))
    assert any(outcomes)
    assert not all(outcomes)


@given(expression_trees())
@settings(max_examples=30, deadline=None)
def test_texts_cut_off_inside_a_call_are_refused(tree):
    text = f"maj({reference.text(tree)}, x0)"
    for stop in range(3, len(text)):
        assert not parses_or_explains(text[:stop])


def test_limits():
    names = ",".join(f"x{j}" for j in range(21))
    for text, found, advice in [
        ("x0|" * 40_000, "120,000 characters", "truth table"),
        ("(" * 101 + "x0" + ")" * 101, "more than 100 parentheses", "Drop those"),
        ("maj(" * 20_000, "more than 100 parentheses", "Drop those"),
        (f"table(1; {names})", "more than 20 variables", "Write the function with operators"),
        (f"thr({'9' * 5000}; x0)", "needs a number", "Write `thr"),
        (f"table({'9' * 5000}; x0)", "needs a number", "Write `table"),
        (f"table(0x{'f' * 50_000}; x0)", "has 200000 bits", "list more variables"),
        (f"x{'9' * 5000}", "out of range", "smaller index"),
    ]:
        with pytest.raises(ExpressionError) as caught:
            parse(text)
        assert found in str(caught.value)
        assert advice in str(caught.value)
        check_message(text, caught.value)


def test_what_the_limits_still_allow():
    assert parse("(" * 100 + "x0" + ")" * 100).support == (0,)
    assert parse("~" * 99_998 + "x0").truth_table([0]).tolist() == [False, True]
    assert parse("x0|" * 3_000 + "x1").support == (0, 1)
    assert parse(f"table(0x1; {','.join(f'x{j}' for j in range(20))})").support == tuple(range(20))
    assert parse(f"maj({','.join(['x0', '~x0'] * 1_000)}, x1)").support == (1,)
    assert parse("x999999999").variables == (999_999_999,)


def test_bad_arguments():
    with pytest.raises(ValueError, match="Quote it"):
        inspect.unwrap(parse)(3)
    with pytest.raises(ValueError, match="Give 1 or more, or None"):
        parse("x0", 0)


def test_the_error_travels_between_processes():
    with pytest.raises(ExpressionError) as caught:
        parse("x0 & oops")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), copy.position, copy.length) == (str(caught.value), 5, 4)
