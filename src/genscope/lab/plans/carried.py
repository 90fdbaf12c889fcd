"""What a function carries besides its text: arguments bound to it, variables of the functions around it, its object.

Functions and classes met on the way are listed, so that their text can be followed. A function that was typed in, say
in a notebook, has no file: it carries its compiled code and the globals that this names.

Departures: of genscope's own functions and objects only the text counts; the names of studies hold the rest.
Guarantee: exact for plain values, containers, arrays and what `pickle` can take apart; other objects are their class,
and what is nested a thousand deep is all the same.
"""

import builtins
import copyreg
import functools
import hashlib
import sys
import sysconfig
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np

PACKAGE = Path(__file__).resolve().parents[2]
_INSTALLED = tuple(
    {Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib", "purelib", "platlib")}
)
_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(...), range, slice)
_BRACKETS = {list: "[]", tuple: "()", dict: "{}", set: "{}", frozenset: "{}"}


def is_installed(file: Path) -> bool:
    """Whether a file belongs to Python or to an installed package, of this environment or of one that it borrows."""
    return any(map(file.is_relative_to, _INSTALLED)) or not {"site-packages", "dist-packages"}.isdisjoint(file.parts)


def home(value: Any) -> Mapping[str, Any]:
    """The globals among which a function, a class or a module was written; they may say which file that is."""
    if isinstance(value, types.FunctionType):
        return value.__globals__
    module = value if isinstance(value, types.ModuleType) else sys.modules.get(getattr(value, "__module__", None) or "")
    return {} if module is None else vars(module)


def origin(value: Any) -> Literal["genscope", "installed", "user", "typed"]:
    """Whose a function, a class or a module is."""
    facts = home(value)
    file = facts.get("__file__")
    if isinstance(value, types.FunctionType) and value.__code__.co_filename.startswith("<"):
        return "typed"
    if file is None or not str(file).endswith(".py") or not Path(file).is_file():
        return "typed" if facts.get("__spec__") is None and facts is not vars(builtins) else "installed"
    path = Path(file).resolve()
    if path.is_relative_to(PACKAGE):
        return "genscope"
    return "installed" if is_installed(path) else "user"


