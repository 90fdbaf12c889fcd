"""JAX as the commands want it; called before anything imports JAX.

Source: None (house design).
Departures: None.
Guarantee: a setting that the user made stays.
"""

import os

_THREADS = "--xla_cpu_multi_thread_eigen"


def prepare_jax() -> None:
    """One thread per trial, so that trials run side by side on all cores; compiled programs are kept on disk."""
    for library in ("OMP", "OPENBLAS"):  # their threads would wait for each other's cores
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")
    flags = os.environ.get("XLA_FLAGS", "")
    if _THREADS not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} {_THREADS}=false".strip()
    from genscope import lab

    lab.use_compilation_cache()
