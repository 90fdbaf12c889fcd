import math
import sys
import threading
import time

import jax
import jax.core
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import polars as pl
import pytest

from genscope.lab import Plan, Record, Store, Study, grid, preview, run, select
from genscope.lab.execution.compute import CompileClock, Computer, trial_key
from genscope.lab.plans.design import batches
from genscope.random import stream
from tests.lab import toys


@pytest.fixture
def make(tmp_path):
    """New stores, each with a name."""
    opened = []

    def make(name="store", **options):
        opened.append(Store(f"sqlite:///{tmp_path}/{name}.db", **options))
        return opened[-1]

    yield make
    for store in opened:
        store.close()


@pytest.fixture
def store(make):
    return make()


def rows(store, study):
    """Identities and values of all trials: what must not depend on how they were computed."""
    frame = store.frame(study.name)
    return frame.drop("seconds", "compile_seconds", "finished", "provenance")


# Keys


def test_a_key_is_folded_from_name_point_and_seed():
    [trial] = toys.slow.trials({"size": 2}, [7])
    expected = jr.fold_in(stream(stream(jr.key(0), "toy-slow"), '{"size":2}'), 7)
    assert (jr.key_data(trial_key(toys.slow, trial)) == jr.key_data(expected)).all()


def test_keys_differ_by_name_point_and_seed_and_not_by_paired_axes_or_revision():
    def bits(study, seed=0, **point):
        [trial] = study.trials({"size": 1, "kind": "a", **point}, [seed])
        return tuple(jr.key_data(trial_key(study, trial)).tolist())

    same = bits(toys.fixed)
    assert bits(toys.fixed, kind="b") == same
    assert bits(toys.fixed.replace(revision=2)) == same
    others = [bits(toys.fixed, seed=1), bits(toys.fixed, size=2), bits(toys.fixed.replace(name="other"))]
    assert len({same, *others}) == 4


# One by one


def test_each_trial_is_a_call_with_its_key(store):
    summary = toys.run_on_threads(2, toys.fixed, store=store)
    assert (summary.trials, summary.computed, summary.failed, summary.stopped) == (30, 30, 0, ())
    frame = store.frame("toy-fixed")
    assert frame.height == 30
    for row in frame.iter_rows(named=True):
        [trial] = toys.fixed.trials({"size": row["size"], "kind": row["kind"]}, [row["seed"]])
        assert trial.id == row["id"]
        assert float(jr.uniform(trial_key(toys.fixed, trial))) == row["number"]
        assert row["asked"] == row["size"]
    paired = frame.group_by("size", "seed").agg(pl.n_unique("number"))
    assert paired["number"].to_list() == [1] * 15


def test_only_what_is_missing_is_run(store):
    run(toys.fixed, select(toys.fixed, where={"size": [1]}, seeds=3), store=store)
    before = store.frame("toy-fixed")
    assert run(toys.fixed, store=store).computed == 30 - 6
    assert run(toys.fixed, store=store).computed == 0
    after = store.frame("toy-fixed")
    assert set(before["finished"]) <= set(after["finished"])


def test_a_trial_is_the_same_trial_in_every_budget(store):
    run(toys.fixed, select(toys.fixed, "quick"), store=store)
    assert run(toys.fixed, store=store).computed == 28


def test_values_do_not_depend_on_threads_order_or_company(make):
    whole, parts, single = make("whole"), make("parts"), make("single")
    toys.run_on_threads(2, toys.fixed, store=whole)
    backwards = toys.fixed.replace(points=toys.fixed.points[::-1], batch=3)
    run(backwards, select(backwards, seeds=2), store=parts)
    run(backwards, store=parts)
    assert rows(parts, toys.fixed).equals(rows(whole, toys.fixed))
    run(toys.fixed, select(toys.fixed, where={"size": [2], "kind": ["b"]}, seed=3), store=single)
    expected = rows(whole, toys.fixed).filter(size=2, kind="b", seed=3)
    assert rows(single, toys.fixed).equals(expected)


