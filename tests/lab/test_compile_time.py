"""Time spent on compiling is told apart from that of trials."""

import threading
import time

import jax
import jax.core
import jax.numpy as jnp
import jax.random as jr

from genscope.lab import run, select
from genscope.lab.execution.compute import CompileClock
from tests.lab import toys


def test_compile_time_is_told_apart_and_counted_once(store):
    @jax.jit
    def inner(x):
        return jnp.sin(x) * 1.2345

    def trial(key, size):
        time.sleep(0.05)
        return {"y": jax.jit(lambda x: inner(x) + inner(2 * x))(jr.uniform(key))}

    start = time.perf_counter()
    run(
        toys.slow.replace(trial=trial),
        select(toys.slow.replace(trial=trial), where={"size": [1]}, seeds=2),
        store=store,
    )
    elapsed = time.perf_counter() - start
    frame = store.frame("toy-slow")
    assert (frame["compile_seconds"] > 0).all()
    assert (frame["seconds"] >= 0.05).all()
    assert frame["seconds"].sum() + frame["compile_seconds"].sum() < elapsed


def test_the_clock_keeps_threads_apart_and_stops_listening():
    with CompileClock() as clock:
        thread = threading.Thread(target=lambda: jax.jit(lambda x: x * 3.21)(1.0))
        thread.start()
        thread.join()
        assert clock.restart() == 0
        jax.jit(lambda x: x * 4.32)(1.0)
        assert clock.restart() > 0
        assert clock.restart() == 0
    jax.jit(lambda x: x * 5.43)(1.0)
    assert clock.restart() == 0


def test_spans_that_contain_others_count_once():
    clock = CompileClock()
    event = "/jax/core/compile/jaxpr_trace_duration"
    for start, end in ((1.0, 2.0), (2.0, 3.0), (0.5, 4.0), (5.0, 6.0)):
        clock._listen(event, start, end)
    clock._listen("/jax/other", 6.0, 100.0)
    assert clock.restart() == 4.5
