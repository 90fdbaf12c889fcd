"""How another process finds a study: by the name of the variable that holds it, never as a pickled object.

A reference is `package.module:variable`, or `path/file.py:variable` for a file that is in no package. The process that
is given one needs the same package or file.

Guarantee: exact; a reference leads to the very study that it was made from.
"""

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from genscope.lab.execution.loaded import STUDY_FILE, FromText
from genscope.lab.plans.study import Study
from genscope.refusal import Refusal


def refer(study: Study) -> str:
    """The reference of a study that is a variable of a loaded module."""
    for module in list(sys.modules.values()):
        for variable, value in list(getattr(module, "__dict__", {}).items()):
            if value is study and (place := _place(module)) is not None:
                return f"{place}:{variable}"
    raise Refusal(
        f"got the study {study.name!r}, which is not a variable of any module, but worker processes look it up by "
        "name. Define it at the top level of a Python file, or run it on threads (without workers, cluster or time "
        "limit)."
    )


def resolve(reference: str) -> Study:
    """The study of a reference; what its file raises comes out."""
    place, _, variable = reference.rpartition(":")
    module = load(Path(place)) if place.endswith(".py") else importlib.import_module(place)
    study = getattr(module, variable, None)
    if not isinstance(study, Study):
        raise Refusal(
            f"got the reference {reference}, but {variable!r} is of type {type(study).__name__} there: it must be a "
            "genscope.Study. Copy the same file to this machine."
        )
    return study


def load(file: Path) -> ModuleType:
    """Run a Python file that is in no package, with its directory on the path; what it raises comes out."""
    name = f"{STUDY_FILE}{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file, loader=FromText(name, str(file)))
    if spec is None or spec.loader is None:
        raise Refusal(f"got the file {file}, which Python cannot load. Give a Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    directory = str(file.resolve().parent)
    if directory not in sys.path:
        sys.path.insert(0, directory)
    spec.loader.exec_module(module)
    return module


def _place(module: ModuleType) -> str | None:
    """The name of a module that is in a package, else its file; None for one that was typed in."""
    spec = getattr(module, "__spec__", None)
    if spec is not None and spec.parent:
        return spec.name
    file = getattr(module, "__file__", None)
    return None if file is None or not file.endswith(".py") else str(Path(file).resolve())
