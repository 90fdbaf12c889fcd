"""What a comparison says when standard errors are large, and what a fitted constant is told."""

import numpy as np
import pytest

from genscope.domination import Measured, _assumptions, _dominated
from genscope.estimate import Estimate
from genscope.probe import probe


def measured(norm, sharpness, sem):
    return Measured(3, norm, Estimate(1.0, 0.0), Estimate(sharpness, sem), 0.0)


@pytest.mark.parametrize(
    ("norm", "sharpness", "sem", "answer"),
    [
        (1.0, 5.0, 1.0, True),
        (1.0, 9.0, 1.0, None),  # within two standard errors
        (1.0, 12.0, 1.0, None),
        (1.0, 20.0, 1.0, False),
        (3.0, 5.0, 1.0, False),  # the longer one
    ],
)
def test_domination_survives_two_standard_errors(norm, sharpness, sem, answer):
    assert _dominated(measured(norm, sharpness, sem), measured(2.0, 10.0, 1.0)) is answer


def test_a_fitted_constant_is_held_against_the_prior():
    found = probe(lambda x: x[0], 2)
    texts = _assumptions(found, given=False, labels=np.array([0.0, 2.0]))
    assert any("fitted to losses on the data: near weights of 0 the theorem asks for at least 2" in t for t in texts)
