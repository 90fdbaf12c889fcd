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

from genscope.refusal import Refusal

RESERVED = frozenset(
    {"id", "study", "revision", "seed", "status", "error", "seconds", "compile_seconds", "provenance", "finished"}
)
MARK = "~"


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
    coded = ((name, value) if _finite(value) else (MARK + name, _map(repr, value)) for name, value in values.items())
    return json.dumps(dict(coded), separators=(",", ":"), allow_nan=False)


def decode(text: str) -> dict[str, Any]:
    """The values of a JSON text."""
    return {
        name.removeprefix(MARK): _map(float, value) if name.startswith(MARK) else value
        for name, value in json.loads(text).items()
    }


def _finite(value: Any) -> bool:
    if isinstance(value, list):
        return all(map(_finite, value))
    return not isinstance(value, float) or math.isfinite(value)


def _map(function: Any, value: Any) -> Any:
    return [_map(function, item) for item in value] if isinstance(value, list) else function(value)
