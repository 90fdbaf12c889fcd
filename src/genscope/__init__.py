"""How many samples does a Transformer need, and why? Measured, predicted, constructed, explained.

Subpackages and nouns are loaded on first use: importing JAX takes a second, and not every command needs it.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from genscope import bounds as bounds
    from genscope import checkpoints as checkpoints
    from genscope import claims as claims
    from genscope import constructions as constructions
    from genscope import domination as domination
    from genscope import fourier as fourier
    from genscope import lab as lab
    from genscope import measure as measure
    from genscope import models as models
    from genscope import probe as probe
    from genscope import random as random
    from genscope import report as report
    from genscope import studies as studies
    from genscope import tasks as tasks
    from genscope import train as train
    from genscope.estimate import Estimate as Estimate
    from genscope.lab import Record as Record
    from genscope.lab import Store as Store
    from genscope.lab import Study as Study
    from genscope.lab import Trial as Trial
    from genscope.lab import grid as grid
    from genscope.models import from_torch as from_torch

    __version__: str

_SUBPACKAGES = (
    "bounds",
    "checkpoints",
    "claims",
    "constructions",
    "domination",
    "fourier",
    "lab",
    "measure",
    "models",
    "probe",
    "random",
    "report",
    "studies",
    "tasks",
    "train",
)
_NOUNS = {
    "Estimate": "genscope.estimate",
    **dict.fromkeys(("Record", "Store", "Study", "Trial", "grid"), "genscope.lab"),
    "from_torch": "genscope.models",
}


def __getattr__(name: str) -> Any:
    if name in _SUBPACKAGES:
        return importlib.import_module(f"genscope.{name}")
    if name in _NOUNS:
        return getattr(importlib.import_module(_NOUNS[name]), name)
    if name == "__version__":
        return importlib.import_module("importlib.metadata").version("genscope")
    raise AttributeError(f"module 'genscope' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*_SUBPACKAGES, *_NOUNS, "__version__"])
