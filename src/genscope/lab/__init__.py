"""Machinery of experiments; knows nothing of Transformers.

Running needs JAX, whose import takes a second: those names are loaded on first use.
"""

import importlib
from typing import TYPE_CHECKING, Any

from genscope.lab.figure import (
    Crossing,
    Curves,
    Figure,
    Heatmap,
    Level,
    Line,
    Mean,
    Median,
    Panel,
    Published,
    Reference,
    Scatter,
    Smallest,
    Success,
)
from genscope.lab.preview import Preview, preview
from genscope.lab.reading import Reading, read
from genscope.lab.selection import Selection, select
from genscope.lab.store import Record, Store
from genscope.lab.study import Plan, Study, Trial, grid
from genscope.lab.threshold import Search, Threshold
from genscope.lab.verdict import Verdict

if TYPE_CHECKING:
    from genscope.lab.cluster import Cluster
    from genscope.lab.processes import Processes
    from genscope.lab.runner import Progress, Summary, run, run_all

__all__ = ["Plan", "Search", "Study", "Trial", "grid"]
__all__ += [
    "Cluster",
    "Preview",
    "Processes",
    "Progress",
    "Selection",
    "Summary",
    "preview",
    "run",
    "run_all",
    "select",
]
__all__ += ["Reading", "Record", "Store", "Threshold", "Verdict", "read"]
__all__ += ["Crossing", "Curves", "Figure", "Heatmap", "Line", "Mean", "Median", "Scatter", "Smallest", "Success"]
__all__ += ["Level", "Panel", "Published", "Reference"]

_LATER = {"Cluster": "cluster", "Processes": "processes", "Progress": "runner", "Summary": "runner"} | {
    "run": "runner",
    "run_all": "runner",
}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(importlib.import_module(f"genscope.lab.{_LATER[name]}"), name)
    raise AttributeError(f"module 'genscope.lab' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
