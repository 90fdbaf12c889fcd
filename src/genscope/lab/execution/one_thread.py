"""What a trial sees of the machine: one thread, however many cores there are and however the run was started.

XLA and BLAS share out their sums among the threads they find, so the last digits of a result, and after a thousand
training steps more than these, depend on the number of threads. Trials that run side by side are processes.

Guarantee: exact; equal processors give equal rows, on the command line, in Python, in worker processes and on a
cluster, whether a library is loaded before a trial or by it. A process that used JAX before genscope could say so keeps
its threads: `threads` tells, and stored rows carry it.
"""

import contextlib
import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from threadpoolctl import threadpool_info, threadpool_limits

# What libraries ask when they are loaded, before they count cores.
_COUNTS: dict[str, str] = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
_EIGEN = "--xla_cpu_multi_thread_eigen"

# A step at a long context takes arrays of many megabytes and frees them. The GNU C library would return them to the
# system each time, which clears every page again: more than a quarter of the time at T = 100,000. A worker keeps them.
_KEPT = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": str(2**32),
    "MALLOC_TRIM_THRESHOLD_": str(2**33),
}


def environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """The environment of a process that is to compute trials; settings of the allocator that are given stay."""
    flags = re.sub(rf"{_EIGEN}=\S*", "", inherited.get("XLA_FLAGS", ""))
    return {
        **_KEPT,
        **inherited,
        "XLA_FLAGS": f"{flags} {_EIGEN}=false".strip(),
        "NPROC": "1",  # what XLA asks for the size of its pools, before it counts cores
        **_COUNTS,
    }


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one thread while the block runs; XLA, once started, keeps what it was started with."""
    with _set(environment(os.environ)):
        import jax

        jax.devices()
    with _set(_COUNTS), threadpool_limits(1):
        yield


def limit_again() -> None:
    """Give one thread to libraries that were loaded inside the block and did not ask the environment."""
    threadpool_limits(1)


@contextlib.contextmanager
def _set(variables: Mapping[str, str]) -> Iterator[None]:
    """Set variables of the environment while the block runs."""
    given = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in given.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def threads() -> dict[str, int | None]:
    """How many threads XLA and BLAS have in this process, counted; None where the system does not show them."""
    blas = [library["num_threads"] for library in threadpool_info()]
    return {"xla": _xla_threads(), "blas": max(blas, default=1)}


def _xla_threads() -> int | None:
    if not sys.platform.startswith("linux"):
        return None
    return sum(_name(thread).startswith("tf_XLAEigen") for thread in Path("/proc/self/task").iterdir())


def _name(thread: Path) -> str:
    try:
        return (thread / "comm").read_text()
    except OSError:  # it has ended meanwhile
        return ""
