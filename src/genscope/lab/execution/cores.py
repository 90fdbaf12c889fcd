"""The cores that this process may use."""

import os


def core_numbers() -> list[int | None]:
    """Their numbers, which a process may be bound to; None for each where the system does not say."""
    if hasattr(os, "sched_getaffinity"):
        return [*sorted(os.sched_getaffinity(0))]
    return [None for _ in range(os.cpu_count() or 1)]


def cores() -> int:
    """How many there are."""
    return len(core_numbers())
