"""Values in `--where` are read back as they were written, whatever texts they are."""

import contextlib

from hypothesis import given
from hypothesis import strategies as st

from genscope.lab.plans.spelling import words, written
from genscope.refusal import Refusal

TEXTS = st.text(st.characters(codec="utf-8")) | st.text('",\\ a1\n', max_size=6)
NUMBERS = st.integers() | st.floats(allow_nan=False) | st.booleans()


@given(st.lists(TEXTS | NUMBERS, min_size=1))
def test_what_is_written_is_read_back(chosen):
    found = [*words(written(chosen, mixed=True))]
    assert len(found) == len(chosen)
    for value, (text, quoted) in zip(chosen, found, strict=True):
        assert text == str(value)
        assert not quoted or isinstance(value, str)


@given(TEXTS)
def test_of_a_mixed_axis_a_text_in_no_quotation_marks_is_no_number(text):
    [(_, quoted)] = words(written([text], mixed=True))
    with contextlib.suppress(ValueError):
        float(text)
        assert quoted


@given(TEXTS)
def test_any_text_is_read_or_refused(text):
    with contextlib.suppress(Refusal):
        assert all(quoted or word == word.strip() for word, quoted in words(text))


def test_ordinary_texts_are_written_as_they_are():
    assert written(["AND of 2", "0.1", 3, 2.5, True, None], mixed=False) == "AND of 2,0.1,3,2.5,True,"
    assert written(["tuned", "0.1"], mixed=True) == 'tuned,"0.1"'