class Carried:
    """What a function carries, as text, and the functions, classes and modules inside it, itself first."""

    def __init__(self, function: Any):
        self.written: list[Any] = []
        self._met: dict[int, tuple[int, Any]] = {}  # the objects too, so that no other takes their place in memory
        self._open: set[int] = set()
        values = list(self._layers(function))
        try:
            self.text = self._told(values) if values else ""
        except RecursionError:
            self.text = "too deep to be told"

    def _layers(self, value: Any) -> Iterator[Any]:
        """The values that go with a function, through everything that is wrapped around it."""
        if id(value) in self._met:
            return
        self._met[id(value)] = len(self._met), value
        if isinstance(value, functools.partial):
            yield from (*value.args, *sorted(value.keywords.items()))
            yield from self._layers(value.func)
        elif isinstance(value, types.MethodType):
            yield value.__self__
            yield from self._layers(value.__func__)
        elif isinstance(value, types.FunctionType):
            yield from self._function(value)
        elif isinstance(value, type):
            self.written.append(value)
            if origin(value) == "typed":
                yield value.__bases__
                yield from (held for name, held in sorted(vars(value).items()) if name not in _OF_CLASSES)
        elif isinstance(value, property):
            yield from (value.fget, value.fset)
        elif (wrapped := _wrapped(value)) is not None:
            yield from self._layers(wrapped)
        elif isinstance(value, types.BuiltinFunctionType):
            yield value.__self__  # the module, or the object that it is a method of
        else:
            yield from self._layers(type(value))
            if origin(type(value)) != "genscope":
                yield _State(value)

    def _function(self, value: types.FunctionType) -> Iterator[Any]:
        whose, wrapped = origin(value), _wrapped(value)
        if wrapped is not None and whose != "user":
            yield from self._layers(wrapped)
            return
        self.written.append(value)
        if whose == "genscope":
            return
        yield from (cell.cell_contents for cell in value.__closure__ or () if cell != types.CellType())
        if whose == "typed" or "<" in value.__code__.co_qualname:
            yield from (each for each in (value.__defaults__, value.__kwdefaults__) if each)
        if whose == "typed":
            yield _without_docstring(value)
            named = sorted({*names_in(value.__code__)} & value.__globals__.keys())
            yield from ((name, value.__globals__[name]) for name in named)
        if wrapped is not None:
            yield from self._layers(wrapped)

    def _told(self, value: Any) -> str:
        if isinstance(value, _PLAIN):
            return repr(value)
        if type(value) in _BRACKETS:
            return self._container(value)
        if isinstance(value, types.CodeType):
            return f"code({value.co_code.hex()}, {value.co_names}, {', '.join(map(self._told, value.co_consts))})"
        if isinstance(value, types.ModuleType):
            self.written.append(value)
            return f"module {value.__name__}"
        if not isinstance(value, type) and all(hasattr(value, name) for name in ("dtype", "shape", "__array__")):
            return self._array(value)
        if isinstance(value, _State):
            return f"{type(value.of).__qualname__}({self._state(value.of)})"
        if id(value) in self._met:
            return f"met {self._met[id(value)][0]}"
        if _is_function(value):
            return f"{_name(value)}({', '.join(map(self._told, list(self._layers(value))))})"
        self._met[id(value)] = len(self._met), value
        return f"{self._told(type(value))}({self._state(value)})"

    def _container(self, value: Any) -> str:
        """As Python prints it, its parts as they are told."""
        if id(value) in self._open:
            return "..."
        self._open.add(id(value))
        if isinstance(value, dict):
            parts = [f"{self._told(key)}: {self._told(item)}" for key, item in value.items()]
        else:
            parts = [self._told(each) for each in value]
        self._open.discard(id(value))
        if isinstance(value, set | frozenset):
            parts.sort()
        comma = "," if isinstance(value, tuple) and len(value) == 1 else ""
        return f"{', '.join(parts)}{comma}".join(_BRACKETS[type(value)])

    def _array(self, value: Any) -> str:
        try:
            if str(value.dtype).startswith("key<"):  # of jax.random
                value = sys.modules["jax"].random.key_data(value)
            array = np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)
        except Exception:  # whatever a library says to being read, as PyTorch of numbers that NumPy lacks
            return type(value).__qualname__
        if array.dtype.hasobject:
            return f"array({array.shape}, {self._told(array.tolist())})"
        return f"array({array.dtype}, {array.shape}, {hashlib.sha256(array.tobytes()).hexdigest()})"

    def _state(self, value: Any) -> str:
        """As pickle would save it; nothing for what it cannot save."""
        try:
            reduced = copyreg.dispatch_table.get(type(value))
            saved = value.__reduce_ex__(4) if reduced is None else reduced(value)
        except Exception:  # whatever a user's object says to being saved
            return ""
        if isinstance(saved, str):
            return saved
        return ", ".join(self._told(list(part) if isinstance(part, Iterator) else part) for part in saved)


class _State:
    """The attributes of an object whose class is listed already."""

    def __init__(self, of: Any):
        self.of = of


_OF_CLASSES = {"__dict__", "__weakref__", "__module__", "__doc__", "__firstlineno__", "__static_attributes__"}


def _is_function(value: Any) -> bool:
    kinds = (functools.partial, types.MethodType, types.FunctionType, types.BuiltinFunctionType, type, property)
    return isinstance(value, kinds) or _wrapped(value) is not None


def _wrapped(value: Any) -> Any:
    try:
        return value.__wrapped__
    except Exception:  # objects may answer anything to being asked
        return None


def _name(value: Any) -> str:
    return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', type(value).__qualname__)}"


def _without_docstring(function: types.FunctionType) -> types.CodeType:
    code, words = function.__code__, function.__doc__
    if words is None or code.co_consts[:1] != (words,):
        return code
    return code.replace(co_consts=(None, *code.co_consts[1:]))


def names_in(code: types.CodeType) -> Iterator[str]:
    """The names in a piece of code and in the functions that it defines."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from names_in(constant)