def test_a_new_revision_is_run_anew(store):
    run(toys.fixed, select(toys.fixed, "quick"), store=store)
    assert (
        run(toys.fixed.replace(revision=2), select(toys.fixed.replace(revision=2), "quick"), store=store).computed == 2
    )
    assert store.frame("toy-fixed").height == 2
    assert len(store.done("toy-fixed")) == 4


# Stacked


def test_stacked_runs_agree_with_single_ones(make):
    together, alone = make("together"), make("alone")
    run(toys.stacked, store=together)
    run(
        toys.stacked.replace(stacked=False),
        select(toys.stacked.replace(stacked=False), where={"kind": ["one"]}),
        store=alone,
    )
    left = rows(together, toys.stacked).filter(kind="one")
    right = rows(alone, toys.stacked)
    assert left["id"].equals(right["id"])
    assert left["steps_taken"].equals(right["steps_taken"])
    assert left["positive"].dtype == right["positive"].dtype
    np.testing.assert_allclose(left["end"], right["end"], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        np.array(left["path"].to_list()), np.array(right["path"].to_list()), rtol=1e-5, atol=1e-6
    )


def test_a_lane_does_not_depend_on_which_others_are_due(make):
    whole, grown, single = make("whole"), make("grown"), make("single")
    study = toys.stacked.replace(points=grid(steps=[7], kind=["one"]))
    run(study, store=whole)
    for seeds in (1, 3, 5, 6):
        run(study, select(study, seeds=seeds), store=grown)
    assert rows(grown, study).equals(rows(whole, study))
    run(study, select(study, seed=5), store=single)
    assert rows(single, study).equals(rows(whole, study).filter(seed=5))


def test_a_program_is_compiled_once_per_choice_of_words(store):
    traced = []

    def counted(key, **point):
        traced.append(point["kind"])
        return toys.walk(key, **point)

    toys.run_on_threads(2, toys.stacked.replace(trial=counted), store=store)
    assert sorted(traced) == ["one", "zero"]


def test_static_axes_and_flags_are_known_when_compiling(store):
    seen = []

    def trial(key, width, flag, rate):
        seen.append((type(width), type(flag), isinstance(rate, jax.core.Tracer)))
        assert flag in (True, False)
        return {"total": jnp.zeros(width).sum() + rate}

    points = grid(width=[1, 2], flag=[True], rate=[0.5, 1.5])
    study = toys.stacked.replace(trial=trial, points=points, static=frozenset({"width"}), seeds=2)
    summary = run(study, store=store)
    assert summary.failed == 0
    assert seen == [(int, bool, True)] * 2
    assert sorted(store.frame(study.name)["total"]) == [0.5] * 4 + [1.5] * 4


# Time


def test_compile_time_is_told_apart_and_counted_once(store):
    @jax.jit
    def inner(x):
        return jnp.sin(x) * 1.2345

    def trial(key, size):
        time.sleep(0.05)
        return {"y": jax.jit(lambda x: inner(x) + inner(2 * x))(jr.uniform(key))}

    start = time.perf_counter()
    run(
        toys.slow.replace(trial=trial),
        select(toys.slow.replace(trial=trial), where={"size": [1]}, seeds=2),
        store=store,
    )
    elapsed = time.perf_counter() - start
    frame = store.frame("toy-slow")
    assert (frame["compile_seconds"] > 0).all()
    assert (frame["seconds"] >= 0.05).all()
    assert frame["seconds"].sum() + frame["compile_seconds"].sum() < elapsed


def test_the_clock_keeps_threads_apart_and_stops_listening():
    with CompileClock() as clock:
        thread = threading.Thread(target=lambda: jax.jit(lambda x: x * 3.21)(1.0))
        thread.start()
        thread.join()
        assert clock.restart() == 0
        jax.jit(lambda x: x * 4.32)(1.0)
        assert clock.restart() > 0
        assert clock.restart() == 0
    jax.jit(lambda x: x * 5.43)(1.0)
    assert clock.restart() == 0


def test_spans_that_contain_others_count_once():
    clock = CompileClock()
    event = "/jax/core/compile/jaxpr_trace_duration"
    for start, end in ((1.0, 2.0), (2.0, 3.0), (0.5, 4.0), (5.0, 6.0)):
        clock._listen(event, start, end)
    clock._listen("/jax/other", 6.0, 100.0)
    assert clock.restart() == 4.5


