"""The type checker under which tests import genscope: beartype, and where there are arrays also their shapes."""

import pkgutil
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import jaxtyping
from beartype import BeartypeConf, BeartypeDecorPlace, beartype
from beartype.claw import beartype_packages
from beartype.roar import BeartypeDecorHintPep673Exception

_CONF = BeartypeConf(
    is_pep484_tower=True,  # an int will do for a float, as for pyright
    claw_decor_place_func=BeartypeDecorPlace.FIRST,  # our own decorators and checks meet an argument first
    claw_decor_place_type=BeartypeDecorPlace.FIRST,
)

# Binding the names of shapes makes a call twenty times slower, and the bounds are called a million times.
_WITHOUT_SHAPES = {"bounds", "claims", "lab", "report"}


def install() -> None:
    """Check every call of genscope from now on; `genscope` must not be imported yet."""
    spec = find_spec("genscope")
    assert spec is not None
    parts = {module.name for module in pkgutil.iter_modules(spec.submodule_search_locations)}
    assert parts > _WITHOUT_SHAPES
    beartype_packages([f"genscope.{name}" for name in sorted(_WITHOUT_SHAPES)], conf=_CONF)
    jaxtyping.install_import_hook(
        [f"genscope.{name}" for name in sorted(parts - _WITHOUT_SHAPES)], "tests.typechecker.checked"
    )


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """Check a function's calls; `Self` is left to pyright, since jaxtyping decorates methods and not classes."""
    try:
        return beartype(conf=_CONF)(function)
    except BeartypeDecorHintPep673Exception:
        return function
