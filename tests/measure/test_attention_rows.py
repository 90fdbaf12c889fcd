import itertools

import numpy as np
import pytest

from genscope.measure.attention_rows import match_rows

SUPPORTS = [(0, 3), (1, 4), (2, 5, 6)]


def showing(supports, columns=8):
    """A matrix whose rows, in this order, have their largest entries at the supports."""
    strengths = np.random.default_rng(0).uniform(0, 0.1, (len(supports), columns))
    for row, support in zip(strengths, supports, strict=True):
        row[list(support)] += 0.5
    return strengths


def test_finds_the_rows_in_any_order_and_among_others():
    strengths = showing([(6, 7), SUPPORTS[2], SUPPORTS[0], (1, 2), SUPPORTS[1]])
    assert match_rows(strengths, SUPPORTS) == ((2, 4, 1), 1.0, 1.0)
    assert match_rows(strengths, SUPPORTS, candidates=[0, 1, 2, 3]) == (
        (2, 3, 1),
        pytest.approx(2.5 / 3),
        pytest.approx(2.5 / 3),
    )


def test_a_component_without_a_row_is_not_recalled():
    found = match_rows(showing([SUPPORTS[0], SUPPORTS[1]]), SUPPORTS)
    assert found.rows == (0, 1, None)
    assert (found.precision, found.recall) == (1.0, pytest.approx(2 / 3))
    assert match_rows(showing([SUPPORTS[0]]), []) == ((), 0.0, 0.0)
    assert match_rows(showing([SUPPORTS[0]]), SUPPORTS, candidates=[]) == ((None, None, None), 0.0, 0.0)


def test_no_pairing_shares_more_columns():
    rng = np.random.default_rng(1)
    for _ in range(20):
        strengths = rng.normal(size=(4, 6))
        supports = [tuple(sorted(rng.choice(6, size, replace=False).tolist())) for size in (1, 2, 3)]
        tops = [np.argsort(-row) for row in strengths]
        shared = [[len({*top[: len(s)].tolist()} & {*s}) for top in tops] for s in supports]
        best = max(sum(shared[c][r] for c, r in enumerate(rows)) for rows in itertools.permutations(range(4), 3))
        rows = match_rows(strengths, supports).rows
        assert sum(shared[c][r] for c, r in enumerate(rows) if r is not None) == best


def test_shuffled_columns_are_not_taken_for_components():
    """The planted error: the same matrix with its columns rotated shows other sets."""
    assert match_rows(np.roll(showing(SUPPORTS), 1, axis=1), SUPPORTS).recall < 0.9


@pytest.mark.parametrize(("supports", "candidates"), [([(0, 8)], None), ([()], None), ([(0,)], [3]), ([(-1, 2)], None)])
def test_refuses_what_lies_outside(supports, candidates):
    with pytest.raises(ValueError, match="Correct those out of range"):
        match_rows(showing(SUPPORTS), supports, candidates=candidates)
