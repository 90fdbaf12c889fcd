"""Timing shared by the benchmarks, and the record of where a timing was taken."""

import importlib.metadata
import json
import os
import platform
import resource
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def best_seconds(work: Callable[[], Any], *, repeats: int = 7) -> float:
    """Shortest of several runs: the least disturbed one."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def cpu_seconds(*works: Callable[[], Any], repeats: int = 7, warm: bool = True) -> list[float]:
    """Shortest CPU time of each program, all taken in turns: a busy machine disturbs them alike."""
    times: list[list[float]] = [[] for _ in works]
    for turn in range(repeats + warm):
        for work, found in zip(works, times, strict=True):
            start = time.process_time()
            work()
            if turn or not warm:
                found.append(time.process_time() - start)
    return [min(found) for found in times]


def children() -> float:
    """CPU seconds of all programs that this one started and that have ended, those included that they started."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def show(name: str, rows: dict[str, Any]) -> None:
    """Print a benchmark's rows and save them with machine, versions and commit."""
    print(f"\n{name}")
    for label, value in rows.items():
        print(f"  {label:<68} {value:.4g}" if isinstance(value, float) else f"  {label:<68} {value}")
    RESULTS.mkdir(exist_ok=True)
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    versions = {package: _version(package) for package in ("genscope", "jax", "numpy", "polars", "torch")}
    record = {"rows": rows, "commit": commit, "machine": platform.processor() or platform.machine()}
    record |= {"cores": len(os.sched_getaffinity(0)), "python": platform.python_version(), "versions": versions}
    (RESULTS / f"{name.split(':')[0].replace(' ', '_')}.json").write_text(json.dumps(record, indent=2))


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
