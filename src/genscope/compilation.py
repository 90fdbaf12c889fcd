"""Options for the compiler, where compiling a program takes longer than running it.

Source: None (house convention).
Departures: None.
Guarantee: the same numbers up to rounding. Programs that run thousands of times measure first: some lose a third.
"""

from collections.abc import Callable
from typing import TypeVar

import equinox as eqx

Function = TypeVar("Function", bound=Callable)

FASTER = {"xla_cpu_use_fusion_emitters": False}
"""Half the time to compile on CPUs; networks of large matrix products lose a tenth to a third of their speed."""

ONCE = FASTER | {"xla_backend_optimization_level": 0}
"""For many small loops that run once: to optimise them takes longer than to run them slowly."""


def compiled_faster(function: Function) -> Function:
    """`eqx.filter_jit` with the options `FASTER`."""
    # Equinox passes options that it does not know on to jax.jit, which its types do not say.
    return eqx.filter_jit(function, compiler_options=FASTER)  # pyright: ignore[reportCallIssue]  # see above
