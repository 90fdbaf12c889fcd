"""Worker processes: a pretended one for how they end, real ones for what they compute."""

import os
import sys
import threading
import time
from concurrent.futures import CancelledError
from pathlib import Path

import pytest

from genscope.lab import Processes, Store, run, select
from genscope.lab.execution import processes, protocol
from genscope.lab.execution.processes import Worker
from genscope.lab.plans.design import batches
from tests.lab import hazards, toys

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals are those of POSIX systems")


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/store.db"


# Pretended


@pytest.fixture
def pretended(tmp_path, monkeypatch):
    """A worker that starts at once, and how often it was asked for each kind of trial."""
    script = Path(__file__).with_name("pretended_worker.py")
    monkeypatch.setattr(processes, "COMMAND", (sys.executable, str(script), str(tmp_path)))
    worker = Worker()
    yield worker, lambda kind: (tmp_path / kind).stat().st_size
    worker.close()
    worker.wait_for_end()


def order(*kinds, **changes):
    return protocol.heading(hazards.study) | {"trials": [[{"kind": kind}, 0] for kind in kinds]} | changes


def told(answer):
    """For each trial whether it worked."""
    return [result["error"] is None for result in answer["results"]]


def test_a_trial_whose_process_dies_is_tried_four_times_and_the_others_go_on(pretended):
    worker, asked = pretended
    answer = worker.compute(order("good", "exits", "fine"), None)
    assert told(answer) == [True, False, True]
    assert [asked(kind) for kind in ("good", "exits", "fine")] == [1, 4, 1]
    assert answer["results"][1]["error"] == "the trial's process ended with status 7, in each of 4 attempts\n"
    assert answer["provenance"] == {"python": "3"}


def test_a_process_that_is_slow_to_end_has_its_own_status(pretended):
    worker, _ = pretended
    [result] = worker.compute(order("exits slowly"), None)["results"]
    assert result["error"] == "the trial's process ended with status 7, in each of 4 attempts\n"


def test_a_process_that_was_killed_by_accident_costs_nothing(pretended):
    worker, asked = pretended
    assert told(worker.compute(order("exits twice", "good"), None)) == [True, True]
    assert asked("exits twice") == 3
    assert "SIGKILL (as happens when memory runs out)" in worker.compute(order("killed"), None)["results"][0]["error"]


def test_a_process_whose_code_has_changed_is_replaced_and_costs_nothing(pretended):
    worker, asked = pretended
    assert told(worker.compute(order("good", "edited twice", "fine"), None)) == [True] * 3
    assert [asked(kind) for kind in ("good", "edited twice", "fine")] == [1, 3, 1]
    refused = worker.compute(order("good", "edited"), None)["refused"]
    assert "'hazards', whose code (helper.py) changed while it was loaded, in each of 4 attempts" in refused
    assert told(worker.compute(order("good"), None)) == [True]


def test_a_trial_that_hangs_is_ended_once(pretended):
    worker, asked = pretended
    start = time.monotonic()
    answer = worker.compute(order("good", "hangs", "fine"), 1.5)
    assert told(answer) == [True, False, True]
    assert asked("hangs") == 1
    assert answer["results"][1]["error"] == "the trial took longer than 1.5 s, its limit, and its process was ended\n"
    assert 1.5 <= answer["results"][1]["seconds"] < time.monotonic() - start


def test_trials_that_are_computed_together_fail_together(pretended):
    worker, _ = pretended
    start = time.monotonic()
    answer = worker.compute(order("good", "hangs", "fine", stacked=True, lanes=4), 0.3)
    assert told(answer) == [False] * 3
    assert time.monotonic() - start >= 4 * 0.3  # as much time as four lanes one by one
    assert told(worker.compute(order("good", "fine", stacked=True), 60.0)) == [True] * 2


def test_a_worker_that_cannot_begin_says_so(pretended):
    worker, _ = pretended
    assert worker.compute(order("good", name="absent"), None) == {
        "refused": "A worker process ended with status 3 before it could begin. Look at what it said above."
    }


