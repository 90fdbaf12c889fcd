"""JAX as the commands want it; called before anything imports JAX.

Source: None (house design).
Departures: None.
Guarantee: a setting that the user made stays.
"""

import os


def set_threads() -> None:
    """One thread per computation, so that several run side by side on all cores."""
    for library in ("OMP", "OPENBLAS"):  # their threads would wait for each other's cores
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")
    from genscope.lab import xla

    xla.one_thread_per_trial()


def prepare_jax() -> None:
    """One thread per trial, so that trials run side by side on all cores; compiled programs are kept on disk."""
    set_threads()
    from genscope.lab import use_compilation_cache

    use_compilation_cache()
