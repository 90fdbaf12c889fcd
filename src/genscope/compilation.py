"""Options for the compiler, where compiling a program takes longer than running it; room for what it compiles.

Compilers differ in the options that they know, and refuse a program for one that they do not. Which they know is asked
when the first program is needed, not before: asking starts JAX, and trials first say how many threads it may have.

Guarantee: the same numbers up to rounding. Programs that run thousands of times measure first: some lose a third.
"""

import contextlib
import ctypes
import functools
import gc
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Generic, ParamSpec, TypeVar

import equinox as eqx
import jax

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

FASTER = {"xla_cpu_use_fusion_emitters": False}
"""Half the time to compile on CPUs; networks of large matrix products lose a tenth to a third of their speed.

JAX 0.11.1 and later have no such choice.
"""

ONCE = FASTER | {"xla_backend_optimization_level": 0}
"""For many small loops that run once: to optimize them takes longer than to run them slowly."""


def known(options: Mapping[str, Any]) -> dict[str, Any]:
    """Those among the options that this process's compiler takes."""
    return {name: value for name, value in options.items() if _is_known(name, value)}


@functools.cache
def _is_known(name: str, value: Any) -> bool:
    try:
        jax.jit(lambda: 0).lower().compile(compiler_options={name: value})
    except jax.errors.JaxRuntimeError:
        return False
    return True


class _JitProgram(Generic[Arguments, Result]):
    """A function that is compiled with those of the options that the compiler knows."""

    def __init__(
        self, compile: Callable[..., Any], function: Callable[Arguments, Result], options: Mapping[str, Any]
    ) -> None:
        self._compile, self._function, self._options = compile, function, options

    @functools.cached_property
    def _compiled(self) -> Any:
        return self._compile(self._function, compiler_options=known(self._options))

    def __call__(self, *arguments: Arguments.args, **options: Arguments.kwargs) -> Result:
        return self._compiled(*arguments, **options)

    def lower(self, *arguments: Any, **options: Any) -> Any:
        """As that of `jax.jit`: traced for these arguments, and ready to be compiled."""
        return self._compiled.lower(*arguments, **options)

    def eval_shape(self, *arguments: Any, **options: Any) -> Any:
        """As that of `jax.jit`: shapes of the result."""
        return self._compiled.eval_shape(*arguments, **options)


def jit(
    function: Callable[Arguments, Result], *, compiler_options: Mapping[str, Any], **settings: Any
) -> _JitProgram[Arguments, Result]:
    """`jax.jit`, with those of the options that the compiler knows."""
    return _JitProgram(functools.partial(jax.jit, **settings), function, compiler_options)


def compiled_faster(function: Callable[Arguments, Result]) -> _JitProgram[Arguments, Result]:
    """`eqx.filter_jit` with those of the options `FASTER` that the compiler knows."""
    return _JitProgram(eqx.filter_jit, function, FASTER)


MAPS, MOST_MAPS = Path("/proc/self/maps"), Path("/proc/sys/vm/max_map_count")
_EVERY = 5.0  # seconds between looks: to count many maps takes a hundredth of one
_looked = 0.0


def make_room(*, now: bool = False) -> bool:
    """Forget every compiled program once they take half of the memory maps that Linux grants a process.

    A program keeps nine maps or more. At the 65,530th (`vm.max_map_count`), after some seven thousand programs, XLA
    crashes or aborts the process, without an exception. Looks every few seconds, or `now`; says whether programs were
    forgotten.
    """
    global _looked
    if not now and time.monotonic() < _looked + _EVERY:
        return False
    _looked = time.monotonic()
    if not MAPS.exists() or not MOST_MAPS.exists():
        return False
    if MAPS.read_bytes().count(b"\n") < int(MOST_MAPS.read_text()) // 2:
        return False
    forget_programs()
    return True


def forget_programs() -> None:
    """Forget every compiled program and give its memory back: the GNU C library would keep three quarters of it."""
    jax.clear_caches()
    gc.collect()
    with contextlib.suppress(AttributeError, OSError, TypeError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)
