"""Machinery of experiments; knows nothing of Transformers.

Running needs JAX, whose import takes a second: those names are loaded on first use.
"""

import importlib
from typing import TYPE_CHECKING, Any

from genscope.lab.cache import use_compilation_cache as use_compilation_cache
from genscope.lab.design import parse_where as parse_where
from genscope.lab.preview import Preview as Preview
from genscope.lab.preview import preview as preview
from genscope.lab.store import Record as Record
from genscope.lab.store import Store as Store
from genscope.lab.study import Plan as Plan
from genscope.lab.study import Study as Study
from genscope.lab.study import Trial as Trial
from genscope.lab.study import grid as grid

if TYPE_CHECKING:
    from genscope.lab.cluster import Cluster as Cluster
    from genscope.lab.processes import Processes as Processes
    from genscope.lab.runner import Progress as Progress
    from genscope.lab.runner import Summary as Summary
    from genscope.lab.runner import run as run


_LATER = {"Cluster": "cluster", "Processes": "processes", "Progress": "runner", "Summary": "runner", "run": "runner"}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(importlib.import_module(f"genscope.lab.{_LATER[name]}"), name)
    raise AttributeError(f"module 'genscope.lab' has no attribute {name!r}")
