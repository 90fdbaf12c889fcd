"""One trial: what is drawn, what counts, and which rules choose."""

from typing import Any

import equinox as eqx
import jax
import jax.random as jr
import numpy as np
import pytest

from genscope.lab import select
from genscope.models import BitPerceptron, outputs
from genscope.questions import trial as trials
from genscope.questions.held_out import Accuracy, Error
from genscope.questions.networks import NAMED, named
from genscope.questions.question import ask
from genscope.questions.study import study
from genscope.questions.trial import check_network, network_of, run_trial
from genscope.questions.user_files import local
from genscope.questions.user_networks import built
from genscope.random import root, stream
from genscope.tasks import SparseExpression, WalshSum
from genscope.train import Validation
from tests import chance

POINT = {"context_length": 6, "sample_size": 60}


def test_a_linear_model_learns_a_majority_and_no_parity():
    learned = run_trial(ask("maj(x0,x1,x2)"), jr.key(0), network="linear", context_length=6, sample_size=200)
    assert learned["success"]
    assert learned["held_out_accuracy"] == 1
    not_learned = run_trial(ask("x0^x1", steps=50), jr.key(0), network="linear", **POINT)
    assert not not_learned["success"]
    assert not_learned["held_out_accuracy"] < 0.9


def test_labels_that_are_noise_teach_nothing(monkeypatch):
    noisy = trials._noisy
    monkeypatch.setattr(trials, "_noisy", lambda task, key, size, noise: noisy(task, key, size, 0.5 if noise else 0.0))
    found = run_trial(ask("x0", noise=0.4, steps=50), jr.key(0), network="linear", context_length=6, sample_size=200)
    assert not found["success"]


def test_training_labels_are_flipped_at_the_rate_that_is_asked_for():
    task = SparseExpression.parse("x0", context_length=3)
    batch = trials._noisy(task, jr.key(1), 100_000, 0.1)
    chance.assert_mean(np.asarray(batch.y) != np.asarray(batch.x)[:, 0], 0.1, planted=0.115)


@pytest.mark.parametrize("size", [3, 6, 12])
def test_the_ideal_learner_succeeds_where_one_placement_fits(size):
    question = ask("x0&~x1")
    outcomes = []
    for seed in range(12):
        key = stream(root(seed), "test")
        outcomes.append(run_trial(question, key, network="ideal", context_length=5, sample_size=size)["success"])
        task = question.draw(stream(key, "support"), 5)
        sample = trials._sample(task, stream(stream(key, "data"), "training"), size, 0.0)
        x, y = np.asarray(sample.x)[:size], np.asarray(sample.y)[:size]
        fitting = [
            (i, j) for i in range(5) for j in range(5) if i != j and ((x[:, i] & ~x[:, j]) == y.astype(bool)).all()
        ]
        assert outcomes[-1] == (len(fitting) == 1)
    assert size < 12 or any(outcomes)
    assert size > 3 or not all(outcomes)


@pytest.mark.parametrize("size", [6, 12, 40])
def test_the_ideal_learner_takes_the_placement_with_the_fewest_wrong_labels(size):
    question = ask("x0&~x1", noise=0.1)
    outcomes = []
    for seed in range(12):
        key = stream(root(seed), "test")
        outcomes.append(run_trial(question, key, network="ideal", context_length=5, sample_size=size)["success"])
        task: Any = question.draw(stream(key, "support"), 5)
        sample = trials._sample(task, stream(stream(key, "data"), "training"), size, question.noise)
        x, y = np.asarray(sample.x)[:size], np.asarray(sample.y)[:size].astype(bool)
        wrong = {(i, j): ((x[:, i] & ~x[:, j]) != y).sum() for i in range(5) for j in range(5) if i != j}
        fewest = [place for place, count in wrong.items() if count == min(wrong.values())]
        assert outcomes[-1] == (fewest == [tuple(np.asarray(task.support).tolist())])
    assert size < 40 or any(outcomes)
    assert size > 6 or not all(outcomes)


def test_an_accuracy_below_one_is_compared_exactly_and_screened_far_from_it():
    task = SparseExpression.parse("x0", context_length=2, probability=0.5)
    model = BitPerceptron(2, hidden=(), key=jr.key(0))
    right = eqx.tree_at(lambda m: (m.w_read, m.b_read), model, (jax.numpy.array([-1.0, 0]), jax.numpy.zeros(())))
    wrong = eqx.tree_at(lambda m: m.w_read, right, jax.numpy.array([0.0, 1.0]))
    found = Validation(task, key=jr.key(3), predict=outputs).accuracy(wrong)

    def reached(model, wanted):
        return Accuracy(task, jr.key(3), outputs, wanted).reached(model)

    assert reached(right, 0.99)
    assert reached(wrong, found)
    assert not reached(wrong, found + 1e-4)
    assert not reached(wrong, 0.9)
    assert Accuracy(task, jr.key(3), outputs, 0.9).measured(wrong) == {"held_out_accuracy": found}


def test_an_error_is_the_mean_square_over_all_held_out_examples():
    task = WalshSum.draw(jr.key(1), context_length=3, degree=2, sparsity=2)
    model = BitPerceptron(3, hidden=(), key=jr.key(0))
    chunks = [task.sample(jr.fold_in(jr.key(3), index), 500) for index in range(20)]
    squares = [(np.asarray(outputs(model, chunk.x)) - np.asarray(chunk.y)) ** 2 for chunk in chunks]
    expected = np.mean(squares)
    held_out = Error(task, jr.key(3), outputs, float(expected) * 1.001)
    assert held_out.measured(model)["held_out_error"] == pytest.approx(expected, rel=1e-5)
    assert held_out.estimate(model) == pytest.approx(np.mean(squares[0]), rel=1e-5)
    assert held_out.reached(model)
    assert not Error(task, jr.key(3), outputs, float(expected) * 0.999).reached(model)
    assert not Error(task, jr.key(3), outputs, float(expected) * 0.1).reached(model)


