"""The sweep over the proximity parameter: what a trial returns, that levels wilt, and that ours do not."""

import jax.random as jr
import pytest

from genscope.studies.lintilhac2026_proximity import STUDY, trial

POINT = {"context_length": 20, "degree": 4, "sparsity": 5}


def found(tester, proximity):
    return trial(jr.key(0), **POINT, tester=tester, proximity=proximity)


def test_levels_wilt_as_the_proximity_grows_and_ours_are_right():
    coarse, fine, ours = found("coordinates", 0.1), found("coordinates", 0.001), found("ours", 0.1)
    assert coarse["found_degree"] < 4 == fine["found_degree"] == ours["found_degree"]
    assert coarse["found_sparsity"] < fine["found_sparsity"] <= 5 == ours["found_sparsity"]
    assert ours["exact_degree"]
    assert ours["exact_sparsity"]
    assert not coarse["exact_degree"]
    assert fine["degree_queries"] > 10 * ours["degree_queries"]


def test_directions_find_a_level_above_the_degree():
    theirs = found("directions", 0.1)
    assert theirs["found_degree"] > 4
    assert theirs["found_sparsity"] is None


def test_points_that_no_trial_can_have():
    assert STUDY.check is not None
    for wrong in ({"tester": "affine"}, {"proximity": 0.0}, {"context_length": 1}):
        with pytest.raises(ValueError, match=r"one of|lies between"):
            STUDY.check(POINT | {"tester": "ours", "proximity": 0.1} | wrong)
