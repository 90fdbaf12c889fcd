"""A question from Python: the answer, its frames, its figure, and what a stored answer costs."""

import html

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import polars as pl
import pytest

import genscope as gs
from genscope.questions.answer import interval, needed, recipe
from genscope.questions.prepared import prepare
from genscope.questions.question import Question
from genscope.refusal import Refusal
from genscope.report.words import measured

ASKED = {"budget": "quick", "width": 0.5}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return f"sqlite:///{tmp_path_factory.mktemp('answers')}/answers.db"


@pytest.fixture(scope="module")
def answer(store):
    with gs.Store(store) as opened:
        return gs.learn("x0 & x1", context_length=[4, 8, 16], network="ideal", store=opened, **ASKED)


def test_the_answer_is_a_frame_with_an_interval_for_each_length(answer):
    frame = answer.answers
    assert frame["context_length"].to_list() == [4, 8, 16]
    assert (frame["low"] < frame["sample_size"]).all()
    assert (frame["sample_size"] < frame["high"]).all()
    assert frame["sample_size"][0] < frame["sample_size"][2]
    assert (frame["plateau"] >= 0.8).all()  # or the crossing would not be there
    assert set(answer.laws) == {"ideal"}
    assert {"log", "power", "linear"} == set(answer.laws["ideal"]["laws"])


def test_no_answer_lies_below_the_information_bound(answer):
    bound = answer.theory.filter(pl.col("name") == "information bound")
    assert (answer.answers["high"] >= bound["sample_size"]).all()
    assert bound["explicit"].all()


def test_noise_makes_the_ideal_answer_larger_and_leaves_it_above_the_bound(answer, store):
    noisy = gs.learn("x0 & x1", context_length=8, network="ideal", noise=0.2, store=store, **ASKED)
    [bound] = noisy.theory.filter(pl.col("name") == "information bound")["sample_size"]
    assert bound <= noisy.rows[0]["low"]
    assert answer.rows[1]["high"] < noisy.rows[0]["low"]


def test_the_sentence_says_who_needs_how_much(answer):
    row = answer.rows[-1]
    number, between = measured(row["sample_size"], row["low"], row["high"])
    assert answer.sentence == (
        f"x0 & x1 at T = 16: an ideal learner needs {number} {between} samples; no learner that must find the relevant "
        "bits can do with fewer than 7."
    )
    assert html.escape(answer.sentence) in answer._repr_html_()
    assert "gets all of 10,000 held-out examples right." in answer._repr_html_()
    assert "<table>" in answer._repr_html_()
    assert repr(answer) == answer.sentence


def test_the_same_question_computes_nothing_and_another_length_adds_to_it(answer, store):
    def forbidden(*_, **__):
        raise AssertionError("a stored trial was computed")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("genscope.questions.study.run_trial", forbidden)
        again = gs.learn("x2&x9", context_length=[4, 8, 16], network="ideal", store=store, **ASKED)
    assert again.answers.equals(answer.answers)
    assert again.study.name == answer.study.name


@pytest.mark.parametrize("lengths", [[4, 8, 16], [8]])
def test_the_figure_shows_what_was_measured(answer, store, lengths, tmp_path):
    some = gs.learn("x0&x1", context_length=lengths, network="ideal", store=store, **ASKED)
    figure = some.plot(tmp_path / "figure.svg")
    [axes] = figure.axes
    assert "ideal" in axes.get_legend_handles_labels()[1]
    assert (tmp_path / "figure.svg").read_text().count("<svg") == 1
    shown = figure.get_supylabel() if len(lengths) == 1 else axes.get_ylabel()
    assert shown == ("share of trials that succeed" if len(lengths) == 1 else "samples m at which 80 % succeed")


def test_a_figure_that_cannot_be_written_is_refused(answer, tmp_path):
    for name, words in (("figure.gif", "must end in .svg"), ("missing/figure.svg", "create the directory first")):
        with pytest.raises(Refusal, match=words):
            answer.plot(tmp_path / name)


