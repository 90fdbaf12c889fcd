"""Runs that share a store: what one computes, others wait for."""

import threading
import time

from genscope.lab import grid, run, select
from genscope.lab.execution.compute import CompileClock, Computer
from genscope.lab.plans.design import batches
from tests.lab import toys


def test_a_run_waits_for_batches_that_others_hold(make):
    mine, theirs = make(), make(lease_seconds=600.0)
    study = toys.fixed.replace(points=grid(size=[1, 2], kind=["a"]))
    groups = [batch for point in study.points for batch in batches(study.trials(point, range(5)), 4)]
    finished, abandoned = theirs.lease(groups[:1]), theirs.lease(groups[2:3])
    summaries = []
    thread = threading.Thread(target=lambda: summaries.append(run(study, store=mine)))
    thread.start()
    deadline = time.monotonic() + 120
    while len(mine.done(study.name)) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.2)
    assert thread.is_alive()
    assert len(mine.done(study.name)) == 2
    with CompileClock() as clock:
        theirs.add(Computer(study, clock)(finished), leased=finished)
    theirs.release(abandoned)
    thread.join(120)
    assert summaries[0].trials == 10
    assert summaries[0].computed == 6
    assert len(mine.done(study.name)) == 10


def test_leases_are_renewed_while_a_trial_runs(make):
    mine, theirs = make(lease_seconds=1.0), make()
    begun, over = threading.Event(), threading.Event()

    def trial(key, size):
        begun.set()
        return {"x": over.wait(120)}

    study = toys.slow.replace(trial=trial, batch=1)
    thread = threading.Thread(target=lambda: run(study, select(study, where={"size": [1]}, seeds=1), store=mine))
    thread.start()
    [group] = batches(study.trials({"size": 1}, [0]), 1)
    try:
        assert begun.wait(120)
        time.sleep(2.5)
        assert theirs.lease([group]) is None
    finally:
        over.set()
        thread.join()
