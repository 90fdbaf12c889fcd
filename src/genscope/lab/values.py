"""Measured values as JSON text and back, with NaN and infinities intact.

JSON has no NaN. A float that is not finite, or an array that holds one, is stored under its name with a leading
tilde, every number as text: `{"loss": nan}` is `{"~loss":"nan"}`. So ordinary values stay plain JSON, which polars
parses natively, and no number is ever mistaken for a string.

Guarantee: exact; every bool, 64-bit integer, double and string, and every array of them, comes back as it was.
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from genscope.refusal import Refusal

RESERVED = frozenset(
    {"id", "study", "revision", "seed", "status", "error", "seconds", "compile_seconds", "provenance", "finished"}
)
_MARK = "~"


def check_names(names: Sequence[str], *, taken: frozenset[str] = frozenset()) -> None:
    """Refuse names that cannot be columns of a study's data frame."""
    for name in names:
        if not isinstance(name, str) or not name.isidentifier():
            raise Refusal(
                f"got the name {name!r}: names of axes and values must be valid Python identifiers. Rename it."
            )
        if name in RESERVED:
            raise Refusal(
                f"got the name {name!r}: {', '.join(sorted(RESERVED))} are columns of every study's data frame. "
                "Choose another name."
            )
        if name in taken:
            raise Refusal(
                f"got the name {name!r} for a value of the trial, but an axis of the study has that name: column "
                "names must be unique. Rename the value."
            )


def plain(values: Any) -> dict[str, Any]:
    """What a trial returned, as Python scalars and nested lists; float32 widens exactly.

    None says that there was nothing to measure (the step at which a run that never learned became perfect), and is
    null in the data frame.
    """
    if not isinstance(values, Mapping):
        raise Refusal(
            f"a trial returned {type(values).__name__}: it must return a dictionary of named scalars and arrays. "
            'Return one, such as {"accuracy": accuracy}.'
        )
    return {name: _plain(name, value) for name, value in values.items()}


def _plain(name: str, value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, str):
        value.encode()  # a lone surrogate is no text: fail here, not when the table is read
        return value
    array = np.asarray(value)
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        raise Refusal(
            f"a trial returned {name} of type {type(value).__name__} ({array.dtype}): values must be Booleans, "
            "integers or floats of at most 64 bits, arrays of these, strings, or None. Convert it, or leave it out."
        )
    if array.dtype.kind == "u" and array.size and int(array.max()) >= 2**63:
        raise Refusal(
            f"a trial returned {name} with the integer {array.max()}: integers must be below 2^63. Rescale it."
        )
    return array.tolist()


def encode(values: Mapping[str, Any]) -> str:
    """The JSON text of plain values."""
    coded = ((name, value) if _finite(value) else (_MARK + name, _map(repr, value)) for name, value in values.items())
    return json.dumps(dict(coded), separators=(",", ":"), allow_nan=False)


def decode(text: str) -> dict[str, Any]:
    """The values of a JSON text."""
    return {
        name.removeprefix(_MARK): _map(float, value) if name.startswith(_MARK) else value
        for name, value in json.loads(text).items()
    }


def columns(texts: Sequence[str]) -> pl.DataFrame:
    """One column per name, one row per JSON text; null where a text lacks the name."""
    if all(text == "{}" for text in texts):
        return pl.DataFrame(height=len(texts))
    frame = pl.Series(texts, dtype=pl.String).str.json_decode(infer_schema_length=None).struct.unnest()
    names = list(dict.fromkeys(name.removeprefix(_MARK) for name in frame.columns))
    for bare in names:
        name = _MARK + bare
        if name not in frame.columns:
            continue
        numbers = frame[name].cast(_numeric(frame.schema[name]))
        if bare in frame.columns:
            frame = frame.with_columns(frame[bare].cast(numbers.dtype))
            numbers = frame.select(pl.coalesce(bare, numbers)).to_series()
        frame = frame.with_columns(numbers.alias(bare))
    return frame.select(names)


def flat(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame as CSV may hold it: lists as JSON text, and before a text that begins like a formula an apostrophe.

    Spreadsheets compute cells that begin with =, +, -, @, a tab or a carriage return, and such a formula may call out.

    >>> flat(pl.DataFrame({"curve": [[1, 2], None], "kind": ["=1+1", "a=b"], "loss": [-1.0, 2.0]})).rows()
    [('[1, 2]', "'=1+1", -1.0), (None, 'a=b', 2.0)]
    """
    nested = [column for column in frame.get_columns() if column.dtype.is_nested()]
    texts = [pl.col(name) for name, kind in frame.schema.items() if kind == pl.String]
    return frame.with_columns(
        *(
            pl.when(text.str.contains(r"^[=+\-@\t\r]")).then(pl.lit("'") + text).otherwise(text).name.keep()
            for text in texts
        ),
        *(
            pl.Series(column.name, [None if cell is None else json.dumps(cell) for cell in column.to_list()], pl.String)
            for column in nested
        ),
    )


def _finite(value: Any) -> bool:
    if isinstance(value, list):
        return all(map(_finite, value))
    return not isinstance(value, float) or math.isfinite(value)


def _map(function: Any, value: Any) -> Any:
    return [_map(function, item) for item in value] if isinstance(value, list) else function(value)


def _numeric(kind: Any) -> Any:
    return pl.List(_numeric(kind.inner)) if isinstance(kind, pl.List) else pl.Float64()
