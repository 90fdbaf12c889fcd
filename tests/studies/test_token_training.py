"""The programs of a run are compiled once in a process, whichever worker comes first."""

import dataclasses
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import jax.numpy as jnp
import jax.random as jr
import pytest

from genscope.studies._token_protocols import CODE
from genscope.studies._token_training import Shape, begin_compiling, prepare, task_keys

BEGIN = partial(
    prepare,
    task_keys(jr.key(0), 2),
    jr.key(1),
    jr.key(2),
    jnp.int32(2),
    jnp.int32(3),
    shape=Shape(3, 5, 1, True),
    architecture="transformer",
    protocol=dataclasses.replace(CODE, test_size=10),
    link="linear",
    simple=False,
)


def test_workers_wait_for_the_first_that_compiles():
    """Training is compiled on empty arrays of the right shapes, once."""
    seen, compiled = [], []

    def programs(empty):
        seen.append((empty.model.w_in.shape, empty.task.encoding.shape, empty.test.x.shape))
        return tuple(partial(compiled.append, name) for name in ("steps", "check"))

    with ThreadPoolExecutor(2) as workers:
        list(workers.map(lambda _: begin_compiling("once", BEGIN, programs), range(4)))
    prepared = BEGIN()
    assert seen == [(prepared.model.w_in.shape, prepared.task.encoding.shape, prepared.test.x.shape)]
    assert sorted(compiled) == ["check", "steps"]


def test_a_compilation_that_fails_is_tried_again():
    def fail():
        raise RuntimeError("out of memory")

    tried = []
    with pytest.raises(RuntimeError, match="out of memory"):
        begin_compiling("again", BEGIN, lambda empty: (fail,))
    begin_compiling("again", BEGIN, lambda empty: (lambda: tried.append(empty),))
    assert len(tried) == 1
