"""Workers that outlive an edit: what they have loaded is not what the files say any more."""

import os
import sys

import distributed
import pytest

from genscope.lab import Cluster, Processes, Store, run
from genscope.lab.execution import cluster
from genscope.lab.execution.reference import load

STUDY = """
from genscope import Study, grid
from edited_helper import f

def trial(key, size):
    return {"number": f() * size}

study = Study(name="edited", title="Edited", source="tests", trial=trial, points=grid(size=[1, 2]), seeds=1)
"""

LAZY = """
from genscope import Study, grid

def trial(key, size):
    if size == 0:
        return {"number": 0}
    from edited_helper import f
    return {"number": f() * size}

study = Study(name="edited", title="Edited", source="tests", trial=trial, points=grid(size=[1, 2]), seeds=1)
"""

# What a trial leaves behind is no edit: a variable that it carries and a setting of JAX differ after the first.
KEEPING = LAZY.replace(
    "def trial",
    """import jax

def keeping(trial):
    known = {}
    def kept(key, size):
        jax.config.update("jax_default_matmul_precision", "highest")
        return known.setdefault(size, trial(key, size))
    return kept

@keeping
def trial""",
)


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write a file of the user's, as an editor would."""
    monkeypatch.setattr(sys, "path", [*sys.path])

    def write(text, name="edited_helper"):
        (tmp_path / f"{name}.py").write_text(text)
        return tmp_path / f"{name}.py"

    yield write
    forget()


def forget():
    """Have Python load the user's modules again, as in another process."""
    for name in [name for name in sys.modules if name.startswith(("edited_", "study_file_edited_"))]:
        del sys.modules[name]


def numbers(pool, file, url):
    """What a driver that begins now has computed and stored."""
    forget()
    study = load(file).study
    with Store(url) as store:
        assert run(study, store=store, pool=pool).failed == 0
        return store.frame("edited")["number"].to_list()


@pytest.fixture
def urls(tmp_path):
    return (f"sqlite:///{tmp_path}/{number}.db" for number in range(100))


@pytest.mark.parametrize("text", [STUDY, LAZY, KEEPING], ids=["imported", "imported in the trial", "keeping"])
def test_a_process_that_loaded_an_old_text_is_replaced(text, write, urls):
    file = write(text, "edited_study")
    write("def f(): return 1")
    with Processes(1) as pool:
        assert numbers(pool, file, next(urls)) == [1, 2]
        first = pool._workers[0]._process
        assert numbers(pool, file, next(urls)) == [1, 2]
        assert pool._workers[0]._process is first  # nothing has changed
        write("def f(): return 1000")
        assert numbers(pool, file, next(urls)) == [1000, 2000]
        assert pool._workers[0]._process is not first
        write("from edited_constant import f")
        write("def f(): return 7", "edited_constant")
        assert numbers(pool, file, next(urls)) == [7, 14]
        write("def f(): return 8", "edited_constant")
        assert numbers(pool, file, next(urls)) == [8, 16]


def test_a_text_of_the_same_length_and_second_is_another(write, urls):
    file = write(STUDY, "edited_study")
    os.utime(write("def f(): return 1"), ns=(0, 10**18))
    with Processes(1) as pool:
        assert numbers(pool, file, next(urls)) == [1, 2]
        os.utime(write("def f(): return 2"), ns=(0, 10**18 + 10**6))  # the bytecode on disk is for this second
        assert numbers(pool, file, next(urls)) == [2, 4]


def test_a_run_goes_on_with_what_its_workers_loaded_when_it_began(write, urls):
    """An edit during a run costs it nothing."""
    file = write(STUDY, "edited_study")
    write("def f(): return 1")
    study = load(file).study
    with Processes(1) as pool:
        submit = pool.open(study)
        [record] = submit(study.trials({"size": 1}, [0])).result()
        write("def f(): return 1000")
        [after] = submit(study.trials({"size": 1}, [1])).result()
    assert record.values == after.values == {"number": 1}


def test_what_a_trial_loads_has_the_text_that_the_run_began_with(write):
    file = write(LAZY, "edited_study")
    write("def f(): return 1")
    study = load(file).study
    with Processes(1) as pool:
        submit = pool.open(study)
        assert submit(study.trials({"size": 0}, [0])).result()[0].values == {"number": 0}
        write("def f(): return 1000")
        assert submit(study.trials({"size": 0}, [1])).result()[0].values == {"number": 0}
        with pytest.raises(ValueError, match="change nothing while the study runs"):
            submit(study.trials({"size": 1}, [0])).result()
        write("def f(): return 1")
        assert submit(study.trials({"size": 1}, [0])).result()[0].values == {"number": 1}


def test_a_dask_worker_computes_with_the_text_as_it_is(write, urls):
    file = write(STUDY, "edited_study")
    write("def f(): return 1")
    here = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "host": "127.0.0.1"}
    with distributed.LocalCluster(**here, protocol="tcp", dashboard_address="127.0.0.1:0") as local:
        try:
            with Cluster(local.scheduler_address) as pool:  # pyright: ignore[reportAttributeAccessIssue]  # not asynchronous
                assert numbers(pool, file, next(urls)) == [1, 2]
                write("def f(): return 1000")
                assert numbers(pool, file, next(urls)) == [1000, 2000]
        finally:
            for worker in cluster._idle:
                worker.close()
                worker.wait_for_end()
            cluster._idle.clear()
