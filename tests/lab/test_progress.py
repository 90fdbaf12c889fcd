"""What a run tells: progress, previews, manifests, provenance."""

import sys
import threading

import jax
import jax.core
import jax.random as jr
import pytest

from genscope.lab import Plan, Record, Study, grid, preview, run, select
from tests.lab import toys


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
    slow = toys.fixed.replace(trial_cost=50.0)  # other points may be dearer than those that are known
    assert preview(store, select(slow), workers=2).seconds == (3 * 10 + 3 * 30 + 20 * 50) / 2
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