def test_open_thresholds_are_bounds_in_words():
    row = {"network": "mlp", "sample_size": None, "low": 2000.0, "high": None, "plateau": None, "state": "above"}
    assert needed(row) == "an MLP needs more than 2,000 samples"
    assert interval(row) == ("> 2,000", "open")
    level = {"value": 0.4, "low": 0.3, "high": 0.5}
    assert needed(row | {"state": "plateau", "plateau": level}).startswith("an MLP succeeds in 40 % of runs at most")
    assert needed(row | {"state": "below", "high": 4.0}) == "an MLP needs at most 4 samples"
    assert interval(row | {"state": "below", "high": 7.89}) == ("≤ 7.89", "open")
    assert "this budget does not determine" in needed(row | {"state": "unresolved", "low": 3.0})


def test_a_question_is_asked_with_the_values_that_people_have():
    def task(key, context_length):
        return gs.tasks.SparseAnd.draw(key, context_length=context_length, support_size=2)

    plain = prepare("x0 & x1", context_length=8, noise=0.25, restarts=2)
    expression, lengths = gs.fourier.parse("x2 & x4"), np.array([8])
    typed = {"noise": np.float32(0.25), "restarts": np.int64(2), "bias": "balanced"}
    assert prepare(expression, context_length=lengths, **typed).study.name == plain.study.name
    assert prepare("x0 & x1", context_length=np.int64(8)).selection == prepare("x0 & x1", context_length=[8]).selection
    fixed = gs.tasks.SparseAnd.at([1, 2], context_length=8)
    for own in (task, fixed):
        asked = prepare(own, context_length=8)
        assert asked.question.draw(jr.key(0), 8).target(jnp.ones(8, bool)) == 1
        assert asked.study.name == prepare(own, context_length=8).study.name != plain.study.name
    other = gs.tasks.SparseAnd.at([1, 3], context_length=8)
    assert prepare(other, context_length=8).study.name != prepare(fixed, context_length=8).study.name


def test_recipes_say_which_loss_they_train():
    assert recipe(Question("x0"), "linear").startswith("logistic regression; adam")
    assert recipe(Question("x0", error=0.1), "linear").startswith("linear regression, trained on the squared error;")
    assert recipe(Question("x0", error=0.1), "mlp").startswith("two hidden layers of 128 ReLU units, trained on the sq")


@pytest.mark.parametrize(
    ("asked", "advice"),
    [
        ({"context_length": 8.0}, r"Give, for example, \[64, 256\]"),
        ({"context_length": "8"}, r"Give, for example, \[64, 256\]"),
        ({"context_length": []}, "Give, for example, 64"),
        ({"network": []}, "Name, for example, transformer"),
        ({"function": 3}, "a task, or a function of a key"),
        ({"function": lambda key, length: 3}, "Return a task"),
        ({"bias": "even"}, "a number, or the word balanced. Change it"),
        ({"restarts": 2.0}, "a whole number. Change it"),
        ({"noise": True}, "a number. Change it"),
        ({"fixed_support": 1}, "True or False. Change it"),
    ],
)
def test_values_that_make_no_sense_are_refused(asked, advice):
    with pytest.raises(Refusal, match=advice):
        prepare(asked.pop("function", "x0"), **{"context_length": 8, **asked})


def test_a_network_of_ones_own_is_a_function_and_needs_a_file_for_workers(store):
    def build(key, context_length):
        return eqx.nn.Sequential([eqx.nn.Lambda(jnp.float32), eqx.nn.Linear(context_length, "scalar", key=key)])

    with pytest.raises(ValueError, match=r"Give it as\s+'my_file.py:build'"):
        gs.learn("x0", context_length=3, network=build, budget="quick", store=store, workers=2)
    with pytest.raises(ValueError, match="it needs at least one"):
        gs.learn("x0", context_length=[], store=store)
    with pytest.raises(ValueError, match="budgets are quick"):
        gs.learn("x0", context_length=3, store=store, budget="cheap")
