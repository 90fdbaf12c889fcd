"""Plain values as JSON can hold them.

Guarantee: exact, except that a number which is infinite or not a number becomes null.
"""

import math
from collections.abc import Mapping
from typing import Any


def jsonable(value: Any) -> Any:
    """A value of plain Python types as JSON can hold it.

    >>> jsonable({"a": (1, float("nan")), "b": {"c": True}})
    {'a': [1, None], 'b': {'c': True}}
    """
    if isinstance(value, Mapping):
        return {str(name): jsonable(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
