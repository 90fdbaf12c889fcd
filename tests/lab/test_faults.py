"""SIGKILL for everything that runs, at random moments: workers, drivers with their workers, a cluster's machines.

No finished trial is lost, none is stored twice or has failed, and in the end the rows are those of an undisturbed run.
Four workers, one driver and two machines are killed in `make test`, beside the three drivers of test_interruption; the
slow tests kill a hundred.
"""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from genscope.lab import Cluster, Processes, Store, run
from tests.lab import hazards, toys
from tests.lab.test_interruption import ROOT, stored, wait_for
from tests.seeds import seed

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals are those of POSIX systems")

STUDY = toys.slow


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    url = f"sqlite:///{tmp_path_factory.mktemp('undisturbed')}/store.db"
    with Store(url) as store:
        assert run(STUDY, store=store).failed == 0
    return stored(url, STUDY)


@pytest.fixture
def moments():
    return random.Random(seed(8))


@pytest.fixture
def urls(tmp_path):
    """New stores, one after the other."""
    return (f"sqlite:///{tmp_path}/store{number}.db" for number in range(1000))


# Workers


def kill_workers(url, moments, times):
    """Run the study on two workers and kill both so many times; a trial may lose three processes and not four."""
    when = sorted(moments.sample(range(1, 70), times))
    killed = 0

    def strike(now):
        nonlocal killed
        if when and now.done >= when[0]:
            when.pop(0)
            time.sleep(moments.choice([0.0, moments.uniform(0.0, 0.05)]))
            for worker in pool._workers:
                while worker._process is None:  # it is about to start
                    time.sleep(0.01)
                worker._process.kill()
                killed += 1

    with Store(url) as store, Processes(2) as pool:
        assert run(STUDY, store=store, pool=pool, progress=strike).failed == 0
    return killed


def test_workers_are_killed(urls, moments, expected):
    url = next(urls)
    assert kill_workers(url, moments, 2) == 4
    assert stored(url, STUDY) == expected


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_fifty_four_workers_are_killed(urls, moments, expected):
    killed = 0
    for url in [next(urls) for _ in range(9)]:
        killed += kill_workers(url, moments, 3)
        assert stored(url, STUDY) == expected
    assert killed == 54


# Drivers


def kill_drivers(number, urls, moments, expected, launch):
    """Start drivers of two workers each and kill them; the next driver goes on with what is stored."""
    url, before = next(urls), set()
    for _ in range(number):
        command = (sys.executable, "-m", "tests.lab.toys", STUDY.name, url, "processes")
        driver = launch(*command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=ROOT)
        assert driver.stdout.readline() == "open\n"
        driver.stdin.write("go\n")
        driver.stdin.flush()
        wait_for(driver, len(before) + moments.randint(0, 30))
        time.sleep(moments.uniform(0.0, 0.1))
        workers = psutil.Process(driver.pid).children()
        driver.kill()
        driver.communicate()
        _, alive = psutil.wait_procs(workers, timeout=60)
        assert not alive  # workers end with their driver
        now = stored(url, STUDY)
        assert before <= now <= expected
        url, before = (next(urls), set()) if now == expected else (url, now)
    with Store(url) as store:
        run(STUDY, store=store)
    assert stored(url, STUDY) == expected


def test_a_driver_is_killed(urls, moments, expected, launch):
    kill_drivers(1, urls, moments, expected, launch)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_thirty_drivers_are_killed(urls, moments, expected, launch):
    kill_drivers(30, urls, moments, expected, launch)


# A cluster


class Machines:
    """A scheduler and its workers, as processes of their own; every worker has a process beside it that computes."""

    def __init__(self, launch, directory: Path):
        self._launch, self._file = launch, directory / "scheduler.json"
        self._quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": ROOT}
        self.start_scheduler()

    def _start(self, program, *options):
        command = (sys.executable, "-m", f"distributed.cli.dask_{program}", "--host", "127.0.0.1")
        return self._launch(*command, "--scheduler-file", self._file, *options, **self._quiet)

    def start_scheduler(self):
        self._file.unlink(missing_ok=True)
        self.scheduler = self._start("scheduler", "--port", "0", "--dashboard-address", "127.0.0.1:0")
        while not self._file.exists() or not self._file.read_text().endswith("}"):  # Dask writes it in steps
            time.sleep(0.05)
        self.address = json.loads(self._file.read_text())["address"]
        self.start_worker()

    def start_worker(self, *options):
        self.worker = self._start("worker", "--nthreads", "1", "--no-dashboard", *options or ("--no-nanny",))

    def kill_computing(self):
        for child in psutil.Process(self.worker.pid).children():
            child.kill()

    def kill_worker(self):
        self.worker.kill()
        self.worker.wait()
        self.start_worker()

    def kill_scheduler(self):
        self.scheduler.kill()
        self.scheduler.wait()
        self.worker.wait(60)  # it ends when it has lost its scheduler
        self.start_scheduler()


@pytest.fixture
def machines(launch, tmp_path):
    return Machines(launch, tmp_path)


def kill_machines(kinds, url, moments, machines):
    """Run the study on a cluster of which parts are killed; a driver that lost its scheduler is started again."""
    kinds, killed = list(kinds), []
    when = sorted(moments.sample(range(1, 80), len(kinds)))

    def strike(now):
        if when and now.done >= when[0]:
            when.pop(0)
            time.sleep(moments.uniform(0.0, 0.05))
            killed.append(kinds.pop(0))
            getattr(machines, f"kill_{killed[-1]}")()

    while True:
        with contextlib.suppress(ConnectionError), Store(url) as store, Cluster(machines.address) as pool:
            assert run(STUDY, store=store, pool=pool, progress=strike).failed == 0
            return killed


def test_machines_are_killed(urls, moments, expected, machines):
    url = next(urls)
    assert len(kill_machines(["computing", "worker"], url, moments, machines)) == 2
    assert stored(url, STUDY) == expected


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_sixteen_machines_are_killed(urls, moments, expected, machines):
    for _ in range(4):
        url = next(urls)
        kinds = moments.sample(["computing", "worker", "worker", "scheduler"], 4)
        assert len(kill_machines(kinds, url, moments, machines)) == 4
        assert stored(url, STUDY) == expected


@pytest.mark.slow
def test_a_trial_that_brings_machines_down_has_failed_after_four(urls, machines):
    machines.worker.kill()
    machines.start_worker("--nanny")  # which starts the worker again
    with Store(next(urls)) as store, Cluster(machines.address) as pool:
        summary = run(hazards.felling, store=store, pool=pool)
        assert (summary.computed, summary.failed) == (2, 1)
        assert "4 different workers" in store.frame(hazards.felling.name)["error"][0]
    machines.worker.send_signal(signal.SIGTERM)
    machines.worker.wait(60)
