"""The study of the constructions: every point verifies, and its record says so in the columns the claim reads."""

import jax.random as jr
import numpy as np
import pytest

from genscope.claims.edelman2022_constructions import A3
from genscope.lab import Store, read, run, select
from genscope.studies.edelman2022_constructions import STUDY, draw_function, trial

KEY = jr.key(7)


def test_the_study_decides_its_claim(tmp_path):
    with Store(f"sqlite:///{tmp_path / 'store.db'}") as store:
        assert run(STUDY, select(STUDY, seeds=1), store=store).failed == 0
        found = read(store, select(STUDY, seeds=1))
    assert A3.verdict([found], budget="standard", seconds=0.0).verdict == "holds"
    assert found.frame["verified"].all()
    exhaustive = found.frame["context_length"] <= 20
    assert (found.frame["exhaustive"] == exhaustive).all()
    assert found.frame["beta"].drop_nulls().max() < 1


def test_a_trial_repeats_itself_and_seeds_differ():
    point = {"construction": "any", "context_length": 9, "support_size": 2, "least_ones": 0, "dimension": 0}
    assert trial(KEY, **point) == trial(KEY, **point)
    assert trial(KEY, **point)["norm_w"] != trial(jr.key(8), **point)["norm_w"]


@pytest.mark.parametrize("construction", ["threshold", "bag-threshold", "symmetric", "bag-symmetric", "any", "bag-any"])
def test_functions_have_their_kind(construction):
    function = draw_function(KEY, construction, 20, 4, 3)
    assert function.support_size == 4
    assert (function.least_ones == 3) == ("threshold" in construction)
    assert (function.levels is None) == ("any" in construction)
    if "symmetric" in construction:
        assert np.array_equal(function.levels, [0, 1, 0, 1, 0])


@pytest.mark.parametrize("point", [{"context_length": 0}, {"support_size": 13}, {"dimension": -1}])
def test_impossible_points_are_refused(point):
    with pytest.raises(ValueError, match="Choose such a value"):
        STUDY.check({**STUDY.points[0], **point})
