"""Failure is data: trials that raise are stored, and the study goes on."""

import math
import sys

import pytest

from genscope.lab import Store, run, select
from genscope.lab.plans.design import batches
from tests.lab import toys


def test_failures_are_stored_and_the_study_goes_on(store):
    def trial(key, size):
        if size == 2:
            raise ArithmeticError("lost my \0 way \ud800")
        return {"loss": math.nan if size == 1 else 0.5}

    study = toys.slow.replace(trial=trial)
    summary = run(study, select(study, seeds=2), store=store)
    assert (summary.computed, summary.failed) == (6, 2)
    frame = store.frame(study.name)
    assert frame["status"].to_list() == ["ok", "ok", "failed", "failed", "ok", "ok"]
    assert repr(frame["loss"].to_list()) == "[nan, nan, None, None, 0.5, 0.5]"
    assert "ArithmeticError: lost my \\0 way \\ud800" in frame["error"][2]
    assert "def trial" not in frame["error"][2]
    assert "raise ArithmeticError" in frame["error"][2]
    assert run(study, select(study, seeds=2), store=store).computed == 0

    mended = study.replace(trial=lambda key, size: {"loss": 0.25})
    assert run(mended, select(mended, where={"size": [1, 3]}, seeds=2), store=store, retry_failed=True).computed == 0
    assert run(mended, select(mended, seed=1), store=store, retry_failed=True).computed == 1
    assert run(mended, select(mended, seeds=2), store=store, retry_failed=True).computed == 1
    assert repr(store.frame(study.name)["loss"].to_list()) == "[nan, nan, 0.25, 0.25, 0.5, 0.5]"


def test_a_retry_that_is_interrupted_loses_no_failure(store):
    def trial(key, size):
        raise ending(f"seed lost at {size}")

    study, ending = toys.slow.replace(trial=trial), ArithmeticError
    assert run(study, select(study, seeds=1), store=store).failed == 3
    ending = KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt):
        run(study, select(study, seeds=1), store=store, retry_failed=True)
    assert store.frame(study.name)["status"].to_list() == ["failed"] * 3
    ending = LookupError
    assert run(study, select(study, seeds=1), store=store, retry_failed=True).failed == 3
    errors = store.frame(study.name)["error"]
    assert [error.splitlines()[-1] for error in errors] == [f"LookupError: seed lost at {n}" for n in (1, 2, 3)]


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ([1.0], "Return one, such as"),
        ({"x": 1j}, "Convert it, or leave it out"),
        ({"size": 1.0}, "Rename the value"),
        ({"seconds": 1.0}, "Choose another name"),
    ],
)
@pytest.mark.parametrize("stacked", [False, True])
def test_results_that_cannot_be_stored_fail(store, result, message, stacked):
    study = toys.slow.replace(trial=lambda key, size: result, stacked=stacked)
    assert run(study, select(study, where={"size": [1]}, seeds=2), store=store).failed == 2
    errors = store.frame(study.name)["error"]
    assert all(message in error for error in errors)


def test_a_stacked_batch_fails_as_one(store):
    def trial(key, size):
        raise ArithmeticError("no")

    study = toys.slow.replace(trial=trial, stacked=True)
    assert run(study, select(study, seeds=6), store=store).failed == 18
    assert store.counts() == {"toy-slow": {"ok": 0, "failed": 18}}


@pytest.mark.parametrize("stacked", [False, True])
def test_a_trial_that_exits_has_failed(store, stacked):
    study = toys.slow.replace(trial=lambda key, size: sys.exit(3), stacked=stacked)
    assert run(study, select(study, seeds=1), store=store).failed == 3
    assert all(error.endswith("\nSystemExit: 3\n") for error in store.frame(study.name)["error"])


def test_an_interruption_is_no_failure(store):
    def trial(key, size):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(toys.slow.replace(trial=trial), store=store)
    assert store.done("toy-slow") == set()
    assert store.lease(batches(toys.slow.trials({"size": 1}, range(4)), 4)) is not None  # none is held any more


def test_a_store_that_fails_ends_the_run(store, monkeypatch):
    def full(*_, **__):
        raise OSError("the disk is full")

    monkeypatch.setattr(Store, "add", full)
    with pytest.raises(OSError, match="disk is full"):
        run(toys.fixed, store=store)
