"""Two hundred SIGKILLs: drivers, workers, a cluster's scheduler and machines, and the database itself.

On SQLite and PostgreSQL, with a fixed and an adaptive study. Nothing finished is lost or doubled, nothing is stuck, and
the rows in the end are those of an undisturbed run. Kills are counted, by what was killed.
"""

import os
import subprocess
import sys
import time
from collections import Counter

import psutil
import pytest

from genscope.lab import Store, check_store, run
from tests.lab import toys
from tests.lab.test_faults import Machines, moments
from tests.lab.test_interruption import ROOT, finish, stored, undisturbed, wait_for

__all__ = ["moments", "undisturbed"]  # fixtures

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(os.name != "posix", reason="signals are those of POSIX systems"),
]
EACH = 50


class Scene:
    """A driver under way, what computes for it, and what keeps its results."""

    def __init__(self, launch, study, stores, machines, server):
        self._launch, self.study, self._stores = launch, study, stores
        self.machines, self.server = machines, server
        self.url, self.driver = next(stores), None

    def start(self):
        """Let a driver go on with the store."""
        computing = "processes" if self.machines is None else self.machines.address
        command = (sys.executable, "-m", "tests.lab.toys", self.study.name, self.url, computing)
        self.driver = self._launch(*command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=ROOT)
        assert self.driver.stdout.readline() == "open\n"
        self.driver.stdin.write("go\n")
        self.driver.stdin.flush()

    def start_over(self):
        """Take a new store."""
        self.url = next(self._stores)

    def kill(self, kind):
        """Kill one thing."""
        if kind == "driver":
            self.driver.kill()
        elif kind == "worker":
            for worker in psutil.Process(self.driver.pid).children():
                worker.kill()
        elif kind == "database":
            self.server.kill()
            self.server.start()
        else:
            getattr(self.machines, f"kill_{kind}")()


def kill_all(scene, kinds, number, expected, moments):
    """Kill so many times, in the middle of runs; the counts by kind."""
    killed, before = Counter(), set()
    while killed.total() < number:
        scene.start()
        while killed.total() < number:
            wait_for(scene.driver, len(before) + moments.randint(1, 15))
            time.sleep(moments.uniform(0.0, 0.05))
            if scene.driver.poll() is not None:
                break
            kind = moments.choice(kinds)
            try:
                scene.kill(kind)
            except psutil.NoSuchProcess:  # it ended by itself in this moment
                break
            killed[kind] += 1
            if kind in ("driver", "scheduler"):  # a driver ends when it has lost its scheduler
                break
        scene.driver.communicate(timeout=120)
        now = stored(scene.url, scene.study)
        assert before <= now <= expected
        before = now
        if now == expected:
            scene.start_over()
            before = set()
    return killed


def conclude(scene, expected):
    """A last driver is not disturbed and finds everything in order."""
    scene.start()
    finish(scene.driver)
    assert stored(scene.url, scene.study) == expected
    health = check_store(scene.url)
    assert (health.problems, health.leases) == ((), 0)
    with Store(scene.url) as store:
        assert run(scene.study, store=store).computed == 0


@pytest.mark.parametrize("study", [toys.slow, toys.search], ids=["fixed", "adaptive"])
@pytest.mark.parametrize("place", ["sqlite", "postgresql"])
def test_fifty_kills(place, study, launch, tmp_path, request, undisturbed, moments):
    """Fifty in each of four settings; a tenth of them, or more, hit a cluster."""
    expected = undisturbed(study)
    if place == "sqlite":
        server, stores = None, (f"sqlite:///{tmp_path}/store{number}.db" for number in range(1000))
        kinds = ["driver", "worker"]
    else:
        server = request.getfixturevalue("postgresql")
        stores = _databases(server)
        kinds = ["driver", "worker", "database"]
    scene = Scene(launch, study, stores, None, server)
    killed = kill_all(scene, kinds, EACH - 10, expected, moments)
    conclude(scene, expected)
    machines = Machines(launch, tmp_path)
    cluster = Scene(launch, study, stores, machines, server)
    killed += kill_all(cluster, ["driver", "computing", "worker", "scheduler"], 10, expected, moments)
    conclude(cluster, expected)
    print(f"{place}, {study.name}: {dict(killed)}")
    assert killed.total() == EACH


def _databases(server):
    for number in range(1000):
        name = f"kills{os.getpid()}_{time.monotonic_ns()}_{number}"
        server.sql(f"CREATE DATABASE {name}")
        yield server.url(name)