def test_a_closed_worker_is_not_started_again(pretended):
    worker, _ = pretended
    ended = []

    def compute():
        try:
            worker.compute(order("hangs"), None)
        except CancelledError as error:
            ended.append(error)

    thread = threading.Thread(target=compute)
    thread.start()
    while worker._process is None:
        time.sleep(0.01)
    process = worker._process
    worker.close()
    thread.join(60)
    assert len(ended) == 1
    assert process.returncode is not None


# Real


@pytest.fixture(scope="module")
def pool():
    with Processes(2) as pool:
        yield pool


def rows(store, study):
    return store.frame(study.name).drop("seconds", "compile_seconds", "finished", "provenance")


@pytest.mark.parametrize("study", [toys.fixed, toys.stacked], ids=lambda study: study.name)
def test_processes_compute_what_threads_compute(study, pool, tmp_path):
    with Store(f"sqlite:///{tmp_path}/here.db") as here, Store(f"sqlite:///{tmp_path}/there.db") as there:
        run(study, store=here)
        summary = run(study, store=there, pool=pool)
        assert summary.failed == 0
        assert rows(there, study).equals(rows(here, study))
        if study.stacked:  # compilation is paid once by each worker for each of the two words
            compiled = there.frame(study.name).filter(compile_seconds=0)["id"]
            groups = [group for point in study.points for group in batches(study.trials(point, range(6)), 4)]
            assert sum(group[0].id not in compiled for group in groups) <= 2 * 2
        assert run(study, store=there, pool=pool).computed == 0


def test_batches_are_spread_over_devices_and_rows_stay_equal(tmp_path, monkeypatch):
    def computed(study, devices, workers):
        monkeypatch.setenv("XLA_FLAGS", f"--xla_force_host_platform_device_count={devices}")
        with Store(f"sqlite:///{tmp_path}/{devices}.db") as store, Processes(workers) as pool:
            assert run(study, store=store, pool=pool).failed == 0
            return rows(store, study)

    for study in (toys.placed, toys.stacked):
        one, three = computed(study, 1, 1), computed(study, 3, 3)
        if study is toys.placed:
            assert {*one["device"]} == {0}
            assert {*three["device"]} == {0, 1, 2}
            one, three = one.drop("device"), three.drop("device")
        assert three.equals(one)


def test_what_goes_wrong_is_stored_and_the_study_goes_on(url):
    study = hazards.study
    with Store(url) as store, Processes(1, time_limit=20.0) as pool:
        summary = run(
            study, select(study, where={"kind": ["raises", "good", "fills", "diverges"]}), store=store, pool=pool
        )
        assert (summary.computed, summary.failed) == (8, 4)
        frame = store.frame(study.name)
        assert frame["status"].to_list() == ["ok"] * 2 + ["failed"] * 2 + ["ok"] * 2 + ["failed"] * 2
        assert "MemoryError" in frame["error"][2]
        assert "RuntimeError: a trial fell over" in frame["error"][6]
        assert repr(frame["number"].to_list()) == "[nan, nan, None, None, 0.5, 0.5, None, None]"
        assert (
            run(study, select(study, where={"kind": ["raises"]}), store=store, pool=pool, retry_failed=True).computed
            == 2
        )


# Requests that make no sense


def test_a_pool_has_workers_and_time():
    with pytest.raises(ValueError, match="Give 1 or more"):
        Processes(0)
    for seconds in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="must be positive and finite"):
            Processes(1, time_limit=seconds)


def test_a_pool_inside_a_worker_is_refused(monkeypatch):
    monkeypatch.setenv("GENSCOPE_WORKER", "1")
    with pytest.raises(ValueError, match="if __name__ == '__main__'"):
        Processes(1)


def test_either_workers_or_a_pool(url, pool):
    with Store(url) as store, pytest.raises(ValueError, match="Leave the workers out"):
        run(toys.fixed, store=store, workers=1, pool=pool)


def test_a_study_that_workers_cannot_find_is_refused_before_anything_is_stored(url, pool):
    with Store(url) as store:
        with pytest.raises(ValueError, match="Define it at the top level of a Python file"):
            run(toys.fixed.replace(name="here"), store=store, pool=pool)
        assert store.manifests() == {}
