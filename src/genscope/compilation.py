"""Options for compilers of programs that are large and run a few times: `jax.jit(..., compiler_options=FASTER)`.

Source: None (house convention).
Departures: None.
Guarantee: the same numbers up to rounding. Programs that run thousands of times measure first: some lose a tenth.
"""

FASTER = {"xla_cpu_use_fusion_emitters": False}
"""Half the time to compile on CPUs, and most programs as fast."""

ONCE = FASTER | {"xla_backend_optimization_level": 0}
"""For many small loops that run once: to optimise them takes longer than to run them slowly."""
