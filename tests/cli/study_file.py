"""A user's file with studies that cost nothing; named on the command line as study_file.py:name."""

import math
import os
import time

import jax
import jax.numpy as jnp

from genscope import Study, grid
from genscope.lab import Plan, Scatter
from genscope.lab.plans.study import within
from genscope.lab.statistics.threshold import Search


def trial(key, size, kind, rate=0.5):
    if kind == "broken":
        raise RuntimeError("a trial of the user fell over")
    if kind == "misshapen":
        jax.jit(lambda x: x @ jnp.ones(4))(jnp.ones(3))
    number = math.nan if kind == "odd" else size * rate
    return {"solved": size > 1, "number": number, "diverged": kind == "odd", "curve": [1.0, number]}


def slow_trial(key, size):
    time.sleep(0.05)
    return {"number": size}


def summed_trial(key):
    """A sum that is long enough for XLA to share out among eight threads: its last digits then differ."""
    return {"number": float(jnp.sum(jax.random.normal(key, (800_000,))))}


def deadly_trial(key, size, kind):
    os._exit(7)


def success(key, context_length, sample_size, preset):
    """Succeeds from four times the logarithm of the context on."""
    return {"success": sample_size >= 4 * math.log(context_length) * {"tuned": 1, "minGPT": 2}[preset]}


study = Study(
    name="toy",
    title="A toy",
    source="tests",
    trial=trial,
    points=grid(size=[1, 2], kind=["good", "odd"]),
    seeds=2,
    budgets={"quick": Plan(grid(size=[1], kind=["good"]), seeds=1)},
    figures=(Scatter("size", "number", "kind", title="Numbers of a toy", caption="One mark for each trial."),),
    check=within(size=(1, 100)),
)
broken = study.replace(name="toy-broken", points=grid(size=[1], kind=["broken"]), budgets={})
misshapen = broken.replace(name="toy-misshapen", points=grid(size=[1], kind=["misshapen"]))
slow = study.replace(name="toy-slow", trial=slow_trial, points=grid(size=[1]), seeds=400, budgets={}, batch=1)
summed = study.replace(name="toy-summed", trial=summed_trial, points=({},), budgets={}, figures=(), check=None)
deadly = study.replace(name="toy-deadly", trial=deadly_trial)
search = Study(
    name="toy-search",
    title="A threshold",
    source="tests",
    trial=success,
    trial_cost=0.25,
    points=grid(context_length=[10, 100, 1000, 10_000], preset=["tuned", "minGPT"]),
    search=Search(lowest=2, highest=64, start=8, width=0.3, trials=32, batch=4, round=8),
    budgets={
        "quick": Plan(
            grid(context_length=[1000], preset=["tuned"]),
            search=Search(lowest=2, highest=16, start=8, width=0.3, trials=16, batch=4, round=8),
        )
    },
)
levels = search.replace(
    name="toy-levels",
    points=grid(context_length=[1000], preset=["tuned"]),
    search=Search(
        level=(0.8, 0.5, "0.8 of plateau"), lowest=2, highest=64, start=8, width=0.3, trials=32, batch=4, round=8
    ),
    budgets={},
)
no_study = 3
taken = study.replace(name="edelman2022-and")
