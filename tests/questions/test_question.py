"""What makes two questions one, how they are found again, and which make no sense."""

import hashlib

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from genscope.lab import select
from genscope.lab.execution.reference import refer, resolve
from genscope.questions.question import Question, ask, parsed
from genscope.questions.study import study
from genscope.questions.user_files import user_file


def test_placements_of_one_expression_are_one_question():
    assert ask("maj(x1, x4, x7)").name == ask("maj(x0,x1,x2)").name
    assert ask("maj(x1,x4,x7)").asked == "maj(x1,x4,x7)"
    assert ask("x5 & ~x2").name != ask("x2 & ~x5").name.replace("-", "_")
    fixed = ask("maj(x1,x4,x7)", fixed_support=True)
    assert fixed.name != ask("maj(x0,x1,x2)", fixed_support=True).name
    assert fixed.draw(jr.key(0), 9).target(jnp.arange(9) % 3 == 1) == 1  # bits 1, 4 and 7
    assert fixed.draw(jr.key(0), 9).target(jnp.arange(9) % 3 == 2) == 0


def test_numbering_keeps_the_function():
    for text, renumbered in (("x9 & ~x2 | x30", "x1&~x0|x2"), ("thr(2; x5, x1, x3)", "thr(2;x2,x0,x1)")):
        question = ask(text)
        assert question.function == renumbered
        before, after = ask(text, fixed_support=True).expression.reduced, question.expression.reduced
        np.testing.assert_array_equal(before[1], after[1])


def test_what_changes_a_trial_changes_the_name_and_nothing_else_does():
    plain = ask("x0&x1")
    changing = {"noise": 0.1, "bias": 0.3, "accuracy": 0.9, "restarts": 2, "rate": 0.01, "steps": 7, "optimizer": "sgd"}
    names = {ask("x0&x1", **{name: value}).name for name, value in changing.items()}
    assert len(names | {plain.name}) == 1 + len(changing)
    assert ask("x0&x1", success=0.5, width=0.3).name == plain.name


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "gets all of 10,000 held-out examples right."),
        ({"accuracy": 0.9, "noise": 0.1}, "gets 90 % of 10,000 held-out examples right, with clean labels; training"),
        ({"noise": 0.1}, "labels are flipped with probability 0.1."),
        ({"restarts": 6}, "right. Of 6 networks trained on each sample, the one that agrees best with another counts."),
        ({"error": 0.02}, "mean squared error on 10,000 held-out examples is at most 0.02."),
    ],
)
def test_what_counts_is_said(settings, said):
    assert said in Question("x0&x1", **settings).criterion
    assert said in study(Question("x0&x1", **settings)).figures[0].caption


def test_where_the_bits_are_is_said():
    assert ask("x0&x1").placing.startswith("Each trial places the relevant bits")
    assert ask("x0&x1", fixed_support=True).placing.startswith("The bits stay")


def test_names_do_not_depend_on_settings_that_nobody_gave():
    digest = hashlib.sha256(b'{"function": "x0&x1"}').hexdigest()[:8]
    assert ask("x0&x1").name == f"learn-x0-x1-{digest}"  # so a setting that is added later changes no name


def test_a_question_is_found_again_by_its_text_and_by_its_name_in_a_module():
    question = ask("thr(2;x0,x1,x2)", noise=0.05, success=0.5, steps=40, fixed_support=True)
    assert question.text == "learn:thr(2;x0,x1,x2)#noise=0.05#fixed_support=True#steps=40#success=0.5"
    assert parsed(question.text) == question
    assert Question.decoded(question.encoded()) == question
    made = study(question, ["mlp"], [8])
    found = resolve(refer(made))
    assert found.name == made.name
    again = study(parsed(question.text))
    where = {"context_length": [8], "network": ["mlp"]}
    assert select(again, "quick", where).id == select(made, "quick", where).id


def test_a_file_of_the_users_is_known_by_its_content(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "mine.py"
    file.write_text("import genscope as gs\ntask = gs.tasks.SparseAnd.at([0, 1], context_length=4)\n")
    question = ask("mine.py:task")
    assert question.draw(jr.key(0), 4).target(jnp.array([True, True, False, False])) == 1
    assert parsed(question.text).name == question.name
    file.write_text("task = 3\n")
    assert ask("mine.py:task").name != question.name
    with pytest.raises(ValueError, match="or ask again"):
        question.draw(jr.key(0), 4)


def test_a_file_of_the_users_is_known_by_what_it_imports_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file, helper = tmp_path / "asked.py", tmp_path / "asked_helper.py"
    plain = "import genscope as gs\nBITS = [0, 1]\n"
    task = "task = gs.tasks.SparseAnd.at(BITS, context_length=4)\n"
    file.write_text(plain + task)
    assert user_file("asked.py:task").digest == hashlib.sha256(file.read_bytes()).hexdigest()  # as it was before
    file.write_text("from asked_helper import BITS\nimport genscope as gs\n" + task)
    helper.write_text("BITS = [0, 1]\n")
    question = ask("asked.py:task")
    x = jnp.array([True, False, False, False])
    assert question.draw(jr.key(0), 4).target(x) == 0
    helper.write_text("BITS = [0]\n")
    assert ask("asked.py:task").name != question.name
    assert ask("asked.py:task").draw(jr.key(0), 4).target(x) == 1
    with pytest.raises(ValueError, match="or a file that it imports"):
        question.draw(jr.key(0), 4)


@pytest.mark.parametrize(
    ("asked", "advice"),
    [
        (lambda: ask("x0 | ~x0"), "Write a function that depends on some bit"),
        (lambda: ask("&".join(f"x{i}" for i in range(13))), "Write a function of fewer bits"),
        (lambda: ask("gone.py:task"), "there is no file gone.py"),
        (lambda: ask("x0", noise=0.5), "below 0.5. Change it"),
        (lambda: ask("x0", bias=0.0), "between 0 and 1. Change it"),
        (lambda: ask("x0", accuracy=0.5), "above 0.5 and at most 1"),
        (lambda: ask("x0", error=0.1), "an expression has labels 0 and 1"),
        (lambda: Question("t", error=0.1, noise=0.1), "not for a target with numbers as labels"),
        (lambda: Question("t", error=0.0), "must be positive"),
        (lambda: ask("x0", success=1.0), "between 0 and 1. Change it"),
        (lambda: ask("x0", restarts=0), "1 to 100 networks"),
        (lambda: ask("x0", width=0.0), "between 0.01 and 10"),
        (lambda: ask("x0&x1&x2").check(2), r"needs 3, placed at random .* Lengthen the context"),
        (lambda: ask("x0&x9", fixed_support=True).check(9), "needs 10. Lengthen the context"),
        (lambda: parsed("learn:x0#colour=red"), "'colour' is not a setting"),
    ],
)
def test_questions_that_make_no_sense_are_refused(asked, advice):
    with pytest.raises(ValueError, match=advice):
        asked()
