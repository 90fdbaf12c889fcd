"""Where a number comes from: code, commit, library versions, settings, device, processor, threads, Python.

Guarantee: exact where stated; a fact that cannot be found out is None, never guessed.
"""

import importlib.metadata
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_info

from genscope.lab.execution.one_thread import threads
from genscope.lab.plans.settings import settings
from genscope.lab.plans.sources import Sources

LIBRARIES = ("genscope", "jax", "jaxlib", "equinox", "optax", "numpy", "scipy")
# What decides the order of sums: programs are compiled, and kernels chosen, for the widest that a processor has.
_VECTORS = ("sse4_2", "avx", "avx2", "fma", "avx512f", "avx512_bf16", "amx_tile", "asimd", "sve", "sve2")


def commit(file: Path) -> dict[str, Any] | None:
    """Commit and dirty flag of the repository that tracks a file; None if none does, or git is not there."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(file.parent), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()

    try:
        git("ls-files", "--error-unmatch", file.name)  # an enclosing repository that ignores the file says nothing
        return {"commit": git("rev-parse", "HEAD"), "dirty": bool(git("status", "--porcelain", "-uno"))}
    except (OSError, subprocess.SubprocessError):
        return None


def provenance(study_file: Path | None = None, sources: Sources | None = None) -> dict[str, Any]:
    """The facts of this process and of what it computes; a study kept outside genscope has a commit of its own."""
    import jax

    package = Path(__file__).parents[2]
    device = jax.devices()[0]
    facts: dict[str, Any] = {
        "genscope": commit(package / "__init__.py"),
        "libraries": {name: _version(name) for name in LIBRARIES},
        "device": f"{device.platform}: {device.device_kind}",
        "machine": processor(),
        "instructions": instructions(),
        "threads": threads(),
        "python": platform.python_version(),
    }
    if study_file is not None and package not in study_file.resolve().parents:
        facts["study"] = {"file": study_file.name, "commit": commit(study_file.resolve())}
    if sources is not None:
        facts["sources"] = sources.facts()
        facts["libraries"] |= _versions_of(sources.packages)
    if changed := settings():
        facts["settings"] = changed
    return facts


def processor() -> str:
    """Machine type and processor model, such as `x86_64 AMD EPYC 7B13`."""
    return f"{platform.machine()} {_cpuinfo('model name') or platform.processor()}".strip()


def instructions() -> str:
    """Vector instructions that programs may use here, and the processors that BLAS takes this one for."""
    flags = (_cpuinfo("flags") or _cpuinfo("Features") or "").split()
    vectors = " ".join(name for name in _VECTORS if name in flags) or "unknown"
    blas = sorted({str(library["architecture"]) for library in threadpool_info() if library.get("architecture")})
    return f"{vectors}; BLAS for {', '.join(blas)}" if blas else vectors


def processor_features() -> str:
    """What programs compiled for this processor may use, as one text; equal texts may share compiled programs."""
    return f"{processor()} {_cpuinfo('flags') or _cpuinfo('Features') or ''}"


def _cpuinfo(field: str) -> str | None:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:  # not Linux
        return None
    lines = (line.partition(":") for line in text.splitlines())
    return next((value.strip() for name, _, value in lines if name.strip() == field), None)


def _versions_of(packages: frozenset[str]) -> dict[str, str]:
    """The versions of installed packages by the names that they are imported by, those of every study left out."""
    others = packages - sys.stdlib_module_names - {*LIBRARIES}
    if not others:
        return {}
    installed = importlib.metadata.packages_distributions()
    return {name: importlib.metadata.version(installed[name][0]) for name in sorted(others) if name in installed}


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
