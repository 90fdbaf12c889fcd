"""Each study on a shrunken point: what a trial returns, and that its streams are separate."""

import jax.random as jr
import numpy as np
import pytest

from genscope.lab import values
from genscope.lab.plans.figure import Curves, Line
from genscope.studies import (
    ALL,
    edelman2022_and,
    edelman2022_and_long,
    edelman2022_attention,
    edelman2022_curves,
    edelman2022_parity,
)
from genscope.studies._bit_training import FLOOR, PRESETS, draw_and, predict_bits, settings, summary, train
from genscope.studies.edelman2022_and import SETTLED, trial
from genscope.train import Validation

KEY = jr.key(11)
SMALL = {"context_length": 8, "sample_size": 30, "preset": "tuned"}


def test_a_sparse_and_on_few_bits_is_learned_from_enough_samples():
    records = [trial(jr.key(seed), context_length=8, sample_size=120, preset="tuned") for seed in range(4)]
    assert sum(record["success"] for record in records) >= 3
    for record in records:
        assert record["identified"]
        assert not record["diverged"]
        assert record["success"] == (record["validation_accuracy"] == 1)
        assert np.isfinite(record["training_loss"])


def test_shuffled_labels_are_not_learned():
    # the planted fault: the same sizes with labels that no function of the bits gives
    task = draw_and(KEY, context_length=8, sample_size=120)
    seen = []
    train(
        task,
        sample_size=120,
        preset="tuned",
        init_key=KEY,
        data_key=KEY,
        shuffle_labels=True,
        stop=lambda progress, drawn, held_out: seen.append(held_out.perfect(progress.model)) or progress.steps >= 100,
    )
    assert not any(seen)


def every_held_out(run) -> float:
    """Accuracy on the 10,000 held-out examples, drawn and counted apart from `Validation`."""
    right = 0
    for index in range(20):
        batch = run.validation.task.sample(jr.fold_in(run.validation.key, index), 500)
        right += int(np.sum((np.asarray(predict_bits(run.model, batch.x)) > 0) == (np.asarray(batch.y) > 0)))
    return right / 10_000


def test_the_validation_accuracy_is_measured_on_all_examples():
    """Of a run that failed, and of one that succeeded and went on: at its last network, on 10,000 examples."""
    run = train(
        draw_and(KEY, context_length=8, sample_size=16),
        sample_size=16,
        preset="tuned",
        init_key=KEY,
        data_key=KEY,
        stop=lambda progress, drawn, validation: progress.steps >= 30,
    )
    measured = every_held_out(run)
    assert 0.5 < measured < 1
    assert measured != run.validation.screen(run.model)  # what 500 of them say
    for success in (False, True):
        assert summary(run, success=success)["validation_accuracy"] == measured


def test_a_run_that_fits_too_small_a_sample_is_given_up_once_it_has_settled():
    record = trial(KEY, context_length=30, sample_size=12, preset="tuned")
    assert not record["success"]
    assert FLOOR < record["training_loss"] < SETTLED


def test_a_trial_repeats_itself():
    assert trial(KEY, **SMALL) == trial(KEY, **SMALL)


def test_crossed_design_separates_initialisation_and_sample():
    cells = {
        (i, s): edelman2022_and_long.crossed_trial(KEY, **SMALL, initialisation=i, sample=s)
        for i in (0, 1)
        for s in (0, 1)
    }
    losses = {cell: record["training_loss"] for cell, record in cells.items()}
    assert len(set(losses.values())) == 4
    assert cells[0, 0]["rejected_draws"] == cells[1, 0]["rejected_draws"]  # the same data


def test_curves_are_written_down_at_every_evaluation():
    record = edelman2022_curves.trial(KEY, **SMALL)
    assert record["curve_steps"] == list(range(10, record["steps"] + 1, 10))
    assert record["success"] or record["training_loss"] < FLOOR or record["steps"] == settings("tuned").steps
    assert len(record["validation_curve"]) == len(record["training_curve"]) == len(record["curve_steps"])
    assert record["success"] == (max(record["validation_curve"]) == 1)


