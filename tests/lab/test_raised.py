import traceback

import jax
import jax.numpy as jnp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from genscope.lab.results.raised import own_line


def through_jax():
    jax.jit(lambda x: x @ jnp.ones(4))(jnp.ones(3))


def of_several_lines_through_jax():
    jax.jit(lambda x: 1 if x > 0 else 2)(jnp.ones(()))


def raised_from_another():
    try:
        through_jax()
    except TypeError as error:
        raise RuntimeError("the sum\nfell over") from error


def with_a_note():
    error = ValueError("real")
    error.add_note("a note\nof two lines")
    raise error


def of_no_words():
    raise KeyError


def begun_on_the_next_line():
    raise ValueError("\n    got 3")


def of_a_program():
    exec("x = (")


def deep():
    deep()


def in_a_group():
    try:
        of_no_words()
    except KeyError as first:
        raise ExceptionGroup("two", [first, ValueError("b")]) from None


def of_no_words_in_a_callback():
    def host(_):
        raise MemoryError

    shape = jax.ShapeDtypeStruct((), jnp.float32)
    jax.jit(lambda x: jax.pure_callback(host, shape, x))(jnp.float32(1)).block_until_ready()


def telling_of_another_process():
    raise RuntimeError(f"a worker says:\n{shown(with_a_note)}")


def shown(function):
    try:
        function()
    except Exception as error:
        return "".join(traceback.format_exception(error))


@pytest.mark.parametrize(
    ("function", "line"),
    [
        (
            through_jax,
            "TypeError: dot_general requires contracting dimensions to have the same shape, got (3,) and (4,).",
        ),
        (
            of_several_lines_through_jax,
            "jax.errors.TracerBoolConversionError: Attempted boolean conversion of traced array with shape bool[].",
        ),
        (raised_from_another, "RuntimeError: the sum"),
        (with_a_note, "ValueError: real"),
        (of_no_words, "KeyError"),
        (begun_on_the_next_line, "ValueError: got 3"),
        (of_a_program, "SyntaxError: '(' was never closed"),
        (deep, "RecursionError: maximum recursion depth exceeded"),
        (in_a_group, "KeyError"),
        (of_no_words_in_a_callback, "MemoryError"),
        (telling_of_another_process, "ValueError: real"),
    ],
)
def test_an_exception_is_told_by_its_own_line(function, line):
    assert own_line(shown(function)) == line
    assert own_line(f"its rule fell over: {shown(function)}".rstrip()) == line


def test_a_text_without_frames_is_told_by_its_first_line():
    assert own_line("The process was killed (SIGKILL).\n") == "The process was killed (SIGKILL)."
    assert own_line("ValueError: \n-----\ngot 3") == own_line("-----\nValueError: got 3") == "ValueError: got 3"
    assert own_line("\nValueError: a\nb\n") == "ValueError: a"
    assert own_line(" \n") == own_line("") == "no message"


@given(st.text())
def test_whatever_a_message_holds_the_line_is_one(message):
    def fail():
        raise ValueError(message)

    found = own_line(shown(fail))
    assert len(found.splitlines()) == 1
    assert found.startswith("ValueError") or "Traceback" in message
