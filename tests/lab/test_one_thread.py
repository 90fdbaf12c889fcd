"""The same rows, however a run is started and however many cores it sees."""

import os
import platform
import subprocess
import sys
import threading
from pathlib import Path

import jax
import pytest
from threadpoolctl import threadpool_limits

from genscope.lab import Store, Study
from genscope.lab.execution import protocol
from genscope.lab.execution.compute import CompileClock, Computer
from genscope.lab.execution.one_thread import environment, one_thread, threads
from tests.cli.program import TOYS

ROOT = Path(__file__).parents[2]
WHERE = {"context_length": [40], "preset": ["tuned"], "sample_size": [146]}

SUMMED = """
import sys
from genscope.lab import Store, run, select
from tests.cli.study_file import summed
with Store(sys.argv[1]) as store:
    run(summed, select(summed, seeds=2), store=store)
"""

PYTHON = f"""
import sys
from genscope.lab import Store, run, select
from genscope.studies.edelman2022_and import STUDY as study
with Store(sys.argv[1]) as store:
    run(study, select(study, where={WHERE}, seeds=2), store=store)
"""

NOTEBOOK = """
import sys, warnings
import jax.numpy as jnp
jnp.ones(3) + 1  # JAX starts, with as many threads as it is told
from genscope.lab import Store, run, select
from tests.cli.study_file import summed
with Store(sys.argv[1]) as store, warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    run(summed, select(summed, seeds=1), store=store)
    run(summed, select(summed, seeds=2), store=store)
    print(*[f"{warning.filename}: {warning.message}" for warning in caught])
"""

CLUSTER = f"""
import sys
import distributed
from genscope.lab import Cluster, Store, run, select
from genscope.studies.edelman2022_and import STUDY as study
here = dict(n_workers=1, threads_per_worker=2, processes=False, host="127.0.0.1", dashboard_address="127.0.0.1:0")
with distributed.LocalCluster(**here, protocol="tcp") as local:
    with Cluster(local.scheduler_address) as pool, Store(sys.argv[1]) as store:
        run(study, select(study, where={WHERE}, seeds=2), store=store, pool=pool)
"""

# A child that pins itself and becomes the program: to pin it between fork and exec would fork a process with JAX in it.
PINNED = """
import os, sys
os.sched_setaffinity(0, {int(core) for core in sys.argv[1].split(",")})
os.execv(sys.argv[2], sys.argv[2:])
"""


