"""What the machine does to a trial is waited out; what a trial does to itself is stored at once."""

import errno
import os
import subprocess
from collections import Counter
from concurrent.futures.process import BrokenProcessPool
from concurrent.futures.thread import BrokenThreadPool

import jax
import numpy as np
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


def raised_by(function):
    try:
        function()
    except Exception as error:
        return error
    return None


def in_a_callback(error):
    def host(_):
        raise error

    @jax.jit
    def program(x):
        return jax.pure_callback(host, jax.ShapeDtypeStruct((), jax.numpy.float32), x)

    return raised_by(lambda: program(jax.numpy.float32(1)).block_until_ready())


class OutOfMemoryError(RuntimeError):
    """PyTorch's is a RuntimeError of this name."""


class BrokenPoolError(BrokenProcessPool):
    """Such as joblib's."""


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
        (ExceptionGroup("two", [MemoryError(), raised_from(OSError(errno.EIO, "disk"))]), True),
        (ExceptionGroup("nested", [ExceptionGroup("one", [MemoryError()])]), True),
        (ExceptionGroup("one of its own", [MemoryError(), ZeroDivisionError()]), False),
        (raised_from(ExceptionGroup("one", [MemoryError()])), True),
        (OSError("1000 requested and 96 written"), True),
        (OSError("1000 requested, as always, and 96 written"), False),
        (OutOfMemoryError("CUDA out of memory"), True),
        (RuntimeError("[enforce fail] . DefaultCPUAllocator: can't allocate memory: you tried 9 bytes"), True),
        (RuntimeError("can't start new thread"), True),
        (RuntimeError("can't start"), False),
        (BrokenPoolError("a process was terminated abruptly"), True),
        (BrokenThreadPool("a thread's initializer failed"), False),
        (TimeoutError(errno.ETIMEDOUT, "Connection timed out"), True),
        (ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"), True),
        (OSError(errno.ENOTCONN, "Transport endpoint is not connected"), True),
        (OSError(errno.EHOSTUNREACH, "No route to host"), True),
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), False),
        (ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"), False),
        (TimeoutError(), False),
        (subprocess.CalledProcessError(-9, "solver"), True),
        (subprocess.CalledProcessError(137, "solver"), True),
        (subprocess.CalledProcessError(-11, "solver"), False),
        (subprocess.CalledProcessError(1, "solver"), False),
        (subprocess.TimeoutExpired("solver", 9), False),
    ],
)
def test_whose_failure_it_is(error, machine):
    assert is_of_the_machine(error) is machine


def test_whose_failure_a_callback_is():
    assert is_of_the_machine(in_a_callback(MemoryError()))
    assert is_of_the_machine(raised_from(in_a_callback(type("_ArrayMemoryError", (MemoryError,), {})("no room"))))
    assert not is_of_the_machine(in_a_callback(ValueError("not a MemoryError: mine")))


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
def test_an_array_that_finds_the_disk_full_met_the_machine():
    assert is_of_the_machine(raised_by(lambda: np.zeros(10**5).tofile("/dev/full")))


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
