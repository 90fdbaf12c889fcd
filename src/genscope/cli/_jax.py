"""JAX and NumPy as the commands want them: `set_threads` before anything imports NumPy, `prepare_jax` before JAX.

Guarantee: a setting that the user made stays.
"""

import gc
import os


def set_threads() -> None:
    """One thread per computation, so that several run side by side on all cores.

    Small products of matrices, of which the commands compute many, take twenty times as long on two threads.
    """
    for library in ("OMP", "OPENBLAS"):  # their threads would wait for each other's cores
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")
    flags = os.environ.get("XLA_FLAGS", "")
    if "--xla_cpu_multi_thread_eigen" not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} --xla_cpu_multi_thread_eigen=false".strip()


def prepare_jax() -> None:
    """JAX, whose compiled programs are kept on disk."""
    gc.disable()  # what is loaded stays: to look through it, now and later, again and again is a sixth of the time
    try:
        import equinox as equinox  # brings JAX

        from genscope.lab.execution.cache import use_compilation_cache
    finally:
        gc.freeze()
        gc.enable()
    use_compilation_cache()
