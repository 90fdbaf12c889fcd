"""Which of several runs is trusted."""

import numpy as np
import pytest

from genscope.measure import agreement, consensus


def test_agreement_is_the_share_of_equal_answers():
    answers = np.array([[1, 1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 1]], bool)
    np.testing.assert_allclose(agreement(answers), [[0, 0.75, 0], [0.75, 0, 0.25], [0, 0.25, 0]])


def test_two_that_agree_beat_four_that_guess():
    guesses = np.random.default_rng(0).integers(0, 2, (6, 1000)).astype(bool)
    guesses[4] = guesses[1]
    assert consensus(guesses).argmax() == 1
    guesses[4, :3] ^= True  # they differ on 3 of 1,000
    assert consensus(guesses, [0.9, 0.1, 0.9, 0.9, 0.2, 0.9]).argmax() == 4


@pytest.mark.parametrize(("differ", "chosen"), [(4, 5), (6, 0)])
def test_a_preference_decides_between_those_that_nearly_agree_best(differ, chosen):
    answers = np.zeros((6, 1000), bool)
    answers[2:4] = np.random.default_rng(1).integers(0, 2, (2, 1000)).astype(bool)
    answers[5] = answers[4] = ~answers[0]  # the pair 0, 1 agrees whole, the pair 4, 5 nearly
    answers[5, :differ] ^= True
    assert consensus(answers, [0.5, 0.1, 0, 0, 0.2, 0.9]).argmax() == chosen
