"""Headings that state what was found: true of the numbers, or not there."""

import pytest

from genscope.lab.results.answers import answer
from genscope.lab.results.reduction import Mark, ReducedSeries

FFN = ReducedSeries(
    "ffn", (Mark(8, 30.0, 20.0, 40.0, 5), Mark(2, 2.0, 1.0, 3.0, 5), Mark(16, 99.0, 99.0, None, 5, "above"))
)
TRANSFORMER = ReducedSeries(
    "transformer", (Mark(2, 4.0, 3.0, 5.0, 5), Mark(8, 10.0, 9.0, 11.0, 5), Mark(16, 12.0, 11.0, 13.0, 5))
)


def told(value: float) -> str:
    return f"{value:g}"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("At {at ffn/transformer} tokens {ratio ffn/transformer} times", "At 8 tokens 3 times"),
        ("from {first ffn} at {from ffn} to {last ffn} at {to ffn}", "from 2 at 2 to 30 at 8"),
        ("between {least} and {most}", "between 2 and 30"),
        ("at most {most transformer}", "at most 12"),
        ("in the middle {median transformer}", "in the middle 10"),
        ("{fold transformer} times", "0.5 times"),
        ("{fold gru}", ""),
        ("no field", "no field"),
        ("{last gru}", ""),  # not there
        ("{last}", ""),  # of which?
        ("{law ffn}", ""),  # no law was fitted
        ("{unheard ffn}", ""),
    ],
)
def test_fields_are_numbers_of_the_figure(words, expected):
    assert answer(words, [FFN, TRANSFORMER], told) == expected


def test_a_number_that_is_only_bounded_is_no_answer():
    """A larger x at which one series stopped at its budget must not be compared."""
    bounded = ReducedSeries("ffn", (Mark(8, 30.0, 30.0, None, 5, "above"),))
    assert answer("{ratio ffn/transformer}", [bounded, TRANSFORMER], told) == ""
    assert answer("{last ffn}", [bounded], told) == ""


def test_a_series_with_one_end_does_not_go_from_it_to_itself():
    alone = ReducedSeries("ffn", (Mark(8, 30.0, 20.0, 40.0, 5),))
    assert answer("from {first ffn} at {from ffn} to {last ffn} at {to ffn}", [alone], told) == ""
    assert answer("at {to ffn}: {last ffn}", [alone], told) == "at 8: 30"
