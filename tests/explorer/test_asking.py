"""Fields of a question: right ones pass, and every wrong one is told what is allowed."""

import pytest

from genscope.explorer import asking


def test_right_fields():
    ask = {"name": "x0", "size": 3, "rate": 2, "kind": "a"}
    assert asking.text(ask, "name", longest=2) == "x0"
    assert asking.whole(ask, "size", least=3, most=3) == 3
    assert asking.number(ask, "rate", least=0, most=2) == 2.0
    assert asking.choice(ask, "kind", ("a", "b")) == "a"


def test_defaults_stand_in_for_what_is_missing():
    assert asking.text({}, "name", longest=2, default="") == ""
    assert asking.whole({}, "size", least=0, most=3, default=0) == 0
    assert asking.number({}, "rate", least=0, most=3, default=0.5) == 0.5
    assert asking.choice({}, "kind", ("a", "b"), default="b") == "b"


@pytest.mark.parametrize("given", [None, 3, ["x"], "x" * 100])
def test_no_text(given):
    with pytest.raises(ValueError, match="text of at most 99 characters"):
        asking.text({"name": given}, "name", longest=99)


@pytest.mark.parametrize("given", [None, "3", 3.0, True, 0, 11, [3], 10**400])
def test_no_whole_number(given):
    with pytest.raises(ValueError, match=r"Context length is .* whole number from 1 to 10"):
        asking.whole({"context_length": given}, "context_length", least=1, most=10)


@pytest.mark.parametrize("given", [None, "3", False, float("nan"), float("inf"), -0.1, 10**400])
def test_no_number(given):
    with pytest.raises(ValueError, match="a number from 0 to 1"):
        asking.number({"rate": given}, "rate", least=0, most=1)


@pytest.mark.parametrize("given", [None, "c", 1, ["a"], {"a": 1}])
def test_no_choice(given):
    with pytest.raises(ValueError, match="one of a, b"):
        asking.choice({"kind": given}, "kind", ("a", "b"))


def test_a_long_value_is_shown_in_part():
    with pytest.raises(ValueError, match=r"'x{36}\.\.\., but must"):
        asking.choice({"kind": "x" * 1000}, "kind", ("a",))


def test_what_takes_larger_numbers_is_named():
    with pytest.raises(ValueError, match=r"1 to 64 here. For larger ones use genscope construct."):
        asking.whole({"size": 256}, "size", least=1, most=64, instead="genscope construct")
    with pytest.raises(ValueError, match=r"1 to 64 here. Choose one."):
        asking.whole({"size": 0}, "size", least=1, most=64, instead="genscope construct")
