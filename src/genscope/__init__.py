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
    from genscope import plot as plot
    from genscope import probe as probe
    from genscope import questions as questions
    from genscope import random as random
    from genscope import report as report
    from genscope import studies as studies
    from genscope import tasks as tasks
    from genscope import train as train
    from genscope.estimate import Estimate as Estimate
    from genscope.lab import Crossing as Crossing
    from genscope.lab import Curves as Curves
    from genscope.lab import Heatmap as Heatmap
    from genscope.lab import Line as Line
    from genscope.lab import Mean as Mean
    from genscope.lab import Median as Median
    from genscope.lab import Plan as Plan
    from genscope.lab import Record as Record
    from genscope.lab import Scatter as Scatter
    from genscope.lab import Search as Search
    from genscope.lab import Smallest as Smallest
    from genscope.lab import Store as Store
    from genscope.lab import Study as Study
    from genscope.lab import Success as Success
    from genscope.lab import Threshold as Threshold
    from genscope.lab import Trial as Trial
    from genscope.lab import grid as grid
    from genscope.lab import read as read
    from genscope.lab import run as run
    from genscope.lab import select as select
    from genscope.models import from_torch as from_torch
    from genscope.questions import Answer as Answer
    from genscope.questions import learn as learn
    from genscope.questions import sample_complexity as sample_complexity

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
    "plot",
    "probe",
    "questions",
    "random",
    "report",
    "studies",
    "tasks",
    "train",
)
_NOUNS = {
    "Estimate": "genscope.estimate",
    **dict.fromkeys(("Plan", "Record", "Search", "Store", "Study", "Threshold", "Trial"), "genscope.lab"),
    **dict.fromkeys(("grid", "read", "run", "select"), "genscope.lab"),
    **dict.fromkeys(("Crossing", "Curves", "Heatmap", "Line", "Mean", "Median", "Scatter"), "genscope.lab"),
    **dict.fromkeys(("Smallest", "Success"), "genscope.lab"),
    **dict.fromkeys(("Answer", "learn", "sample_complexity"), "genscope.questions"),
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
