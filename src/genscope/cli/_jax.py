"""JAX as the commands want it, loaded quickly; called before anything imports JAX.

Source: None (house design).
Departures: None.
Guarantee: a setting that the user made stays.
"""

import gc
import os


def set_threads() -> None:
    """One thread per computation, so that several run side by side on all cores."""
    for library in ("OMP", "OPENBLAS"):  # their threads would wait for each other's cores
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")
    from genscope.lab import xla

    xla.one_thread_per_trial()


def prepare_jax() -> None:
    """One thread per trial, so that trials run side by side on all cores; compiled programs are kept on disk."""
    gc.disable()  # what is loaded stays: to look through it, now and later, again and again is a sixth of the time
    try:
        set_threads()
        import equinox as equinox  # brings JAX

        from genscope.lab import use_compilation_cache
    finally:
        gc.freeze()
        gc.enable()
    use_compilation_cache()
