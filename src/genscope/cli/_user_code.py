"""The user's own Python: `package.module:function` or `file.py:function`, and what happens when it fails.

Guarantee: a reference that names nothing is a refusal (status 2); what the user's code raises is shown as Python would
show it, from the user's own first frame on, with status 1; what genscope itself raises passes through. Code that
imports PyTorch where it is not installed is refused, with what to install.
"""

import contextlib
import difflib
import importlib.util
import os
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import typer

from genscope.cli._errors import complain
from genscope.refusal import Refusal

_INSTALLED = tuple(
    os.path.join(sysconfig.get_path(name), "") for name in ("stdlib", "platstdlib", "purelib", "platlib")
)
_WITH_TORCH = ("torch", "torchax", "transformers")


def is_reference(text: str) -> bool:
    """Whether a text has the form `package.module:function` or `file.py:function`.

    >>> is_reference("my_models.small:make"), is_reference("models/small.py:make"), is_reference("x0 & x1")
    (True, True, False)
    """
    module, colon, function = text.rpartition(":")
    parts = function.split(".") if module.endswith(".py") else [*module.split("."), *function.split(".")]
    return bool(colon) and all(part.isidentifier() for part in parts)


def imported(reference: str) -> Callable[..., Any]:
    """What a reference names; for modules the current directory comes first, as in `python -m`."""
    if not is_reference(reference):
        raise Refusal(
            f"got {reference!r} as the name of your function: it must look like package.module:function or "
            "file.py:function. Write, for example, my_models:target."
        )
    place, _, path = reference.rpartition(":")
    found: Any = _file(Path(place)) if place.endswith(".py") else _module(place, reference)
    for part in path.split("."):
        if not hasattr(found, part):
            named = [name for name in dir(found) if not name.startswith("_")]
            near = difflib.get_close_matches(part, named, n=1)
            raise Refusal(
                f"got {reference!r}, but {place} has no {part!r}: the text after the colon must name something in "
                f"it. {f'Did you mean {near[0]}?' if near else 'Correct the name.'}"
            )
        found = getattr(found, part)
    if not callable(found):
        raise Refusal(
            f"got {reference!r}, which is of type {type(found).__name__}: it must be callable. Name a function."
        )
    return found


def _module(name: str, reference: str) -> Any:
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    importlib.invalidate_caches()  # the file may have been written a moment ago
    try:
        with users_code(name):
            return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise Refusal(
            f"got {reference!r}, but there is no module {error.name!r}: modules are searched for in the current "
            "directory and among the installed packages. Correct the name, or change to the directory that holds "
            "the module."
        ) from None


_FILES: dict[tuple[Path, int], Any] = {}


def _file(path: Path) -> Any:
    """A file as a module, run once in a process: a model and its prior may come from the same training."""
    from genscope.lab.execution.reference import load

    key = path.resolve(), path.stat().st_mtime_ns  # that there is none is the system's message
    if key not in _FILES:
        with users_code(str(path)):
            _FILES[key] = load(path)
    return _FILES[key]


@contextlib.contextmanager
def users_code(reference: str) -> Iterator[None]:
    """Where the user's code runs: what it raises is shown with its own frames, and ends the program with status 1.

    Code is the user's if it belongs to the module of the reference, or to no installed package.
    """
    try:
        yield
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError):
            _need_torch(reference, (error.name or "").partition(".")[0])
        place, colon, _ = reference.rpartition(":")
        module = place if colon else reference
        trace = _users_part(error.__traceback__, module)
        missing = isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}.")
        if trace is None and (missing or isinstance(error, typer.Exit | Refusal)):
            raise
        frames = None if isinstance(error, SyntaxError) else trace or error.__traceback__  # Python names its place
        shown = traceback.format_exception(type(error), error, frames)
        complain(f"{reference} failed. It says:\n{''.join(shown).rstrip()}")
        raise typer.Exit(1) from None


def _need_torch(reference: str, package: str) -> None:
    """Refuse code that imports PyTorch, or what comes with it, where that is not installed."""
    if package not in _WITH_TORCH:
        return
    from genscope.extras import need  # most commands start without it

    need("torch", given=f"{reference} imports {package}, which is not installed")
    if importlib.util.find_spec(package) is None:
        raise Refusal(
            f"{reference} imports {package}, which is not installed: no extra of genscope brings it. Run "
            f"pip install {package}."
        )


def _users_part(trace: TracebackType | None, module: str) -> TracebackType | None:
    """The traceback from the first frame on that runs the user's code."""
    while trace is not None and not _is_users(trace.tb_frame, module):
        trace = trace.tb_next
    return trace


def _is_users(frame: FrameType, module: str) -> bool:
    name, file = str(frame.f_globals.get("__name__", "")), frame.f_code.co_filename
    if name.partition(".")[0] == "genscope" or file.startswith("<"):  # generated code, importlib
        return False
    return name == module or not file.startswith(_INSTALLED)