def test_restarts_choose_by_agreement_and_never_look_at_labels(monkeypatch):
    models = [BitPerceptron(2, hidden=(), key=jr.key(0)) for _ in range(4)]
    weights = ([-1.0, 0.0], [0.0, 1.0], [0.0, -1.0], [0.0, -2.0])
    models = [eqx.tree_at(lambda m: m.w_read, m, jax.numpy.array(w)) for m, w in zip(models, weights, strict=True)]
    task = SparseExpression.parse("x0", context_length=2, probability=0.5)
    chosen = trials._consensus(NAMED["linear"], models, task, jr.key(1))
    assert chosen == 2  # it agrees with the fourth, although the first is right
    question = ask("x0", restarts=3, steps=200)
    assert run_trial(question, jr.key(0), network="linear", context_length=3, sample_size=80)["success"]


def test_programs_are_shared_by_networks_whose_builder_makes_functions():
    file = local(lambda key, length: eqx.nn.MLP(length, "scalar", 4, 1, activation=lambda x: x, key=key))
    question = ask("x0", builders=(file,))
    network = network_of(question, file.label)
    one, two = (jax.tree.structure(network.build(jr.key(seed), 3)) for seed in (0, 1))
    assert one == two
    assert all(eqx.is_array(leaf) for leaf in jax.tree.leaves(network.build(jr.key(0), 3)))


def answers(network, key):
    return network.predict(network.build(key, 6), jax.numpy.zeros((3, 6), bool))


def test_every_named_network_reads_bits_and_answers_with_a_number():
    for name in (*NAMED, "deep-3x2x8"):
        answer = eqx.filter_eval_shape(lambda key, name=name: answers(named(name), key), jr.key(0))
        shape = answer.shape
        assert shape == (3,), name


@pytest.mark.parametrize(
    ("network", "advice"),
    [
        ("cnn", "networks are transformer"),
        ("deep-0x1x8", "Change --layers, --heads or --dim"),
        ("deep-2x3x8", "multiple of the number of heads"),
    ],
)
def test_unknown_networks_are_refused(network, advice):
    with pytest.raises(ValueError, match=advice):
        check_network(ask("x0"), network, 6)


def test_a_network_that_answers_with_a_list_of_one_is_that_of_the_number():
    def network(size):
        cast = eqx.nn.Lambda(jax.numpy.float32)
        return local(lambda key, length: eqx.nn.Sequential([cast, eqx.nn.MLP(length, size, 8, 1, key=key)]))

    x = jr.bernoulli(jr.key(1), 0.5, (5, 6))
    one, number = (built(network(size), jr.key(0), 6).outputs(x) for size in (1, "scalar"))
    assert one.shape == (5,)
    assert (one == number).all()


def test_a_network_with_several_outputs_is_refused():
    cast = eqx.nn.Lambda(jax.numpy.float32)
    file = local(lambda key, length: eqx.nn.Sequential([cast, eqx.nn.Linear(length, 3, key=key)]))
    with pytest.raises(ValueError, match=r"of shape \(\) or \(1,\)"):
        check_network(ask("x0", builders=(file,)), file.label, 6)


def test_answers_under_noise_that_an_earlier_ideal_learner_gave_are_not_taken():
    clean, noisy = (study(ask("x0&x1", noise=noise)).revision for noise in (0.0, 0.1))
    assert (clean, noisy) == (2, 3)


def test_the_ideal_learner_is_refused_where_its_search_is_too_long():
    majority = "maj(x0,x1,x2)^x3"
    for asked, context_length in (("x0&x1&x2&x3&x4&x5", 100), (majority, 300), ("maj(x1,x2,x3,x4,x5,x6,x7,x8)^x9", 9)):
        check_network(ask(asked), "ideal", context_length)
    with pytest.raises(ValueError, match=r"4,202,959,600 placements in about \d\d s.* Shorten the context"):
        check_network(ask(majority, noise=0.1), "ideal", 400)
    with pytest.raises(ValueError, match=r"at most 2\^36 in about 30 s are allowed. Shorten the context"):
        check_network(ask("x0&x1&x2&x3&x4&x5&x6&x7&x8"), "ideal", 200)
    unlike = "^".join(f"x{i}&x{i + 1}&x{i + 2}" for i in range(10))
    with pytest.raises(ValueError, match="Write a function of fewer bits, or leave"):
        check_network(ask(unlike), "ideal", 12)
    assert "ideal" not in [point["network"] for point in study(ask(unlike)).points]
    assert "ideal" in [point["network"] for point in study(ask(majority)).points]


@pytest.mark.parametrize("asked", [{"accuracy": 0.9}, {"restarts": 2}, {"fixed_support": True}])
def test_the_ideal_learner_is_refused_with_what_it_does_not_obey(asked):
    with pytest.raises(ValueError, match="Leave out this network or these options"):
        check_network(ask("x0&x1", **asked), "ideal", 6)
    assert "ideal" not in [point["network"] for point in study(ask("x0&x1", **asked)).points]
    with pytest.raises(ValueError, match="Leave out this network or these options"):
        select(study(ask("x0&x1", **asked), ["ideal"], [6]))
