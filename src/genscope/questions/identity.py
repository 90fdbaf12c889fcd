"""What a function of this process is: a digest that two functions share only if they compute the same.

It covers the source, default arguments, nonlocal variables, and the globals that the source names: their values, and
the user's functions and classes with all that is said here, wherever they are imported from. Of the user's modules that
are named whole, the text counts; what is installed is known by its name. Objects are their class and what `pickle`
would save of them, arrays their bytes.

Guarantee: where something has no such representation (a lock, an open file), the digest is another one with every call.
"""

import contextlib
import functools
import hashlib
import inspect
import sys
import types
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from genscope.lab.plans.carried import names_in, origin
from genscope.lab.plans.sources import file_sources

_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(...), type(NotImplemented), range, slice)


def digest(function: Any) -> str:
    """The digest of a function or an object."""
    return hashlib.sha256(_Reader(function).told(function).encode()).hexdigest()


class _Reader:
    """Writes down whatever a function depends on; an object that was met before is named by its number."""

    def __init__(self, root: Any):
        self._met: dict[int, tuple[int, Any]] = {}  # the objects too, so that no other takes their place in memory
        self._homes = {"__main__", _home(root)}

    def told(self, value: Any) -> str:
        """A value as text."""
        if isinstance(value, _PLAIN):
            return f"{type(value).__name__} {value!r}"
        if isinstance(value, types.ModuleType):
            return f"module {value.__name__}{_text(value)}"
        if isinstance(value, np.ndarray | np.generic | jax.Array):
            return self._array(value)
        if id(value) in self._met:
            return f"met {self._met[id(value)][0]}"
        self._met[id(value)] = len(self._met), value
        return f"{type(value).__name__}({', '.join(self._parts(value))})"

    def _parts(self, value: Any) -> Iterator[str]:
        if isinstance(value, types.CodeType):
            yield from (value.co_code.hex(), repr(value.co_names), *map(self.told, value.co_consts))
        elif isinstance(value, types.CellType):
            with contextlib.suppress(ValueError):  # it is still empty
                yield self.told(value.cell_contents)
        elif type(value) in (list, tuple):
            yield from map(self.told, value)
        elif type(value) in (set, frozenset):
            yield from sorted(map(self.told, value))
        elif type(value) is dict:
            yield from (f"{self.told(key)}: {self.told(item)}" for key, item in value.items())
        elif isinstance(value, type | types.FunctionType | types.BuiltinFunctionType) and self._imported(value):
            yield f"{value.__module__}.{value.__qualname__}"
        elif isinstance(value, types.FunctionType):
            yield from self._function(value)
        elif isinstance(value, type):
            yield from self._class(value)
        elif isinstance(value, types.MethodType):
            yield from (self.told(value.__func__), self.told(value.__self__))
        elif isinstance(value, functools.partial):
            yield from (self.told(value.func), self.told(value.args), self.told(value.keywords))
        elif isinstance(value, _COMPILED):
            yield self.told(inspect.unwrap(value))
        else:
            yield from self._object(value)

    def _array(self, value: Any) -> str:
        if isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
            return f"key {value.dtype} {self._array(jr.key_data(value))}"
        array = np.asarray(value)
        if array.dtype.hasobject:
            return f"array {array.shape} {self.told(array.tolist())}"
        return f"array {array.dtype} {array.shape} {hashlib.sha256(array.tobytes()).hexdigest()}"

    def _function(self, value: types.FunctionType) -> Iterator[str]:
        source = _source(value)
        yield value.__name__
        # The source of a lambda is its whole line, where another one may stand.
        yield self.told(value.__code__) if source is None or value.__name__ == "<lambda>" else source
        yield from map(self.told, (value.__defaults__, value.__kwdefaults__, value.__closure__))
        yield from self._globals(value.__code__, value.__globals__)

    def _globals(self, code: types.CodeType, known: dict[str, Any]) -> Iterator[str]:
        for name in sorted({*names_in(code)} & known.keys()):
            yield f"{name} = {self.told(known[name])}"

    def _class(self, value: type) -> Iterator[str]:
        source = _source(value)
        yield from (value.__qualname__, *map(self.told, value.__bases__))
        yield source or repr(getattr(value, "__annotations__", {}))
        for name in sorted(vars(value)):
            held = inspect.unwrap(getattr(value, name)) if callable(getattr(value, name, None)) else vars(value)[name]
            if isinstance(held, property):
                yield from (f"{name}: {self.told(part)}" for part in (held.fget, held.fset) if part)
            elif isinstance(held, types.FunctionType):
                if held.__code__.co_filename != "<string>":  # where dataclasses write theirs, which follow from fields
                    yield f"{name}: {self.told(held)}"
            elif isinstance(held, (*_PLAIN, np.ndarray, jax.Array)) and not name.startswith("__"):
                yield f"{name}: {self.told(held)}"

    def _object(self, value: Any) -> Iterator[str]:
        """As pickle would save it."""
        try:
            saved = value.__reduce_ex__(4)
        except Exception:  # whatever a user's object says to being saved
            yield f"unlike all others: {uuid.uuid4()}"
            return
        if isinstance(saved, str):
            yield f"{type(value).__module__}.{saved}"
            return
        for part in saved:
            yield self.told(list(part) if isinstance(part, Iterator) else part)

    def _imported(self, value: Any) -> bool:
        """Whether it is found by its name in an installed module."""
        home = getattr(value, "__module__", None)
        if home is None or home in self._homes or origin(value) == "user":
            return False
        found: Any = sys.modules.get(home)
        for name in value.__qualname__.split("."):
            found = getattr(found, name, None)
        return found is value


_COMPILED = (type(jax.jit(lambda x: x)), type(functools.cache(lambda x: x)))


def _home(value: Any) -> str:
    """The module in which the code of a callable is, if it is the user's."""
    while inner := [getattr(value, name) for name in ("func", "__func__", "__wrapped__") if hasattr(value, name)]:
        value = inner[0]
    named = value if hasattr(value, "__qualname__") else type(value)
    return str(named.__module__) if origin(named) in ("user", "typed") else "__main__"


def _text(module: types.ModuleType) -> str:
    """The digest of a module of the user's, with all that it imports of theirs."""
    if origin(module) != "user":
        return ""
    file = Path(str(module.__file__))
    return f" {hashlib.sha256(file.read_bytes()).hexdigest()} {file_sources(file)[0].digest}"


def _source(value: Any) -> str | None:
    try:
        return inspect.getsource(value)
    except (OSError, TypeError, SyntaxError):  # typed in where nothing keeps it
        return None
