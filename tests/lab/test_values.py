import math
import struct

import jax.numpy as jnp
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from genscope.lab import frames, values

NAN, INF = math.nan, math.inf
floats = st.floats(width=64)
scalars = st.one_of(st.booleans(), st.integers(-(2**63), 2**63 - 1), floats, st.text())


def bits(value):
    """Floats by their bits, so that -0.0 differs from 0.0 and NaN equals itself."""
    if isinstance(value, list):
        return [bits(item) for item in value]
    return ("float", math.isnan(value) or struct.pack("d", value)) if isinstance(value, float) else value


def identical(left, right):
    return {name: (type(v), bits(v)) for name, v in left.items()} == {n: (type(v), bits(v)) for n, v in right.items()}


@given(st.dictionaries(st.sampled_from(["a", "b", "loss"]), st.one_of(scalars, st.lists(floats))))
def test_text_and_back(measured):
    assert identical(values.decode(values.encode(measured)), measured)


@given(st.lists(st.one_of(floats, st.none()), min_size=1))
def test_a_column_of_floats_is_exact(numbers):
    rows = [{} if number is None else {"x": number} for number in numbers]
    frame = frames.columns([values.encode(row) for row in rows])
    column = frame["x"].to_list() if "x" in frame.columns else [None] * len(numbers)
    assert [bits(number) for number in column] == [bits(number) for number in numbers]


@given(st.lists(st.lists(floats, max_size=4), min_size=1))
def test_a_column_of_arrays_is_exact(arrays):
    frame = frames.columns([values.encode({"x": array}) for array in arrays])
    assert bits(frame["x"].to_list()) == bits(arrays)


@given(st.lists(st.text(), min_size=1))
def test_strings_that_look_like_numbers_stay_strings(texts):
    texts = [*texts, "nan", "inf", "1.0", '"', "~"]
    assert frames.columns([values.encode({"x": text}) for text in texts])["x"].to_list() == texts


def test_columns_keep_their_types_beside_missing_rows():
    rows = [
        {"flag": True, "count": 2**63 - 1, "loss": NAN, "path": [1.0, INF], "grid": [[1.0], [NAN]]},
        {"flag": False, "count": -(2**63), "loss": 0.5, "path": [2.0, -0.0], "grid": [[1.0], [2.0]]},
        {},
    ]
    frame = frames.columns([values.encode(row) for row in rows])
    assert frame.schema == {
        "flag": pl.Boolean,
        "count": pl.Int64,
        "loss": pl.Float64,
        "path": pl.List(pl.Float64),
        "grid": pl.List(pl.List(pl.Float64)),
    }
    for row, back in zip(rows, frame.rows(named=True), strict=True):
        assert identical(row, {name: value for name, value in back.items() if value is not None})


def test_nothing_measured_has_no_columns():
    assert frames.columns([]).shape == (0, 0)
    assert frames.columns(["{}", "{}"]).shape == (2, 0)


def test_plain_values_of_arrays_and_scalars():
    given_values = {
        "a": jnp.float32(0.1),
        "b": jnp.zeros((2, 0)),
        "c": np.bool_(True),
        "d": (1, 2),
        "e": True,
        "f": np.float16(1),
        "g": "word",
        "h": np.uint64(2**63 - 1),
        "i": jnp.array(3),
    }
    plain = values.plain(given_values)
    assert plain == {
        "a": 0.10000000149011612,  # the float32 nearest to 0.1, widened
        "b": [[], []],
        "c": True,
        "d": [1, 2],
        "e": True,
        "f": 1.0,
        "g": "word",
        "h": 2**63 - 1,
        "i": 3,
    }
    assert {type(plain[name]) for name in "ce"} == {bool}
    assert {type(plain[name]) for name in "hi"} == {int}


def test_nothing_to_measure_is_null_in_the_frame():
    rows = [values.plain({"step": step, "loss": loss}) for step, loss in ((None, math.nan), (7, 0.5), (None, None))]
    texts = [values.encode(row) for row in rows]
    assert [values.decode(text)["step"] for text in texts] == [None, 7, None]
    frame = frames.columns(texts)
    assert frame["step"].to_list() == [None, 7, None]
    assert math.isnan(frame["loss"][0])
    assert frame["loss"].to_list()[1:] == [0.5, None]
    assert frames.columns(texts[:1])["step"].is_null().all()


@pytest.mark.parametrize(
    ("value", "advice"),
    [
        (1j, "Convert it"),
        ({}, "Convert it"),
        (2**70, "Convert it"),
        (np.longdouble(1), "Convert it"),
        (jnp.bfloat16(1), "Convert it"),
        (np.uint64(2**63), "Rescale it"),
        ("\ud800", "surrogates"),
    ],
)
def test_other_values_are_refused(value, advice):
    with pytest.raises((TypeError, ValueError), match=advice):
        values.plain({"x": value})


def test_a_trial_returns_a_dictionary():
    with pytest.raises(ValueError, match="Return one, such as"):
        values.plain([1.0])  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("name", "advice"), [("two words", "Rename it"), ("seed", "Choose another"), ("size", "Rename the value")]
)
def test_names_that_cannot_be_columns(name, advice):
    with pytest.raises(ValueError, match=advice):
        values.check_names([name], taken=frozenset({"size"}))
