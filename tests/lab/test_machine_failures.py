"""What the machine does to a trial is waited out; what a trial does to itself is stored at once."""

import errno
from collections import Counter

import jax
import pytest

from genscope.lab import Store, read, run, select
from genscope.lab.execution import compute, machine_failures
from genscope.lab.execution.machine_failures import is_of_the_machine
from genscope.lab.storage.store import MACHINE_FAILED
from tests.lab import toys


def raised_from(cause):
    error = RuntimeError("the optimiser stopped")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "machine"),
    [
        (MemoryError(), True),
        (OSError(errno.ENOSPC, "No space left on device"), True),
        (OSError(errno.EMFILE, "Too many open files"), True),
        (FileNotFoundError(errno.ENOENT, "data.npz"), False),
        (PermissionError(errno.EACCES, "data.npz"), False),
        (jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 9 bytes"), True),
        (jax.errors.JaxRuntimeError("INVALID_ARGUMENT: shapes differ"), False),
        (ValueError("RESOURCE_EXHAUSTED"), False),
        (raised_from(MemoryError()), True),
        (raised_from(ZeroDivisionError()), False),
    ],
)
def test_whose_failure_it_is(error, machine):
    assert is_of_the_machine(error) is machine


@pytest.fixture
def met():
    """How often each trial was tried."""
    return Counter()


@pytest.fixture
def disturbed(monkeypatch, met):
    """Let every third trial meet a failure so many times."""
    monkeypatch.setattr(compute, "PAUSES", (0.0,) * len(machine_failures.PAUSES))

    def disturbed(study, error, times):
        def trial(key, **point):
            name = f"{jax.random.key_data(key)} {point}"
            met[name] += 1
            if sum(name.encode()) % 3 == 0 and met[name] <= times:
                raise error
            return study.trial(key, **point)

        return study.replace(trial=trial)

    return disturbed


def rows(url, study):
    with Store(url) as store:
        run(study, store=store)
        frame = read(store, select(study)).frame
    return frame.drop("seconds", "compile_seconds", "finished", "provenance").rows(), frame


@pytest.mark.parametrize("name", ["fixed", "search"])
def test_rows_after_failures_of_the_machine_are_those_of_an_undisturbed_run(disturbed, met, tmp_path, name):
    study = getattr(toys, name).replace(batch=1)
    expected, _ = rows(f"sqlite:///{tmp_path}/calm.db", study)
    assert rows(f"sqlite:///{tmp_path}/store.db", disturbed(study, MemoryError("no"), times=3))[0] == expected
    assert max(met.values()) == machine_failures.ATTEMPTS


def test_a_machine_that_stays_bad_is_named_after_four_attempts(disturbed, met, tmp_path):
    study = disturbed(toys.fixed.replace(batch=1), OSError(errno.ENOSPC, "No space left on device"), times=99)
    _, frame = rows(f"sqlite:///{tmp_path}/store.db", study)
    failed = frame.filter(frame["status"] == "failed")
    assert 0 < failed.height < frame.height
    assert all(error.startswith(f"{MACHINE_FAILED}, in each of 4 attempts\n") for error in failed["error"])
    assert max(met.values()) == machine_failures.ATTEMPTS


def test_a_failure_of_the_trial_is_not_tried_again(disturbed, met, tmp_path):
    _, frame = rows(f"sqlite:///{tmp_path}/store.db", disturbed(toys.fixed, ZeroDivisionError("no"), times=99))
    assert "failed" in frame["status"]
    assert {*met.values()} == {1}
