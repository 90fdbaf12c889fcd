"""A planted fault, and what the faults of all papers are made of."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest

from genscope.lab import Plan, Study

Patch = pytest.MonkeyPatch


@dataclass(frozen=True)
class Fault:
    """What is broken, in words; how; and one plan for each study of the claim (None: it is left out)."""

    words: str
    plant: Callable[[Patch], None]
    plans: Sequence[Plan | None]
    prepare: Callable[[Patch], None] = lambda patch: None  # for the control too
    slow: bool = False


def wrap(patch: Patch, module: object, name: str, change: Callable[..., object]) -> None:
    """Replace a function of a module by `change(function, *arguments, **options)`."""
    true = getattr(module, name)
    patch.setattr(module, name, lambda *arguments, **options: change(true, *arguments, **options))


def points(study: Study, **where: object) -> list:
    """Points of a study's quick plan with the given values."""
    return [p for p in study.plan("quick").points if all(p[axis] == value for axis, value in where.items())]
