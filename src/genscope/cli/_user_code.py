"""The user's own Python: `package.module:function`, and what happens when it fails.

Guarantee: a reference that names nothing is a refusal (status 2); what the user's code raises is shown as Python would
show it, from the user's own first frame on, with status 1; what genscope itself raises passes through.
"""

import contextlib
import difflib
import importlib
import os
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator
from types import FrameType, TracebackType
from typing import Any

import typer

from genscope.cli._errors import complain
from genscope.refusal import Refusal

_INSTALLED = tuple(
    os.path.join(sysconfig.get_path(name), "") for name in ("stdlib", "platstdlib", "purelib", "platlib")
)


def is_reference(text: str) -> bool:
    """Whether a text has the form `package.module:function`.

    >>> is_reference("my_models.small:make"), is_reference("x0 & x1"), is_reference("model.safetensors")
    (True, False, False)
    """
    module, colon, function = text.partition(":")
    return bool(colon) and all(part.isidentifier() for part in [*module.split("."), *function.split(".")])


def imported(reference: str) -> Callable[..., Any]:
    """The function that `package.module:function` names; the current directory comes first, as in `python -m`."""
    if not is_reference(reference):
        raise Refusal(
            f"got {reference!r} for a function of yours: it is written package.module:function, the module without "
            ".py and with dots for directories. Write for example my_models:target."
        )
    module_name, _, path = reference.partition(":")
    if module_name.endswith(".py"):
        raise Refusal(
            f"got {reference!r}, a file: modules are named without .py and with dots for directories. Write "
            f"{module_name.removesuffix('.py')}:{path}"
        )
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    importlib.invalidate_caches()  # the file may have been written a moment ago
    try:
        with users_code(module_name):
            found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise Refusal(
            f"got {reference!r}, but there is no module {error.name!r}: modules are looked for in the current "
            "directory and among the installed packages. Correct the name, or change to the directory that holds it."
        ) from None
    for part in path.split("."):
        if not hasattr(found, part):
            named = [name for name in dir(found) if not name.startswith("_")]
            near = difflib.get_close_matches(part, named, n=1)
            raise Refusal(
                f"got {reference!r}, but {module_name} has no {part!r}: the text after the colon names a function of "
                f"the module. {f'Did you mean {near[0]}?' if near else 'Correct the name.'}"
            )
        found = getattr(found, part)
    if not callable(found):
        raise Refusal(
            f"got {reference!r}, which is of type {type(found).__name__}: what is named must be callable. Name a "
            "function."
        )
    return found


@contextlib.contextmanager
def users_code(reference: str) -> Iterator[None]:
    """Where the user's code runs: what it raises is shown with its own frames, and ends the program with status 1.

    Code is the user's if it belongs to the module of the reference, or to no installed package.
    """
    try:
        yield
    except (Exception, SystemExit) as error:
        module = reference.partition(":")[0]
        trace = _users_part(error.__traceback__, module)
        missing = isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}.")
        if trace is None and (missing or isinstance(error, typer.Exit | Refusal)):
            raise
        shown = traceback.format_exception(type(error), error, trace or error.__traceback__)
        complain(f"{reference} failed. It says:\n{''.join(shown).rstrip()}")
        raise typer.Exit(1) from None


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
