"""Bounds for tilings: the table of the specification from built weights, and what points may be."""

import tomllib
from pathlib import Path

import jax.random as jr
import pytest

from genscope.studies import lintilhac2026_tilings
from genscope.studies.lintilhac2026_tilings import STUDY, trial

GOLDEN = tomllib.loads((Path(__file__).parents[1] / "golden" / "lintilhac2026_bounds.toml").read_text())["tiling"]


@pytest.mark.parametrize("golden", [GOLDEN[1], GOLDEN[5]], ids=["T=20", "T=64"])
def test_bounds_from_built_weights(golden):
    """The paper's traces were sampled there: 3 % in the trace is 1 % in the bound; the tuned search is its own."""
    point = {
        "context_length": golden["context_length"],
        "degree": golden["degree"],
        "constant": golden["constant"],
        "sample_size": golden["samples"],
    }
    found = {bound: trial(jr.key(0), bound=bound, **point)["value"] for bound in lintilhac2026_tilings.BOUNDS}
    assert found["paper"] == pytest.approx(golden["paper"]["value"], rel=0.01)
    assert found["tuned"] == pytest.approx(golden["tuned"]["value"], rel=0.02)
    assert found["tuned-clipped"] < found["tuned"]
    # The tuned weights have smaller second logits, which helps the covering bound a little.
    assert 0.7 * golden["covering"] < found["covering"] <= 1.01 * golden["covering"]


@pytest.mark.parametrize(
    ("point", "advice"),
    [
        ({"bound": "head"}, "bound is one of"),
        ({"context_length": 10, "degree": 3}, "divides the context length"),
        ({"sample_size": 4}, "sample_size lies between 8"),
    ],
)
def test_points_that_no_trial_can_have_are_refused(point, advice):
    with pytest.raises(ValueError, match=advice):
        STUDY.check(point)


def test_the_quick_budget_holds_what_decides():
    quick = STUDY.plan("quick").points
    assert {"bound": "tuned", "context_length": 64, "degree": 2, "constant": 0.1, "sample_size": 10**8} in quick
    assert {point["bound"] for point in quick} == {*lintilhac2026_tilings.BOUNDS}
