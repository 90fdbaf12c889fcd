"""A run computes each missing trial with the key of its own, one by one or stacked."""

import jax
import jax.core
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import polars as pl

from genscope.lab import grid, run, select
from genscope.lab.execution.compute import trial_key
from genscope.random import stream
from tests.lab import toys


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
    assert toys.rows(parts, toys.fixed).equals(toys.rows(whole, toys.fixed))
    run(toys.fixed, select(toys.fixed, where={"size": [2], "kind": ["b"]}, seed=3), store=single)
    expected = toys.rows(whole, toys.fixed).filter(size=2, kind="b", seed=3)
    assert toys.rows(single, toys.fixed).equals(expected)


def test_a_new_revision_is_run_anew(store):
    run(toys.fixed, select(toys.fixed, "quick"), store=store)
    assert (
        run(toys.fixed.replace(revision=2), select(toys.fixed.replace(revision=2), "quick"), store=store).computed == 2
    )
    assert store.frame("toy-fixed").height == 2
    assert len(store.done("toy-fixed")) == 4


def test_stacked_runs_agree_with_single_ones(make):
    together, alone = make("together"), make("alone")
    run(toys.stacked, store=together)
    run(
        toys.stacked.replace(stacked=False),
        select(toys.stacked.replace(stacked=False), where={"kind": ["one"]}),
        store=alone,
    )
    left = toys.rows(together, toys.stacked).filter(kind="one")
    right = toys.rows(alone, toys.stacked)
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
    assert toys.rows(grown, study).equals(toys.rows(whole, study))
    run(study, select(study, seed=5), store=single)
    assert toys.rows(single, study).equals(toys.rows(whole, study).filter(seed=5))


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