def test_a_curve_ends_where_a_run_has_fitted_and_generalized():
    record = edelman2022_curves.trial(KEY, context_length=8, sample_size=120, preset="tuned")
    assert record["success"]
    assert record["fitted"]
    before = [record["validation_curve"][:-1], record["training_curve"][:-1]]
    assert min(max(curve) for curve in before) < 1


def test_a_run_generalizes_only_if_no_held_out_example_is_wrong(monkeypatch):
    # the planted fault: the first 500 examples are right, one of the others is not
    monkeypatch.setattr(Validation, "screen", lambda self, model: 1.0)
    monkeypatch.setattr(Validation, "accuracy", lambda self, model: 0.9999)
    record = edelman2022_curves.trial(KEY, **SMALL)
    assert not record["success"]
    assert set(record["validation_curve"]) == {0.9999}


def test_attention_record_is_consistent(monkeypatch):
    monkeypatch.setattr(edelman2022_attention, "SUPPORT", (1, 4, 6))  # within the length the tests above compiled for
    record = edelman2022_attention.trial(KEY, **SMALL)
    assert record["attention_best"].shape == record["attention_mean"].shape == (40, 8)
    assert record["support"].tolist() == [1, 4, 6]
    assert record["best_mass"] == pytest.approx(record["mass_by_head"].max())
    assert record["mean_mass"] == pytest.approx(record["mass_by_head"].mean())
    assert record["on_support"] == (tuple(record["top_positions"]) == edelman2022_attention.SUPPORT)


def test_parity_record_marks_the_transition():
    record = edelman2022_parity.trial(KEY, context_length=4, rate=1e-3, budget=400)
    assert record["success"]
    assert record["accuracy"] == 1
    assert record["last_high"] < record["first_low"] < record["steps"]
    assert len(record["loss_curve"]) == -(-record["steps"] // 5)


def test_the_papers_points_stand_beside_ours():
    """18 of them from T = 100 to 1,100, which our contexts cover; the paper calls the one at 300 about 70."""
    [figure, *_] = edelman2022_and.STUDY.figures
    assert isinstance(figure, Line)
    published = {point.x: point.y for point in figure.published}
    lengths = {point["context_length"] for point in edelman2022_and.STUDY.plan("paper").points}
    assert len(published) == 18
    assert (min(published), max(published)) == (min(lengths), max(lengths)) == (100, 1100)
    assert published[300] == pytest.approx(70, abs=2)


def test_parities_are_drawn_run_by_run():
    figure = edelman2022_parity.STUDY.figures[0]
    assert isinstance(figure, Curves)
    assert not figure.median
    assert "median" not in figure.caption


def test_parity_without_enough_steps_is_censored():
    record = edelman2022_parity.trial(KEY, context_length=4, rate=3e-4, budget=25)
    assert not record["success"]
    assert record["first_low"] is None
    assert values.plain(record)["first_low"] is None  # stored as an observation, not as an error
    assert record["steps"] == 25


@pytest.mark.parametrize(
    ("point", "advice"),
    [
        ({"context_length": 2}, "Choose a smaller support or a longer context"),
        ({"sample_size": 0}, "Give 1 or more"),
        ({"preset": "minGTP"}, "presets are tuned, decayed, minGPT"),
    ],
)
def test_impossible_points_are_refused(point, advice):
    with pytest.raises(ValueError, match=advice):
        trial(KEY, **(SMALL | point))


def test_studies_have_distinct_names_and_known_presets():
    assert len({study.name for study in ALL}) == len(ALL)
    for study in ALL:
        for budget in ("quick", "standard", "paper"):
            for point in study.plan(budget).points:
                assert point.get("preset", "tuned") in PRESETS
