"""How XLA computes on processors; called before JAX starts.

Source: None (house design).
Departures: None.
Guarantee: a setting that the user made stays.
"""

import os

_THREADS = "--xla_cpu_multi_thread_eigen"


def one_thread_per_trial() -> None:
    """Let trials run side by side on all cores, instead of one trial on several."""
    flags = os.environ.get("XLA_FLAGS", "")
    if _THREADS not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} {_THREADS}=false".strip()
