"""A study whose trials go wrong in every way."""

import os
import resource
import signal
import time

import numpy as np

from genscope.lab import Study, grid


def trial(key, kind):
    """What it returns or how it ends follows from its kind."""
    print("a trial may print")
    if kind == "hangs":
        time.sleep(600)
    if kind == "raises":
        raise RuntimeError("a trial fell over")
    if kind == "fills":
        resource.setrlimit(resource.RLIMIT_AS, (2**35, 2**35))
        return {"number": np.ones(2**36).sum()}
    if kind == "fells":
        os.kill(os.getppid(), signal.SIGKILL)  # what the system does to a machine without memory
        time.sleep(600)
    return {"number": float("nan") if kind == "diverges" else 0.5, "exact": 2**53 + 1}


study = Study(
    name="hazards",
    title="Trials that go wrong",
    source="tests",
    trial=trial,
    points=grid(kind=["good", "diverges", "raises", "fills", "hangs"]),
    seeds=2,
    batch=2,
)
felling = study.replace(name="hazards-felling", points=grid(kind=["good", "fells"]), seeds=1, batch=1)
