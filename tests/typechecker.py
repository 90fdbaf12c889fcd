"""The type checker under which tests import genscope: beartype, except where it cannot read an annotation."""

from collections.abc import Callable
from typing import Any

from beartype import BeartypeConf, beartype
from beartype.roar import BeartypeDecorHintPep673Exception

_CONF = BeartypeConf(is_pep484_tower=True)  # an int will do for a float, as for pyright


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """Check a function's calls; `Self` is left to pyright, since jaxtyping decorates methods and not classes."""
    try:
        return beartype(conf=_CONF)(function)
    except BeartypeDecorHintPep673Exception:
        return function
