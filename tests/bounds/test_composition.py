"""A head from covers of its parts: the best split, the bound for matrices, and true covers of small classes."""

import itertools
import math

import numpy as np
import pytest

from genscope.bounds import composed_head, head, matrix_cover, split_cubic
from genscope.measure.covering import smallest_cover

NORMS = {"value_21": 2.0, "query_key_21": 3.0}


def test_the_best_split_of_inverse_squares():
    constants, factors = [3.0, 0.5, 7.0], [2.0 * 1.5 * 4.0, 1.5, 1.0]
    wanted = split_cubic(constants, factors, 0.3).value
    covers = [lambda accuracy, c=c: c / accuracy**2 for c in constants]
    found = composed_head(*covers, epsilon=0.3, value_norm=4.0, output_lipschitz=1.5, normalisation=2.0)
    assert wanted <= found.value <= 1.005 * wanted
    assert list(found.terms) == ["scores", "values", "output"]


def test_matrix_covers_give_the_bound_for_a_head():
    sizes = {"input_norm": 1.0, "points": 30_000, "outputs": 64}

    def values(e):
        return matrix_cover(weight_norm=NORMS["value_21"], epsilon=e, **sizes).value

    def scores(e):
        return matrix_cover(weight_norm=NORMS["query_key_21"], epsilon=e, **sizes).value

    found = composed_head(scores, values, epsilon=0.5, value_norm=1.0)
    known = head(
        **NORMS,
        value_spectral=1.0,
        input_norm=1.0,
        context_norm=1.0,
        epsilon=0.5,
        width=64,
        dimension=64,
        points=30_000,
    )
    assert found.value == pytest.approx(known.value, rel=0.02)


def softmax(scores):
    weights = np.exp(scores - scores.max())
    return weights / weights.sum()


def test_true_covers_of_small_classes():
    """All heads of 4 scores, 4 values and 3 outputs: the least cover of them is no larger than the bound says."""
    chance = np.random.default_rng(6)
    inputs, tokens = 3, 4
    scores, values = chance.normal(size=(4, inputs, tokens)), chance.normal(size=(4, inputs, tokens, 2)) * 0.3
    slopes = np.array([1.0, 0.9, -0.5])  # outputs x -> slope * x_1
    reach = np.linalg.norm(values, axis=-1).max()
    found = np.array(
        [
            [slope * (softmax(s[i]) @ v[i])[0] for i in range(inputs)]
            for s, v, slope in itertools.product(scores, values, slopes)
        ]
    )

    known = {}

    def size(distances, epsilon):
        near = (distances <= epsilon).tobytes()  # all that a cover depends on
        if near not in known:
            known[near] = math.log(len(smallest_cover(distances, epsilon)))
        return known[near]

    apart_scores = np.abs(scores[:, None] - scores[None]).max(axis=(2, 3))
    apart_values = np.linalg.norm(values[:, None] - values[None], axis=-1).max(axis=(2, 3))
    apart_outputs = np.abs(slopes[:, None] - slopes[None]) * reach
    apart = np.abs(found[:, None] - found[None]).max(axis=2)
    for epsilon in (0.05, 0.3, 0.8):
        bound = composed_head(
            lambda e: size(apart_scores, e),
            lambda e: size(apart_values, e),
            lambda e: size(apart_outputs, e),
            epsilon=epsilon,
            value_norm=reach,
        ).value
        covered, centres = np.zeros(len(found), bool), 0
        while not covered.all():  # a greedy cover is at least the least, and still no larger than the bound
            best = np.argmax(((apart <= epsilon) & ~covered).sum(axis=1))
            covered |= apart[best] <= epsilon
            centres += 1
        assert math.log(centres) <= bound + 1e-12
    assert bound < math.log(48)


def test_parts_whose_errors_are_not_seen_cost_nothing():
    none = composed_head(lambda e: 1 / e, lambda e: 1 / e, epsilon=0.5, value_norm=0.0)
    assert none.terms == {"scores": 0.0, "values": 2.0}
    assert composed_head(lambda e: 1 / e, lambda e: 1 / e, epsilon=0.5, value_norm=1.0, output_lipschitz=0.0).value == 0


def test_a_cover_without_elements_is_refused():
    with pytest.raises(ValueError, match="Return that logarithm"):
        composed_head(lambda e: -1.0, lambda e: 1.0, epsilon=0.5, value_norm=1.0)