# Failure is data


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


@pytest.mark.parametrize("end", [SystemExit, KeyboardInterrupt])
def test_ends_are_not_failures(store, end):
    def trial(key, size):
        raise end

    with pytest.raises(end):
        run(toys.slow.replace(trial=trial), store=store)
    assert store.done("toy-slow") == set()
    assert store.lease(batches(toys.slow.trials({"size": 1}, range(4)), 4)) is not None  # none is held any more


def test_a_store_that_fails_ends_the_run(store, monkeypatch):
    def full(*_, **__):
        raise OSError("the disk is full")

    monkeypatch.setattr(Store, "add", full)
    with pytest.raises(OSError, match="disk is full"):
        run(toys.fixed, store=store)


# Search


def search_by_hand(study, point):
    """The toy search in a plain loop, sharing no code with the runner; sizes and seeds of its trials."""
    counts, used, asked = {}, {}, []
    while (sizes := toys.next_round(study.search, counts)) is not None:
        for size, number in sizes.items():
            for seed in range(used.get(size, 0), used.get(size, 0) + number):
                whole = {**point, "sample_size": size}
                [trial] = study.trials(whole, [seed])
                solved = toys.slow_success(trial_key(study, trial), **whole)["solved"]
                good, trials = counts.get(size, (0, 0))
                counts[size] = good + solved, trials + 1
                asked.append((point["context_length"], size, seed, solved))
            used[size] = used.get(size, 0) + number
    return asked


def test_a_search_runs_the_trials_that_its_rounds_ask_for(make):
    store, again = make("once"), make("parts")
    summary = toys.run_on_threads(2, toys.search, store=store)
    expected = [row for point in toys.search.points for row in search_by_hand(toys.search, point)]
    found = store.frame("toy-search").select("context_length", "sample_size", "seed", "solved").rows()
    assert sorted(found) == sorted(expected)
    assert summary.trials == summary.computed == len(expected)
    assert run(toys.search, store=store).computed == 0
    run(toys.search, select(toys.search, where={"context_length": [8]}), store=again)
    run(toys.search, store=again)
    assert rows(again, toys.search).equals(rows(store, toys.search))


def test_a_fixed_grid_instead_of_a_search(store):
    run(toys.search, select(toys.search, where={"sample_size": [5, 50], "context_length": [4]}, seeds=3), store=store)
    frame = store.frame("toy-search")
    assert frame.select("context_length", "sample_size", "seed").rows() == [
        (4, size, seed) for size in (5, 50) for seed in range(3)
    ]


def test_a_search_that_keeps_failing_says_so(store):
    def trial(key, context_length, sample_size):
        if context_length == 8:
            raise ArithmeticError("no")
        return {"solved": True}

    summary = run(toys.search.replace(trial=trial), store=store)
    assert summary.stopped == ("12 of 12 trials of a round failed at context_length=8: the search stopped there",)
    assert summary.failed == 12
    assert store.frame("toy-search").filter(context_length=3).height >= 40


def test_a_search_without_its_outcome(store):
    study = toys.search.replace(trial=lambda key, **_: {"won": True})
    with pytest.raises(ValueError, match=r"'solved'.*among won.*needs a Boolean"):
        run(study, store=store)


# Sharing


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


# What is told


def test_progress_goes_from_what_is_stored_to_the_end(store):
    run(toys.fixed, select(toys.fixed, where={"size": [1]}), store=store)
    told = []
    caller = threading.get_ident()

    def progress(now):
        assert threading.get_ident() == caller
        told.append(now)

    run(toys.fixed, store=store, progress=progress)
    assert all(now.total == 30 and now.exact and now.study == "toy-fixed" for now in told)
    done = [now.done for now in told]
    assert done == sorted(done)
    assert (done[0], done[-1]) == (10, 30)
    assert told[0].seconds_left is None
    assert told[-1].seconds_left == 0
    assert told[-1].rate > 0
    assert "size=2 kind=a" in {now.doing for now in told}


