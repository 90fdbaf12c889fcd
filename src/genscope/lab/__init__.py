"""Machinery of experiments; knows nothing of Transformers.

Running needs JAX, whose import takes a second, and reading polars: those names are loaded on first use.
"""

import importlib
from typing import TYPE_CHECKING, Any

from genscope.lab.execution.preview import Preview, preview
from genscope.lab.plans.figure import (
    Blocks,
    Crossing,
    Curves,
    Figure,
    Group,
    Heatmap,
    Level,
    Line,
    Mean,
    Median,
    Panel,
    Plateau,
    Published,
    Reference,
    Scatter,
    Smallest,
    Success,
)
from genscope.lab.plans.selection import Selection, select
from genscope.lab.plans.study import BUDGETS, Plan, Point, Study, Trial, grid, within
from genscope.lab.results.verdict import Verdict
from genscope.lab.statistics.threshold import Search, Threshold
from genscope.lab.storage.integrity import Health, check_store
from genscope.lab.storage.store import Record, Store

if TYPE_CHECKING:
    from genscope.lab.execution.cluster import Cluster
    from genscope.lab.execution.processes import Processes
    from genscope.lab.execution.runner import Progress, Summary, run, run_all
    from genscope.lab.results.reading import Reading, read

__all__ = ["BUDGETS", "Plan", "Point", "Search", "Study", "Trial", "grid", "within"]
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
__all__ += ["Health", "Reading", "Record", "Store", "Threshold", "Verdict", "check_store", "read"]
__all__ += ["Blocks", "Crossing", "Curves", "Figure", "Group", "Heatmap", "Line", "Mean", "Median", "Plateau"]
__all__ += ["Level", "Panel", "Published", "Reference", "Scatter", "Smallest", "Success"]

_LATER = {
    "Cluster": "execution.cluster",
    "Processes": "execution.processes",
    **dict.fromkeys(("Progress", "Summary", "run", "run_all"), "execution.runner"),
    **dict.fromkeys(("Reading", "read"), "results.reading"),
}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(importlib.import_module(f"genscope.lab.{_LATER[name]}"), name)
    raise AttributeError(f"module 'genscope.lab' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
