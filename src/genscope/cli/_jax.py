"""JAX as the commands want it, loaded quickly; called before anything imports JAX.

Guarantee: a setting that the user made stays.
"""

import gc
import os


def set_threads() -> None:
    """One thread per computation, so that several run side by side on all cores; what the user has set stays."""
    for library in ("OMP", "OPENBLAS"):  # their threads would wait for each other's cores
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")
    flags = os.environ.get("XLA_FLAGS", "")
    if "--xla_cpu_multi_thread_eigen" not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} --xla_cpu_multi_thread_eigen=false".strip()


def prepare_jax() -> None:
    """JAX with one thread per computation, whose compiled programs are kept on disk."""
    gc.disable()  # what is loaded stays: to look through it, now and later, again and again is a sixth of the time
    try:
        set_threads()
        import equinox as equinox  # brings JAX

        from genscope.lab.execution.cache import use_compilation_cache
    finally:
        gc.freeze()
        gc.enable()
    use_compilation_cache()
