"""What theory says of a question, against counting by hand and by brute force."""

import itertools
import math

import numpy as np
import pytest

from genscope import bounds
from genscope.questions.placements import placements
from genscope.questions.question import ask
from genscope.questions.theory import TARGET, function_facts, limits, statements
from genscope.tasks import expected_rivals


def by_name(*asked, **settings):
    return {each.name: each for each in statements(*asked, **settings)}


@pytest.mark.parametrize("expression", ["x0&x1|x2&x3", "x0^x1&x2", "maj(x0,x1,x2)^x3", "x0&~x1", "x0"])
def test_placements_are_the_functions_that_they_make(expression):
    question = ask(expression)
    support, table = question.expression.reduced
    length = len(support) + 1
    inputs = np.array(list(itertools.product((0, 1), repeat=length)))
    made = {
        table[(inputs[:, list(places)] * 2 ** np.arange(len(places))).sum(axis=1)].tobytes()
        for places in itertools.permutations(range(length), len(support))
    }
    assert placements(question, length) == len(made)


def test_the_numbers_of_the_example_are_those_worked_out_by_hand():
    question = ask("maj(x0,x5,x9)^x20")
    assert placements(question, 64) == math.comb(64, 3) * 61
    said = by_name(question, 64, ["linear"], 200.0)
    assert said["information bound"].sample_size == 21  # log2 of 0.8 times 2,541,504 is 20.96
    assert said["parameters of linear"].sample_size == 65 / TARGET
    assert function_facts(question) == {"degree": 4, "sparsity": 4, "support": 4, "influence": 2.5}
    assert [each for each in said.values() if each.lower] == [said["information bound"]]


def test_the_ideal_learner_is_that_of_the_task_with_the_asked_bias_and_success():
    assert by_name(ask("x0&x1&x2"), 200)["ideal learner"].sample_size == 35  # docs/claims.md has it at T = 200
    found = by_name(ask("maj(x0,x1,x2)^x3", bias=0.3, success=0.5), 30)["ideal learner"]
    rivals = [expected_rivals("maj(x0,x1,x2)^x3", context_length=30, sample_size=m, probability=0.3) for m in range(80)]
    assert found.sample_size == next(m for m, rival in enumerate(rivals) if rival <= 0.5)
    assert by_name(ask("x0&x1", noise=0.1), 200)["ideal learner"].sample_size is None


def test_a_class_that_is_not_counted_has_no_bound():
    many = ask("x0&x1&x2&x3&x4&x5&x6&x7&~x8")
    assert placements(many, 20) is None
    said = {each.name: each for each in limits(many, 600)}
    assert said["information bound"].sample_size is said["ideal learner"].sample_size is None
    assert placements(ask("x0&x1", fixed_support=True), 20) == 1


def test_noise_and_accuracy_change_the_information_bound():
    plain = by_name(ask("x0&x1"), 100)["information bound"]
    noisy = by_name(ask("x0&x1", noise=0.11), 100)["information bound"]
    bits = math.log2(4950)
    entropy = -0.11 * math.log2(0.11) - 0.89 * math.log2(0.89)  # about a half
    assert plain.sample_size == math.ceil(bits + math.log2(0.8))
    assert noisy.sample_size == math.ceil((0.8 * bits - 1) / (1 - entropy))
    rare = by_name(ask("x0&x1&x2", bias=0.02), 100)["information bound"]  # 8 labels in a million are 1
    assert (rare.sample_size, rare.vacuous) == (None, True)
    assert "so biased" in rare.says
    loose = by_name(ask("x0&x1", accuracy=0.9), 100)["information bound"]
    assert (loose.sample_size, loose.vacuous) == (None, True)


def test_sample_sizes_of_upper_bounds_bring_the_error_to_the_target_and_not_before():
    said = by_name(ask("x0&x1&x2"), 50, [], 60.0)
    found = said["covering bound"]
    assert found.explicit
    assert found.vacuous
    import jax.random as jr

    from genscope.constructions import SparseFunction, construct, cover_arguments

    function = SparseFunction.parse("x0&x1&x2", context_length=50)
    cover = bounds.head(**cover_arguments(construct(function, key=jr.key(0)), 50)).value
    tail = math.log(2 / 0.05)
    assert found.sample_size == math.ceil(8 * (cover + tail) / TARGET**2)
    assert not said["PAC-Bayes bound"].explicit
    many = by_name(ask("x0&x1&x2"), 50, [], 1e12)
    assert not many["covering bound"].vacuous
    assert not many["PAC-Bayes bound"].vacuous


def test_a_function_with_more_components_than_bits_has_no_fourier_construction():
    said = by_name(ask("x0&x1&x2"), 4)["PAC-Bayes bound"]
    assert said.sample_size is None
    assert "at most 4 components here" in said.says
