"""Who computes a run when nobody says: this process where there is little to do, otherwise one process per core."""

import pytest

from genscope.cli import _pool
from genscope.lab import Preview, Processes
from genscope.lab.execution.threads import Threads

little = _pool._is_little  # the tests of commands replace it


def plan(*, trials, stored=0, most=None, seconds=None):
    most = most or trials
    return Preview(points=1, trials=trials, stored=stored, exact=most == trials, most=most, seconds=seconds)


@pytest.mark.parametrize(
    ("expected", "pool"),
    [
        (plan(trials=8), Processes),  # nobody knows how long a trial takes
        (plan(trials=8, seconds=1.0), Threads),
        (plan(trials=8, seconds=60.0), Processes),
        (plan(trials=8, stored=8), Threads),  # nothing is left to do
        (plan(trials=8, stored=8, most=32), Processes),  # a search may go on
        (plan(trials=8, most=64, seconds=1.0), Processes),  # as long as it may take
    ],
)
def test_little_work_is_done_here(expected, pool, monkeypatch):
    monkeypatch.setattr(_pool, "_is_little", little)
    for number in (1, 2):  # on one core as well, a trial that crashes costs its process and not the run
        monkeypatch.setattr(_pool, "cores", lambda number=number: number)
        with _pool.fitting(expected) as chosen:
            assert type(chosen) is pool


def test_failures_are_retried_in_processes(monkeypatch):
    monkeypatch.setattr(_pool, "_is_little", little)
    with _pool.fitting(plan(trials=8, stored=8, seconds=60.0), retried=True) as chosen:
        assert type(chosen) is Processes