def test_progress_of_a_search_is_not_exact_before_its_end(store):
    told = []
    run(toys.search, store=store, progress=told.append)
    assert not told[0].exact
    assert told[-1].exact
    assert told[-1].done == told[-1].total == len(store.done("toy-search"))


def test_a_look_ahead(store):
    assert preview(None, select(toys.fixed)).trials == 30
    first = preview(store, select(toys.fixed), workers=2)
    assert (first.points, first.trials, first.stored, first.exact, first.seconds) == (6, 30, 0, True, None)
    assert first.most == 30
    said = toys.fixed.replace(trial_cost=4.0)  # the study's word counts until a trial is stored
    for known in (None, store):
        guess = preview(known, select(said), workers=2)
        assert (guess.seconds, guess.measured) == (30 * 4 / 2, False)
    for size, seconds in ((1, 10.0), (2, 30.0)):
        trials = toys.fixed.trials({"size": size, "kind": "a"}, range(2))
        store.add([Record(trial, {}, seconds=seconds) for trial in trials])
    later = preview(store, select(toys.fixed), workers=2)
    assert later.stored == 4
    # Three missing at 10 s and three at 30 s where the point is known, twenty at the mean of 20 s; on two threads.
    assert later.seconds == preview(store, select(said), workers=2).seconds == (3 * 10 + 3 * 30 + 20 * 20) / 2
    assert later.measured
    assert preview(store, select(toys.fixed, "quick")).stored == 2
    assert not store.manifests()


def test_a_look_ahead_at_a_search(store):
    assert preview(None, select(toys.search)).trials == 24
    first = preview(store, select(toys.search))
    assert (first.points, first.trials, first.most, first.exact) == (2, 24, 80, False)
    run(toys.search, select(toys.search, where={"context_length": [3]}), store=store)
    half = preview(store, select(toys.search))
    assert not half.exact
    assert half.most == len(store.done("toy-search")) + 40
    run(toys.search, store=store)
    last = preview(store, select(toys.search))
    assert last.exact
    assert last.trials == last.stored == last.most == len(store.done("toy-search"))
    assert last.seconds == 0


def test_a_study_without_axes(store):
    study = Study(name="one", title="", source="", trial=lambda key: {"x": jr.uniform(key)}, points=[{}], seeds=3)
    assert run(study, store=store).computed == 3
    assert store.frame("one").columns[:2] == ["seed", "x"]
    assert preview(store, select(study, seeds=5)).seconds > 0


def test_the_manifest_is_there_before_the_first_trial(store):
    class Figure:
        def manifest(self):
            return {"kind": "line"}

    def trial(key, size):
        """What it measures."""
        return {"manifests": len(store.manifests())}

    study = toys.slow.replace(trial=trial, budgets={"quick": Plan(grid(size=[1]), seeds=2, search=None)})
    object.__setattr__(study, "figures", [Figure()])
    run(study, select(study, "quick"), store=store)
    assert store.frame(study.name)["manifests"].to_list() == [1, 1]
    told = store.manifests()["toy-slow"]
    assert told["trial"] == "What it measures."
    assert told["figures"] == [{"kind": "line"}]
    assert told["axes"] == ["size"]
    assert told["budgets"]["quick"] == {"points": [{"size": 1}], "seeds": 2, "search": None}
    assert told["title"] == "Uniform numbers"


def test_provenance_names_commit_versions_and_machine(store):
    run(toys.fixed, select(toys.fixed, "quick"), store=store)
    [facts] = store.provenances("toy-fixed").values()
    assert facts["libraries"]["jax"] == jax.__version__
    assert facts["python"] == ".".join(map(str, sys.version_info[:3]))
    assert facts["device"].startswith("cpu")
    assert facts["study"]["file"] == "toys.py"
    assert facts["threads"] == {"xla": 1, "blas": 1}
    assert set(facts["genscope"] or {"commit", "dirty"}) == {"commit", "dirty"}


def test_threads_are_at_least_one(store):
    with pytest.raises(ValueError, match="Give 1 or more"):
        toys.run_on_threads(0, toys.fixed, store=store)