@pytest.fixture
def stored(tmp_path, monkeypatch):
    """Run a program on some cores, as a user without settings; the rows that it stored."""
    for name in ("XLA_FLAGS", "NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    made = iter(range(100))

    def stored(cores, *command, **settings):
        url = f"sqlite:///{tmp_path}/{next(made)}.db"
        words = [sys.executable, *(url if word == "URL" else word for word in command)]
        done = subprocess.run(
            [sys.executable, "-c", PINNED, ",".join(map(str, cores)), *words],
            env=os.environ | settings,
            cwd=ROOT,
            check=True,
            timeout=300,
            capture_output=True,
            text=True,
        )
        with Store(url, read_only=True) as store:
            [study] = store.counts()
            frame = store.frame(study).sort("seed").drop("seconds", "compile_seconds", "finished", "provenance")
            return frame, list(store.provenances(study).values()), done.stdout

    return stored


EIGHT = dict.fromkeys(("NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "8")
EIGHT["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=true"


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores to see a difference")
def test_rows_do_not_depend_on_the_entry_point_or_on_the_cores(stored):
    """Eight are what XLA and BLAS are told by the variables that they ask before they count cores."""
    every = sorted(os.sched_getaffinity(0))
    run = ("-m", "genscope", "run", f"{TOYS}:summed", "--seeds", "2", "--store", "URL")
    ways = [(every[:1], run, {}), (every, (*run, "--workers", "1"), EIGHT), (every, ("-c", SUMMED, "URL"), EIGHT)]
    found = [stored(cores, *command, **settings) for cores, command, settings in ways]
    for frame, [facts], _ in found:
        assert facts["threads"] == {"xla": 1, "blas": 1}
        assert frame.equals(found[0][0])
    # A process that used JAX before is warned and its rows are marked; that they differ shows what the others avoid.
    frame, [facts], said = stored(every, "-c", NOTEBOOK, "URL", **EIGHT)
    assert facts["threads"]["xla"] == 8
    assert said.startswith("<string>: JAX was used in this process before, and computes on 8 threads")
    assert said.count("JAX was used") == 1
    if (0, 10, 0) < jax.__version_info__ < (0, 11):  # older and newer ones do not share out a sum as long as this
        assert not frame.equals(found[0][0])


LATE = """
from genscope import Study, grid

def trial(key, size):
    import numpy
    import scipy.linalg  # has a BLAS of its own, which counts cores when it is loaded
    from threadpoolctl import threadpool_info
    matrix = numpy.random.default_rng(3).standard_normal((size, size))
    found = max(library["num_threads"] for library in threadpool_info())
    return {"number": float(scipy.linalg.lu(matrix)[2].sum()), "threads": found}

study = Study(name="late", title="Late", source="tests", trial=trial, points=grid(size=[700]), seeds=1)
"""

IMPORTED = """
import sys
sys.path.insert(0, sys.argv[2])
import late
from genscope.lab import Store, run
with Store(sys.argv[1]) as store:
    run(late.study, store=store)
"""


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores to see a difference")
def test_a_library_that_a_trial_loads_has_one_thread(stored, tmp_path):
    (tmp_path / "late.py").write_text(LATE)
    every = sorted(os.sched_getaffinity(0))
    worker = ("-m", "genscope", "run", f"{tmp_path}/late.py:study", "--workers", "1", "--store", "URL")
    found = [stored(every, *way) for way in (worker, ("-c", IMPORTED, "URL", str(tmp_path)))]
    for frame, [facts], _ in found:
        assert frame["threads"].to_list() == [1]
        assert facts["threads"] == {"xla": 1, "blas": 1}
        assert frame.equals(found[0][0])


def test_the_environment_is_as_it_was_after_the_block(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    with one_thread():
        assert os.environ["OMP_NUM_THREADS"] == os.environ["MKL_NUM_THREADS"] == "1"
        monkeypatch.setenv("SET_BY_A_TRIAL", "1")
    assert os.environ["OMP_NUM_THREADS"] == "4"
    assert "MKL_NUM_THREADS" not in os.environ
    assert os.environ["SET_BY_A_TRIAL"] == "1"


def unbound(key, threads):
    """A trial that loads something which brings threads."""
    sys.modules.setdefault("loaded_by_a_trial", sys)
    threadpool_limits(threads)
    return {"number": threads}


def test_a_batch_that_loads_more_threads_says_so_and_the_next_has_one(monkeypatch):
    monkeypatch.setitem(sys.modules, "loaded_by_a_trial", sys)  # removed at the end
    monkeypatch.delitem(sys.modules, "loaded_by_a_trial")
    study = Study(name="unbound", title="Threads", source="tests", trial=unbound, points=({"threads": 2},))
    trials = study.trials({"threads": 2}, [0])
    with one_thread(), CompileClock() as clock:
        computer = Computer(study, clock)
        records = computer(trials)
        assert threads()["blas"] == 1
    assert records[0].provenance["threads"]["blas"] == 2
    assert computer.provenance["threads"]["blas"] == 1
    answer = {"provenance": computer.provenance, "results": [protocol.result(record) for record in records]}
    assert protocol.records(trials, answer)[0].provenance == records[0].provenance


@pytest.mark.slow
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores to see a difference")
def test_rows_are_equal_in_every_way_under_one_two_and_eight_cores(stored):
    """A network trained for hundreds of steps, where a last digit would grow."""
    every = sorted(os.sched_getaffinity(0))
    where = [word for axis, [value] in WHERE.items() for word in ("--where", f"{axis}={value}")]
    run = ("-m", "genscope", "run", "edelman2022-and", *where, "--seeds", "2", "--store", "URL")
    ways = (run, (*run, "--workers", "2"), ("-c", PYTHON, "URL"), ("-c", CLUSTER, "URL"))
    found = [
        stored(cores, *way, **settings)[:2]
        for cores, settings in ((every[:1], {}), (every[:2], {}), (every, EIGHT))
        for way in ways
    ]
    for frame, facts in found:
        assert [each["threads"] for each in facts] == [{"xla": 1, "blas": 1}]
        assert len({each["sources"]["digest"] for each in facts}) == 1
        assert frame.equals(found[0][0])


def test_threads_are_counted_while_others_come_and_go():
    stop = threading.Event()

    def churn():
        while not stop.is_set():
            each = threading.Thread(target=int)
            each.start()
            each.join()

    churning = threading.Thread(target=churn)
    churning.start()
    try:
        with one_thread():
            assert {threads()["xla"] for _ in range(300)} == {1}
    finally:
        stop.set()
        churning.join()


TAKEN = """
import resource
for _ in range(20):
    b"x" * 2**26
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the settings are those of the GNU C library")
def test_a_worker_keeps_the_memory_that_it_has_had():
    def pages(more):
        command = [sys.executable, "-c", TAKEN]
        return int(subprocess.run(command, env=more, capture_output=True, text=True, check=True).stdout)

    plain = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    assert pages(environment(plain)) < pages(plain) / 5
    assert environment({"MALLOC_ARENA_MAX": "4"})["MALLOC_ARENA_MAX"] == "4"
